import CLinux
import Glibc
import Synchronization

/// Between the loop and the writer thread: commits in, replies out, both in order. Only values cross it.
final class CommitMailbox: Sendable {
    typealias Reply = Result<CommitReply, OutboxError>

    private struct State {
        var commits: [Commit] = []
        var replies: [Reply] = []
        var closing = false
    }

    private let state = Mutex(State())
    /// Wakes the writer.
    private let work: Int32
    /// Readable while replies wait.
    let ready: Int32

    /// nil when the system has no descriptors left.
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

    func submit(_ commit: Commit) {
        state.withLock { $0.commits.append(commit) }
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

    /// Waits for the next commit; nil once the mailbox is closed and empty.
    func nextCommit() -> Commit? {
        while true {
            let (commit, closing) = state.withLock { state in
                (state.commits.isEmpty ? nil : state.commits.removeFirst(), state.closing)
            }
            if let commit { return commit }
            if closing { return nil }
            var wait = pollfd(fd: work, events: Int16(POLLIN), revents: 0)
            _ = poll(&wait, 1, -1)
            Self.clear(work)
        }
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
