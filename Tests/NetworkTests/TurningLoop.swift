import CLinux
import Glibc
import Testing
import WaypostCore

@testable import Network

/// The least loop that can drive something with descriptors and a deadline. Its clock goes on with `advance`, and by what a turn
/// was to wait when nothing came: on a machine that is busy for seconds no time limit ends early.
protocol TurningLoop: AnyObject {
    var now: EventTime { get set }
    /// Rounds so far.
    var turns: Int { get set }
    var interests: Interests { get }
    var nextDeadline: EventTime? { get }
    func ready(_ descriptor: Int32, readable: Bool, writable: Bool)
    func deadlineReached()
}

/// Apart from the loop, since descriptors are forgotten even while the loop is being freed.
final class Interests {
    var byDescriptor: [Int32: HTTPUplink.Interest] = [:]
}

extension TurningLoop {
    var watched: [Int32: HTTPUplink.Interest] { interests.byDescriptor }

    /// Lets time pass and whatever is due happen.
    func advance(by duration: Duration) {
        now = now + duration
        fireDeadline()
    }

    /// One round: waits for a descriptor or the deadline, at most that long.
    func turn(atMost limit: Duration = .milliseconds(200)) {
        let untilDeadline = nextDeadline.map { max($0.duration(since: now), .zero) } ?? limit
        var entries = watched.map { descriptor, interest in
            pollfd(
                fd: descriptor,
                events: Int16((interest.readable ? POLLIN : 0) | (interest.writable ? POLLOUT : 0)), revents: 0)
        }
        let timeout = (min(untilDeadline, limit).nanoseconds + 999_999) / 1_000_000
        if poll(&entries, nfds_t(entries.count), Int32(timeout)) == 0 { now = now + .milliseconds(timeout) }
        turns += 1
        for entry in entries where entry.revents != 0 && watched[entry.fd] != nil {
            let events = Int32(entry.revents)
            ready(entry.fd, readable: events & (POLLIN | POLLERR | POLLHUP) != 0, writable: events & POLLOUT != 0)
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

    private func fireDeadline() {
        if let deadline = nextDeadline, deadline <= now { deadlineReached() }
    }
}
