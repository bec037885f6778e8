import CLinux
import Glibc
import Synchronization

/// A blocking call, such as asking the resolver, on a thread of its own.
///
/// The thread lives as long as the call and cannot be stopped: after a timeout the owner keeps the call and checks it
/// again later instead of starting another one.
package final class BackgroundCall<Answer: Sendable>: Sendable {
    /// Readable when there is an answer.
    package let descriptor: Int32
    private let result = Mutex<Answer?>(nil)

    /// - Parameter what: `cannot look up example.org`, for the error.
    /// - Throws: when the system has no descriptor or thread left.
    package init(_ what: String, _ call: @escaping @Sendable () -> Answer) throws(SourceProblem) {
        descriptor = waypost_eventfd()
        guard descriptor >= 0 else { throw SourceProblem(what, errno: errno) }
        let code = startThread { [self] in
            let answer = call()
            result.withLock { $0 = answer }
            var one: UInt64 = 1
            _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
        }
        guard code == 0 else { throw SourceProblem(what, errno: code) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// nil while the call runs.
    package var answer: Answer? { result.withLock { $0 } }
}
