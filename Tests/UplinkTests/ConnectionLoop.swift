import CLinux
import Delivery
import Glibc
import Positioning
import Testing

@testable import Uplink

/// The least loop that can drive a connection that stays open. Its clock goes on with `advance`, and by what a turn was
/// to wait when nothing came.
final class ConnectionLoop {
    private(set) var connection: LiveConnection!
    /// What was reported, until somebody takes it.
    var events: [LiveConnection.Event] = []
    /// Called with each report instead.
    var react: ((LiveConnection.Event) -> Void)?
    private(set) var turns = 0
    private(set) var now = EventTime(nanoseconds: 1_000_000_000_000)
    private let interests = Interests()

    var watched: [Int32: HTTPUplink.Interest] { interests.byDescriptor }

    private final class Interests {
        var byDescriptor: [Int32: HTTPUplink.Interest] = [:]
    }

    init(
        _ url: String, tls: TLSSettings? = nil, settings: HTTPUplink.Settings = .init(version: "1.2.3")
    ) throws {
        let interests = interests
        connection = try LiveConnection(
            url: url, tls: tls, settings: settings, watch: { interests.byDescriptor[$0] = $1 },
            report: { [unowned self] event in
                if let react { react(event) } else { events.append(event) }
            })
    }

    deinit { connection?.close() }

    func advance(by duration: Duration) {
        now = now + duration
        fireDeadline()
    }

    /// One round: waits for a descriptor or the deadline, at most that long.
    func turn(atMost limit: Duration = .milliseconds(200)) {
        let untilDeadline = connection.nextDeadline.map { max($0.duration(since: now), .zero) } ?? limit
        var ready = watched.map { descriptor, interest in
            pollfd(
                fd: descriptor,
                events: Int16((interest.readable ? POLLIN : 0) | (interest.writable ? POLLOUT : 0)), revents: 0)
        }
        let timeout = (min(untilDeadline, limit).nanoseconds + 999_999) / 1_000_000
        if poll(&ready, nfds_t(ready.count), Int32(timeout)) == 0 { now = now + .milliseconds(timeout) }
        turns += 1
        for entry in ready where entry.revents != 0 && watched[entry.fd] != nil {
            let events = Int32(entry.revents)
            connection.descriptorReady(
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

    /// Opens it and turns until it is open, or not.
    func open(_ location: SourceLocation = #_sourceLocation) {
        connection.open()
        run(location) { !events.isEmpty }
    }

    var received: [UInt8] {
        events.flatMap { event -> [UInt8] in if case .received(let bytes) = event { bytes } else { [] } }
    }

    var failure: TransportFailure? {
        events.compactMap { event -> TransportFailure? in if case .ended(let failure) = event { failure } else { nil } }
            .last
    }

    private func fireDeadline() {
        if let deadline = connection.nextDeadline, deadline <= now { connection.deadlineReached(at: now) }
    }
}
