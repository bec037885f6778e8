import CZlib

/// Compression by zlib. Equal bytes give equal bytes: headers have no name and no time.
package enum Deflate {
    /// What is around the compressed data.
    package enum Format: Int32 {
        /// RFC 1950.
        case zlib = 15
        /// RFC 1952.
        case gzip = 31
    }

    /// - Parameter level: 1 (fast) to 9 (small).
    /// - Returns: nil when memory is short, or for more than 2 GiB.
    package static func compress(_ plain: [UInt8], as format: Format, level: Int32 = 6) -> [UInt8]? {
        var stream = z_stream()
        guard
            plain.count <= Int(UInt32.max) / 2,
            deflateInit2_(
                &stream, level, Z_DEFLATED, format.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
        defer { deflateEnd(&stream) }
        let capacity = Int(deflateBound(&stream, UInt(plain.count)))
        var plain = plain
        var hasEnded = false
        let packed = [UInt8](unsafeUninitializedCapacity: capacity) { packed, count in
            hasEnded = plain.withUnsafeMutableBufferPointer { plain in
                stream.next_in = plain.baseAddress
                stream.avail_in = UInt32(plain.count)
                stream.next_out = packed.baseAddress
                stream.avail_out = UInt32(capacity)
                return deflate(&stream, Z_FINISH) == Z_STREAM_END
            }
            count = Int(stream.total_out)
        }
        return hasEnded ? packed : nil
    }
}
