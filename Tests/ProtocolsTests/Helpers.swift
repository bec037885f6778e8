import TestSupport
import WaypostCore

@testable import Protocols

/// Bytes of hexadecimal digits, between which blanks stand as they like.
func hex(_ text: String) -> [UInt8] {
    var (bytes, high): ([UInt8], UInt8?) = ([], nil)
    for character in text {
        guard let digit = character.hexDigitValue.map(UInt8.init) else { continue }
        if let first = high { bytes.append(first << 4 | digit) }
        high = high == nil ? digit : nil
    }
    return bytes
}

func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
    return String(decoding: text, as: UTF8.self)
}

extension MQTTClient {
    /// Hears bytes in hexadecimal, after all that it wants to say has left.
    mutating func hear(_ text: String, at second: Double = 0) -> [Event] {
        wasWritten()
        return received(hex(text)[...], at: seconds(second))
    }
}

extension WebSocketClient {
    mutating func hear(_ bytes: [UInt8], at second: Double = 0) -> [Event] { received(bytes[...], at: seconds(second)) }

    mutating func hear(_ text: String, at second: Double = 0) -> [Event] { hear(hex(text), at: second) }

    /// What it writes next, unmasked.
    mutating func write() -> String? { nextOutput(mask: 0).map(hex) }
}

func seconds(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

/// Whole bytes in pieces of random lengths, empty ones among them.
func pieces(_ bytes: [UInt8], using generator: inout SeededGenerator) -> [ArraySlice<UInt8>] {
    var pieces: [ArraySlice<UInt8>] = []
    var rest = bytes[...]
    while !rest.isEmpty {
        let piece = rest.prefix(Int.random(in: 0...(Bool.random(using: &generator) ? 3 : 200), using: &generator))
        pieces.append(piece)
        rest = rest.dropFirst(piece.count)
    }
    return pieces
}
