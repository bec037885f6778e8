extension String {
    /// Two lower case hex digits for each byte.
    @inlinable
    package init(hexOf bytes: some Collection<UInt8>) {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
        self.init(unsafeUninitializedCapacity: 2 * bytes.count) { buffer in
            for (place, byte) in bytes.enumerated() {
                buffer[2 * place] = digit(byte >> 4)
                buffer[2 * place + 1] = digit(byte & 15)
            }
            return 2 * bytes.count
        }
    }

    /// RFC 3986: unreserved bytes stay, all others become `%XX`.
    package init(percentEncoding bytes: some Sequence<UInt8>) {
        var text: [UInt8] = []
        text.append(percentEncoding: bytes)
        self.init(decoding: text, as: UTF8.self)
    }
}

extension [UInt8] {
    package mutating func append(percentEncoding bytes: some Sequence<UInt8>) {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }
        for byte in bytes {
            if byte.isUnreserved {
                append(byte)
            } else {
                self += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 15)]
            }
        }
    }
}

extension UInt8 {
    package var isLetterOrDigit: Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }

    /// RFC 3986 §2.3.
    fileprivate var isUnreserved: Bool { isLetterOrDigit || "-._~".utf8.contains(self) }

    /// A character of a name of a header or a method (RFC 9110 §5.6.2).
    package var isTokenCharacter: Bool { isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }

    /// It would begin another line or end the text of a header.
    package var breaksHeader: Bool { self == 0x0D || self == 0x0A || self == 0 }
}
