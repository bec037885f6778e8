/// Commands from the configuration, for a receiver without a profile.
package struct CustomReceiverCommands: Hashable, Sendable {
    /// Set the interval between fixes.
    package var rate: [ReceiverCommand]
    package var standby: [ReceiverCommand]
    package var wake: [ReceiverCommand]

    package init(rate: [ReceiverCommand] = [], standby: [ReceiverCommand] = [], wake: [ReceiverCommand] = []) {
        self.rate = rate
        self.standby = standby
        self.wake = wake
    }
}

/// One command in the words of the configuration: a sentence from its `$` on, without checksum and end of line, in
/// which `{ms}` and `{s}` are the interval or the length of the sleep; or bytes as pairs of hexadecimal digits.
package struct ReceiverCommand: Hashable, Sendable {
    /// A frame of UBX with some keys, or a sentence of full length.
    private static let bytesMax = 256

    /// As it was written.
    package let text: String
    /// nil for a sentence.
    private let raw: [UInt8]?

    /// What is expected of the text, for messages.
    package static let expectation =
        "a sentence from \"$\" to before its \"*\", in which {ms} and {s} are replaced, or bytes such as \"B5 62 06 04\""

    /// nil when the text is neither.
    package init?(_ text: String) {
        self.text = text
        guard !text.utf8.isEmpty, text.utf8.count <= Self.bytesMax * 3 else { return nil }
        if text.hasPrefix("$") {
            let isPrintable = text.utf8.dropFirst().allSatisfy { (0x20...0x7E).contains($0) }
            // The checksum is added here, since it covers the interval.
            let isWhole = !text.dropFirst().contains { $0 == "*" || $0 == "$" || $0 == "!" }
            let names = Self.placeholders(text)
            guard isPrintable, isWhole, text.utf8.count > 1, text.utf8.count <= Self.bytesMax,
                names.allSatisfy({ $0 == "ms" || $0 == "s" })
            else { return nil }
            raw = nil
            return
        }
        var bytes: [UInt8] = []
        for pair in text.split(separator: " ") {
            guard pair.utf8.count == 2, pair.first?.isHexDigit == true, let byte = UInt8(pair, radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        guard !bytes.isEmpty, bytes.count <= Self.bytesMax else { return nil }
        raw = bytes
    }

    func bytes(milliseconds: Int64) -> [UInt8] {
        if let raw { return raw }
        // A receiver that counts seconds gets at least one.
        let seconds = max(1, (milliseconds + 500) / 1000)
        var body = ""
        var rest = text.dropFirst()
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            body += rest[..<open]
            body += rest[open...close] == "{ms}" ? String(milliseconds) : String(seconds)
            rest = rest[rest.index(after: close)...]
        }
        return NMEASentence.bytes(body + rest)
    }

    /// The names in braces; an open brace without end counts as one that is unknown.
    private static func placeholders(_ text: String) -> [Substring] {
        var names: [Substring] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            guard let close = rest[open...].firstIndex(of: "}") else { return names + [""] }
            names.append(rest[rest.index(after: open)..<close])
            rest = rest[rest.index(after: close)...]
        }
        return names
    }
}
