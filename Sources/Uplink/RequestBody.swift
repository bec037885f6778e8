import CZlib
import Delivery

/// The bytes of a request's body at a fixed address, where libcurl reads them for as long as the transfer lives.
final class RequestBody {
    /// Below this a gzip header and trailer are not worth the server's effort.
    static let smallestCompressed = 1024 + 1

    let bytes: UnsafeMutableRawBufferPointer
    let count: Int
    let isGzipped: Bool

    init(_ request: UplinkRequest) {
        if request.gzip, request.body.count >= Self.smallestCompressed, let (bytes, count) = Self.gzip(request.body) {
            self.bytes = bytes
            self.count = count
            isGzipped = true
        } else {
            // Never empty: libcurl understands a null pointer as "read the body from standard input".
            bytes = .allocate(byteCount: max(request.body.count, 1), alignment: 1)
            bytes.copyBytes(from: request.body)
            count = request.body.count
            isGzipped = false
        }
    }

    deinit { bytes.deallocate() }

    /// Level 6, no name and no time in the header, so that equal bytes give equal bytes; nil when memory is short.
    private static func gzip(_ plain: [UInt8]) -> (UnsafeMutableRawBufferPointer, Int)? {
        var stream = z_stream()
        let gzipWindow: Int32 = 15 + 16
        guard
            plain.count <= Int(UInt32.max) / 2,
            deflateInit2_(
                &stream, 6, Z_DEFLATED, gzipWindow, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
        defer { deflateEnd(&stream) }
        let capacity = Int(deflateBound(&stream, UInt(plain.count)))
        let packed = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)
        var source = plain
        let ended = source.withUnsafeMutableBytes { source in
            stream.next_in = source.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.avail_in = UInt32(source.count)
            stream.next_out = packed.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.avail_out = UInt32(capacity)
            return deflate(&stream, Z_FINISH) == Z_STREAM_END
        }
        guard ended else {
            packed.deallocate()
            return nil
        }
        return (packed, Int(stream.total_out))
    }
}
