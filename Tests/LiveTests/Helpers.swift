import Positioning

@testable import Live

/// Bytes of hexadecimal digits, between which blanks stand as they like.
func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

func seconds(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

/// Whole bytes in pieces of random lengths, empty ones among them.
func pieces(_ bytes: [UInt8], using generator: inout some RandomNumberGenerator) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 0...(Bool.random(using: &generator) ? 3 : 200), using: &generator))
        pieces.append(piece)
        rest = rest.dropFirst(piece.count)
    }
    return pieces
}
