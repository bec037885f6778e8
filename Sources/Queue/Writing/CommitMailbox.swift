import CLinux
import Glibc
import Synchronization
import WaypostCore

/// Between the loop and the writer thread: jobs in, replies out, both in order. Only values cross it.
final class CommitMailbox: Sendable {
    enum Job: Sendable {
        case commit(Commit)
        /// Has no reply.
        case letReadersIn
    }

    typealias Reply = Result<CommitReply, OutboxError>

    private struct State {
        var jobs: [Job] = []
        var replies: [Reply] = []
        var closing = false
        var ended = false
    }

    private let state = Mutex(State())
    /// Wakes the writer.
    private let work: Int32
    /// Readable while replies wait.
    let ready: Int32

    /// nil when the system has no more descriptors.
    init?() {
        work = waypost_eventfd()
        ready = waypost_eventfd()
        guard work >= 0, ready >= 0 else {
            if work >= 0 { Glibc.close(work) }
            if ready >= 0 { Glibc.close(ready) }
            return nil
        }
    }

    deinit {
        Glibc.close(work)
        Glibc.close(ready)
    }

    func submit(_ job: Job) {
        state.withLock { $0.jobs.append(job) }
        Self.signal(work)
    }

    func close() {
        state.withLock { $0.closing = true }
        Self.signal(work)
    }

    func takeReplies() -> [Reply] {
        Self.clear(ready)
        return state.withLock { state in
            defer { state.replies = [] }
            return state.replies
        }
    }

    /// Waits for the next job; nil once the mailbox is closed and empty.
    /// - Parameter readers: readable when another program opens the queue; nil = all may read.
    func nextJob(or readers: Int32?) -> Job? {
        while true {
            let (job, closing) = state.withLock { state in
                (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.closing)
            }
            if let job { return job }
            if closing { return nil }
            // A negative descriptor is passed over.
            var waits = [work, readers ?? -1].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&waits, 2, -1)
            Self.clear(work)
            if waits[1].revents != 0 { return .letReadersIn }
        }
    }

    /// The writer has carried out everything and touches nothing any more.
    func end() {
        state.withLock { $0.ended = true }
        Self.signal(ready)
    }

    /// - Returns: whether the writer ended in time.
    func waitForEnd(timeout: Duration) -> Bool {
        let deadline = waypost_boottime_ns() + timeout.nanoseconds
        while !state.withLock({ $0.ended }) {
            let rest = (deadline - waypost_boottime_ns()) / 1_000_000
            guard rest > 0 else { return false }
            var wait = pollfd(fd: ready, events: Int16(POLLIN), revents: 0)
            _ = poll(&wait, 1, Int32(clamping: rest))
            Self.clear(ready)
        }
        return true
    }

    func reply(_ reply: Reply) {
        state.withLock { $0.replies.append(reply) }
        Self.signal(ready)
    }

    private static func signal(_ descriptor: Int32) {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    private static func clear(_ descriptor: Int32) {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }
}
