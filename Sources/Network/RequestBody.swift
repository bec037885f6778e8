import Protocols

/// The bytes of a request's body at a fixed address, where libcurl reads them for as long as the transfer lives.
final class RequestBody {
    /// Below this a gzip header and trailer are not worth the server's effort.
    static let smallestCompressed = 1024 + 1

    let bytes: UnsafeMutableRawBufferPointer
    let count: Int
    let isGzipped: Bool

    init(_ request: UplinkRequest) {
        let isWorthIt = request.gzip && request.body.count >= Self.smallestCompressed
        let gzipped = isWorthIt ? Deflate.compress(request.body, as: .gzip) : nil
        let content = gzipped ?? request.body
        // Never empty: libcurl understands a null pointer as "read the body from standard input".
        bytes = .allocate(byteCount: max(content.count, 1), alignment: 1)
        bytes.copyBytes(from: content)
        count = content.count
        isGzipped = gzipped != nil
    }

    deinit { bytes.deallocate() }
}
