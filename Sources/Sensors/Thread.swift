import Glibc

/// A C function pointer cannot capture what to run: a box carries it.
private final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// Runs something that may block, on a thread of its own. Nothing can stop it, and the process exits without waiting.
///
/// - Returns: 0, or why there is no thread.
func startThread(_ body: @escaping @Sendable () -> Void) -> Int32 {
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
