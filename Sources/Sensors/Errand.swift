import CLinux
import Glibc
import Synchronization

/// A call that waits, such as asking the resolver, on a thread of its own.
///
/// The thread lives as long as the call. Nothing can stop it, so an owner that has lost patience keeps the errand and
/// looks at it again later instead of starting another one.
final class Errand<Answer: Sendable>: Sendable {
    /// Readable once the answer is there.
    let descriptor: Int32
    private let result = Mutex<Answer?>(nil)

    /// - Parameter what: `cannot look up example.org`, for the error.
    /// - Throws: when the system has no descriptor or thread left.
    init(_ what: String, _ call: @escaping @Sendable () -> Answer) throws(SourceProblem) {
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
    var answer: Answer? { result.withLock { $0 } }
}

/// A function for C cannot carry what it is to run: a box does.
private final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// - Returns: 0, or why there is no thread.
private func startThread(_ body: @escaping @Sendable () -> Void) -> Int32 {
    var thread = pthread_t()
    let reference = Unmanaged.passRetained(Box(body))
    let code = pthread_create(
        &thread, nil,
        { argument in
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, reference.toOpaque())
    if code == 0 { pthread_detach(thread) } else { reference.release() }
    return code
}
