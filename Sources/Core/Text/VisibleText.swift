extension String {
    /// A text from outside, safe to show: what controls a terminal, ends a line, or hides or reorders the text beside
    /// it is escaped (`\\x1b`, `\\u{202e}`), and a long one is cut.
    ///
    /// Apply it only where text is shown to people.
    ///
    /// - Parameters:
    ///   - limit: bytes of UTF-8, 3 or more; a cut text ends in `…`.
    ///   - keepingLineFeeds: where the text may have several lines.
    package func visible(bytesMax limit: Int, keepingLineFeeds: Bool = false) -> String {
        if utf8.count <= limit, utf8.allSatisfy({ (0x20...0x7E).contains($0) || (keepingLineFeeds && $0 == 0x0A) }) {
            return self
        }
        var bytes: [UInt8] = []
        // How much stays where the whole does not fit.
        var kept = 0
        for scalar in unicodeScalars {
            if scalar.needsEscape, !(keepingLineFeeds && scalar == "\n") {
                bytes += scalar.writtenOut.utf8
            } else {
                bytes += UTF8.encode(scalar)!
            }
            if bytes.count <= limit - 3 { kept = bytes.count }
            guard bytes.count <= limit else {
                bytes.removeLast(bytes.count - kept)
                bytes += "…".utf8
                break
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// At most this many bytes of UTF-8, 3 or more, cut between two scalars; a cut text ends in `…`.
    ///
    /// Characters are no measure: one of them may have any number of accents.
    package func cut(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        var end = utf8.index(startIndex, offsetBy: limit - 3)
        while end > startIndex, UTF8.isContinuation(utf8[end]) { end = utf8.index(before: end) }
        return String(self[..<end]) + "…"
    }
}

extension String {
    /// Equivalent JSON, safe to show in a terminal: control characters that JSON allows unescaped become `\\u009b`.
    package var visibleJSON: String {
        guard unicodeScalars.contains(where: { $0.value > 0x7E && $0.needsEscape }) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            guard scalar.value > 0x7E, scalar.needsEscape else {
                text.unicodeScalars.append(scalar)
                continue
            }
            for unit in scalar.utf16 {
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            }
        }
        return text
    }
}

extension String {
    /// The same text, safe to show in a terminal line by line: feeds of lines and tabs stay.
    package var visibleLines: String {
        var text = ""
        var rest = unicodeScalars[...]
        while let scalar = rest.popFirst() {
            let isKept = scalar == "\n" || scalar == "\t" || (scalar == "\r" && rest.first == "\n")
            if scalar.needsEscape, !isKept {
                text += scalar.writtenOut
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    /// Has characters that control a terminal or end a line (C0, DEL, C1, and the separators of lines and paragraphs).
    package var hasControls: Bool {
        unicodeScalars.contains {
            switch $0.value {
            case 0x00...0x1F, 0x7F...0x9F, 0x2028, 0x2029: true
            default: false
            }
        }
    }

    /// Has characters that change the order in which text is shown.
    package var hasBidiControls: Bool {
        unicodeScalars.contains {
            switch $0.value {
            case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
            default: false
            }
        }
    }
}

extension Unicode.Scalar {
    /// Control characters, and those of Unicode that are seen only by what they do to others.
    fileprivate var needsEscape: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0xAD, 0x061C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF,
            0xFFF9...0xFFFB, 0xE0000...0xE007F:
            true
        default: false
        }
    }

    fileprivate var writtenOut: String {
        let digits = String(value, radix: 16)
        return value < 0x100 ? "\\x" + (value < 0x10 ? "0" : "") + digits : "\\u{\(digits)}"
    }
}
