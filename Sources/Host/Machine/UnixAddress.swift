import Glibc

/// Calls `body` with the socket address of a path.
/// - Throws: `SystemError` (ENAMETOOLONG) for a path over 107 bytes, and what `body` throws.
package func withUnixAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemError) -> Result
) throws(SystemError) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
        throw SystemError("socket path \(path)", code: ENAMETOOLONG)
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let outcome: Swift.Result<Result, SystemError> = withUnsafePointer(to: address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { rebound in
            do throws(SystemError) {
                return .success(try body(rebound, socklen_t(MemoryLayout<sockaddr_un>.size)))
            } catch {
                return .failure(error)
            }
        }
    }
    return try outcome.get()
}
