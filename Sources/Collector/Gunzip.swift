import CZlib

struct GzipProblem: Error {
    var text: String
}

/// Decodes one gzip body of at most `limit` bytes.
func gunzip(_ packed: [UInt8], limit: Int) throws(GzipProblem) -> [UInt8] {
    var stream = z_stream()
    let gzipWindow: Int32 = 15 + 16
    guard inflateInit2_(&stream, gzipWindow, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
        throw GzipProblem(text: "no memory")
    }
    defer { inflateEnd(&stream) }
    var plain: [UInt8] = []
    var source = packed
    var piece = [UInt8](repeating: 0, count: 64 * 1024)
    let verdict = source.withUnsafeMutableBufferPointer { source in
        stream.next_in = source.baseAddress
        stream.avail_in = UInt32(source.count)
        var code = Z_OK
        repeat {
            let produced = piece.withUnsafeMutableBufferPointer { piece in
                stream.next_out = piece.baseAddress
                stream.avail_out = UInt32(piece.count)
                code = inflate(&stream, Z_NO_FLUSH)
                return piece.count - Int(stream.avail_out)
            }
            plain.append(contentsOf: piece[..<produced])
        } while code == Z_OK && plain.count <= limit
        return code
    }
    if plain.count > limit { throw GzipProblem(text: "the body has more than \(limit) bytes when decoded") }
    guard verdict == Z_STREAM_END, stream.avail_in == 0 else {
        throw GzipProblem(text: "the body is no complete gzip stream")
    }
    return plain
}
