@testable import Daemon
@testable import WaypostCore

/// libFuzzer entry: what a token command prints or an issuer answers gives a token that a header can hold, for a time that
/// is some, or words for people of which none was in it. A token that says when it expires says a time.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTokens(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    check { () throws(TokenReply.Problem) in try TokenReply(printed: bytes) }
    check { () throws(TokenReply.Problem) in try TokenReply(json: bytes) }
    if let claims = TokenClaims(String(decoding: bytes, as: UTF8.self)) {
        demand([claims.expires, claims.issued ?? 0].allSatisfy { (0...1e11).contains($0) }, "a time of \(claims)")
    }
    return 0
}

private func check(_ read: () throws(TokenReply.Problem) -> TokenReply) {
    do throws(TokenReply.Problem) {
        let reply = try read()
        for token in [reply.token, reply.refreshToken].compactMap({ $0 }) {
            demand(!token.isEmpty && !token.utf8.contains { $0 < 0x20 || $0 == 0x7F }, "no token for a header")
        }
        if let lifetime = reply.lifetime {
            demand(lifetime >= .zero && lifetime <= .seconds(366 * 86_400), "a lifetime of \(lifetime)")
        }
    } catch {
        demand(error.message.utf8.count < 200, "the words are the reply's own")
    }
}
