import Sensors
import WaypostHost

extension EventLoop {
    /// Runs what would hold the loop up on a thread of its own.
    ///
    /// - Parameters:
    ///   - what: for the error: `cannot write /var/lib/waypost/x`.
    ///   - then: called with the answer, on the loop, which keeps it until then.
    /// - Throws: when the system has no thread or descriptor left.
    func inBackground<Answer: Sendable>(
        _ what: String, _ call: @escaping @Sendable () -> Answer, then: @escaping (Answer) -> Void
    ) throws {
        let call = try BackgroundCall(what, call)
        try watch(call.descriptor) { [unowned self] _, _ in
            guard let answer = call.answer else { return }
            forget(call.descriptor)
            then(answer)
        }
    }
}
