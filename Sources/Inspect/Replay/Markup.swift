/// XML and HTML.
package enum Markup {
    /// Text for an element or an attribute in quotes. What XML 1.0 cannot hold becomes U+FFFD.
    package static func text(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case "\t", "\n", "\r", " "..."\u{D7FF}", "\u{E000}"..."\u{FFFD}", "\u{10000}"..."\u{10FFFF}":
                escaped.unicodeScalars.append(character)
            default: escaped += "\u{FFFD}"
            }
        }
        return escaped
    }
}
