import Testing
import WaypostCore
import WaypostHost

@testable import Daemon

extension EventLoop {
    /// Runs the loop until `done`; that it does not come about is an issue.
    func run(
        within limit: Duration = .seconds(60), every pause: Duration = .milliseconds(1),
        until done: @escaping () -> Bool
    ) throws {
        let limit = now + limit
        // The alarm holds on to itself: it is let go of by hand.
        var isDone: (() -> Bool)? = done
        var poll: EventLoop.Alarm?
        poll = alarm { [unowned self] now in
            if isDone?() ?? true { return stop() }
            if now >= limit {
                Issue.record("what was waited for did not happen")
                return stop()
            }
            poll?.deadline = now + pause
        }
        poll?.deadline = now
        try run()
        poll = nil
        isDone = nil
    }
}
