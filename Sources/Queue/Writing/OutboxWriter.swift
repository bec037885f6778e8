import Glibc

/// Carries out commits off the loop's thread, one at a time, in order of submission.
package protocol CommitWriter: AnyObject {
    /// Readable when replies wait: then `drain()` is due.
    var descriptor: Int32 { get }
    /// Bytes of the database and of the log beside it, by the file system; 0 when it cannot tell.
    var bytesOnDisk: Int { get }
    /// Hands a commit over. The completion is called from `drain()`, in order of submission.
    func submit(_ commit: Commit, completion: @escaping OutboxWriter.Completion)
    /// Calls the completions of what is done.
    func drain()
    /// Carries out what was submitted, calls the completions, closes the outbox and ends its thread.
    ///
    /// After `timeout` a hanging disk is not waited for any longer: the thread is detached, and commits have no reply.
    /// - Returns: whether the thread ended.
    @discardableResult
    func close(timeout: Duration) -> Bool
}

/// The outbox on a thread of its own, so that a disk that takes seconds to flush stalls nothing else.
///
/// It belongs to the loop: all calls, and all completions, are on the loop's thread.
package final class OutboxWriter: CommitWriter {
    package typealias Completion = (Result<CommitReply, OutboxError>) -> Void

    private let mailbox: CommitMailbox
    private var thread: pthread_t?
    private var completions: [Completion] = []
    private let path: String
    private static let timeout = Duration.seconds(10)

    /// Owns the outbox from now on.
    package init(_ outbox: sending Outbox) throws(OutboxError) {
        path = outbox.settings.path
        guard let mailbox = CommitMailbox() else {
            throw OutboxError(system: errno, path: path, doing: "create an eventfd")
        }
        self.mailbox = mailbox
        let work = Unmanaged.passRetained(Work(outbox: outbox, mailbox: mailbox))
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, 512 << 10)
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, writeCommits, work.toOpaque())
        pthread_attr_destroy(&attributes)
        guard code == 0 else {
            work.release()
            throw OutboxError(system: code, path: path, doing: "start the writer thread")
        }
        self.thread = thread
    }

    deinit { join(timeout: Self.timeout) }

    package var descriptor: Int32 { mailbox.ready }

    package var bytesOnDisk: Int {
        [path, path + "-wal"].reduce(0) { total, file in
            var status = stat()
            return stat(file, &status) == 0 ? total + Int(status.st_size) : total
        }
    }

    package func submit(_ commit: Commit, completion: @escaping Completion) {
        completions.append(completion)
        guard thread != nil else {
            return mailbox.reply(.failure(OutboxError(.cannotOpen, path: path, message: "closed")))
        }
        mailbox.submit(.commit(commit))
    }

    package func drain() {
        // Replies come in the order of the jobs.
        for reply in mailbox.takeReplies() where !completions.isEmpty { completions.removeFirst()(reply) }
    }

    @discardableResult
    package func close(timeout: Duration = .seconds(10)) -> Bool {
        let ended = join(timeout: timeout)
        drain()
        return ended
    }

    @discardableResult
    private func join(timeout: Duration) -> Bool {
        guard let thread else { return true }
        self.thread = nil
        mailbox.close()
        guard mailbox.waitForEnd(timeout: timeout) else {
            pthread_detach(thread)
            return false
        }
        pthread_join(thread, nil)
        return true
    }
}

/// What the writer thread owns.
private final class Work {
    let outbox: Outbox
    let mailbox: CommitMailbox

    init(outbox: Outbox, mailbox: CommitMailbox) {
        self.outbox = outbox
        self.mailbox = mailbox
    }
}

private func writeCommits(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let work = Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
    // Signals belong to the loop, which reads them from a descriptor.
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    while let job = work.mailbox.nextJob(or: work.outbox.readerDescriptor) {
        switch job {
        case .letReadersIn: work.outbox.letReadersIn()
        case .commit(let commit):
            do throws(OutboxError) {
                work.mailbox.reply(.success(try work.outbox.commit(commit)))
            } catch {
                work.mailbox.reply(.failure(error))
            }
        }
    }
    work.outbox.close()
    work.mailbox.end()
    return nil
}
