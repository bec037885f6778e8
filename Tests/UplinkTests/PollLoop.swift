import CLinux
import Delivery
import Glibc
import Positioning
import Testing

@testable import Uplink

/// The least loop that can drive an uplink. Its clock goes on with `advance`, and by what a turn was to wait when nothing
/// came: on a machine that is busy for seconds no time limit ends early.
final class PollLoop {
    let uplink: HTTPUplink
    var watched: [Int32: HTTPUplink.Interest] { interests.byDescriptor }
    private let interests: Interests
    private(set) var wakeups = 0
    private(set) var now = EventTime(nanoseconds: 1_000_000_000_000)

    init(_ settings: HTTPUplink.Settings = .init(version: "1.2.3"), isClockTrusted: Bool = true) throws {
        let interests = Interests()
        self.interests = interests
        uplink = try HTTPUplink(settings: settings, isClockTrusted: { isClockTrusted }) {
            interests.byDescriptor[$0] = $1
        }
    }

    /// Apart from the loop, since the uplink forgets its descriptors even while the loop is being freed.
    private final class Interests {
        var byDescriptor: [Int32: HTTPUplink.Interest] = [:]
    }

    deinit { uplink.close() }

    /// Lets time pass and whatever is due happen.
    func advance(by duration: Duration) {
        now = now + duration
        fireDeadline()
    }

    /// One round: waits for a descriptor or the deadline, at most that long.
    func turn(atMost limit: Duration = .milliseconds(200)) {
        let untilDeadline = uplink.nextDeadline.map { max($0.duration(since: now), .zero) } ?? limit
        var ready = watched.map { descriptor, interest in
            pollfd(
                fd: descriptor,
                events: Int16((interest.readable ? POLLIN : 0) | (interest.writable ? POLLOUT : 0)), revents: 0)
        }
        let timeout = (min(untilDeadline, limit).nanoseconds + 999_999) / 1_000_000
        if poll(&ready, nfds_t(ready.count), Int32(timeout)) == 0 { now = now + .milliseconds(timeout) }
        wakeups += 1
        for entry in ready where entry.revents != 0 && watched[entry.fd] != nil {
            let events = Int32(entry.revents)
            uplink.descriptorReady(
                entry.fd, readable: events & (POLLIN | POLLERR | POLLHUP) != 0, writable: events & POLLOUT != 0,
                at: now)
        }
        fireDeadline()
    }

    /// Turns until the condition holds; records an issue after 20 s.
    func run(_ location: SourceLocation = #_sourceLocation, until condition: () -> Bool) {
        let giveUp = waypost_boottime_ns() + 20_000_000_000
        while !condition() {
            if waypost_boottime_ns() > giveUp {
                Issue.record("nothing came to an end within 20 s", sourceLocation: location)
                return
            }
            turn()
        }
    }

    /// Sends and turns until the outcome is there.
    func outcome(_ request: UplinkRequest, _ location: SourceLocation = #_sourceLocation) throws -> UplinkOutcome {
        var outcome: UplinkOutcome?
        uplink.send(request) { outcome = $0 }
        run(location) { outcome != nil }
        return try #require(outcome, sourceLocation: location)
    }

    func reply(_ request: UplinkRequest, _ location: SourceLocation = #_sourceLocation) throws -> UplinkReply {
        let outcome = try outcome(request, location)
        return try #require(outcome.reply, "\(outcome)", sourceLocation: location)
    }

    func failure(_ request: UplinkRequest, _ location: SourceLocation = #_sourceLocation) throws -> TransportFailure {
        let outcome = try outcome(request, location)
        return try #require(outcome.failure, "\(outcome)", sourceLocation: location)
    }

    private func fireDeadline() {
        if let deadline = uplink.nextDeadline, deadline <= now { uplink.deadlineReached(at: now) }
    }
}

extension UplinkOutcome {
    var reply: UplinkReply? {
        if case .reply(let reply) = result { reply } else { nil }
    }

    var failure: TransportFailure? {
        if case .failed(let failure) = result { failure } else { nil }
    }
}
