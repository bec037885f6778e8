import CLinux
import Glibc
import Synchronization

/// A name lookup on a thread of its own: the resolver has no call that does not wait.
///
/// The thread lives as long as the lookup. Nothing can stop it, so an owner that has lost patience keeps it and looks
/// at it again later instead of starting another one.
final class HostLookup: Sendable {
    typealias Resolver = @Sendable (_ host: String, _ port: UInt16) -> Result<[SocketAddress], SourceProblem>

    /// Readable once the answer is there.
    let descriptor: Int32
    private let host: String
    private let port: UInt16
    private let resolver: Resolver
    private let result = Mutex<Result<[SocketAddress], SourceProblem>?>(nil)

    /// - Throws: when the system has no descriptor or thread left.
    init(host: String, port: UInt16, resolver: @escaping Resolver) throws(SourceProblem) {
        self.host = host
        self.port = port
        self.resolver = resolver
        descriptor = waypost_eventfd()
        guard descriptor >= 0 else { throw SourceProblem("cannot look up \(host)", errno: errno) }
        var thread = pthread_t()
        let reference = Unmanaged.passRetained(self)
        let code = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<HostLookup>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, reference.toOpaque())
        guard code == 0 else {
            reference.release()
            throw SourceProblem("cannot look up \(host)", errno: code)
        }
        pthread_detach(thread)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// nil while the lookup runs.
    var answer: Result<[SocketAddress], SourceProblem>? { result.withLock { $0 } }

    private func run() {
        let found = resolver(host, port)
        result.withLock { $0 = found }
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }
}
