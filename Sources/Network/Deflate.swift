import CDeflate

/// Compression by libdeflate, which wants all of a body at once and takes less than zlib for it. Equal bytes give equal bytes:
/// headers have no name and no time.
package enum Deflate {
    /// What is around the compressed data.
    package enum Format {
        /// RFC 1950.
        case zlib
        /// RFC 1952.
        case gzip
    }

    /// A compressor is made for each body: that costs a fortieth of its use, and one that is kept would hold 0.7 MB for each
    /// endpoint.
    ///
    /// - Parameter level: 1 (fast) to 9 (small).
    /// - Returns: nil when memory is short.
    package static func compress(_ plain: [UInt8], as format: Format, level: Int32 = 6) -> [UInt8]? {
        guard let compressor = libdeflate_alloc_compressor(level) else { return nil }
        defer { libdeflate_free_compressor(compressor) }
        let (bound, pack) =
            switch format {
            case .zlib: (libdeflate_zlib_compress_bound, libdeflate_zlib_compress)
            case .gzip: (libdeflate_gzip_compress_bound, libdeflate_gzip_compress)
            }
        let capacity = bound(compressor, plain.count)
        let packed = [UInt8](unsafeUninitializedCapacity: capacity) { packed, count in
            count = plain.withUnsafeBytes { pack(compressor, $0.baseAddress, $0.count, packed.baseAddress, capacity) }
        }
        return packed.isEmpty ? nil : packed
    }
}
