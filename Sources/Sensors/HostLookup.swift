/// A name lookup beside the loop: the resolver has no call that does not wait.
typealias HostLookup = Errand<Result<[SocketAddress], SourceProblem>>

extension Errand where Answer == Result<[SocketAddress], SourceProblem> {
    typealias Resolver = @Sendable (_ host: String, _ port: UInt16) -> Result<[SocketAddress], SourceProblem>

    convenience init(host: String, port: UInt16, resolver: @escaping Resolver) throws(SourceProblem) {
        try self.init("cannot look up \(host)") { resolver(host, port) }
    }
}
