/// A name lookup off the loop's thread: every resolver call may block.
typealias HostLookup = BackgroundCall<Result<[SocketAddress], SourceProblem>>

extension BackgroundCall where Answer == Result<[SocketAddress], SourceProblem> {
    typealias Resolver = @Sendable (_ host: String, _ port: UInt16) -> Result<[SocketAddress], SourceProblem>

    convenience init(host: String, port: UInt16, resolver: @escaping Resolver) throws(SourceProblem) {
        try self.init("cannot look up \(host)") { resolver(host, port) }
    }
}
