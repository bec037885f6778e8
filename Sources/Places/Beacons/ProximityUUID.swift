/// What the beacons of one venue have in common; compared without regard to case.
package struct ProximityUUID: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    /// - Parameter bytes: 16 of them, or nil.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// - Parameter text: `F7826DA6-4FA2-4E98-8024-BC5B71E0893E` in either case, also without its dashes.
    package init?(_ text: String) {
        var digits: [UInt8] = []
        for (index, byte) in text.utf8.enumerated() {
            if byte == UInt8(ascii: "-"), text.utf8.count == 36, Self.dashes.contains(index) { continue }
            guard digits.count < 32, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
            digits.append(UInt8(digit))
        }
        guard digits.count == 32 else { return nil }
        self.init(stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
    }

    private static let dashes: Set = [8, 13, 18, 23]

    /// In capitals, as the documents of Apple write it.
    package var description: String {
        var text = ""
        for index in 0..<32 {
            if [8, 12, 16, 20].contains(index) { text += "-" }
            let word = index < 16 ? high : low
            text += String(word >> UInt64(60 - index % 16 * 4) & 15, radix: 16, uppercase: true)
        }
        return text
    }
}
