import WaypostCore

/// One line of a terminal, made of pieces that look different. Whatever is added is made safe to show: there is no other way
/// in, so that nothing from outside steers the terminal.
struct StyledLine {
    enum Style: String {
        case plain = ""
        case strong = "1"
        case faint = "2"
        case good = "32"
        case warning = "33"
        case bad = "1;31"
        case heading = "7"
    }

    /// Marks where a line was cut.
    private static let cutMark = "…"
    /// A longer text from outside cannot be wholly on the screen.
    private static let textBytesMax = 1000
    /// More accents on one letter would reach into other lines.
    private static let accentsMax = 2

    private let isASCII: Bool
    private var pieces: [(text: String, style: Style)] = []
    /// Width so far.
    private(set) var columns = 0

    /// - Parameter isASCII: what is not ASCII is replaced.
    init(isASCII: Bool) { self.isASCII = isASCII }

    /// Without any style.
    var text: String { pieces.map(\.text).joined() }

    /// The same, without spaces at its end.
    var trimmedText: String {
        let text = self.text
        return String(text[..<(text.lastIndex { $0 != " " }.map(text.index(after:)) ?? text.startIndex)])
    }

    mutating func add(_ text: String, _ style: Style = .plain) {
        let shown = shown(text)
        pieces.append((shown, style))
        columns += Self.columns(of: shown)
    }

    /// Right- or left-aligned in a column of a table, cut to its width.
    mutating func add(_ text: String, _ style: Style = .plain, width: Int, right: Bool = false) {
        var cell = StyledLine(isASCII: isASCII)
        cell.add(text, style)
        cell.cut(to: width)
        let padding = String(repeating: " ", count: max(0, width - cell.columns))
        if right { add(padding) }
        pieces += cell.pieces
        columns += cell.columns
        if !right { add(padding) }
    }

    /// Adds the text and two spaces before it, unless the line would be wider than that.
    mutating func addIfItFits(_ text: String, _ style: Style = .plain, columns limit: Int) {
        guard columns + 2 + Self.columns(of: shown(text)) <= limit else { return }
        if columns > 0 { add("  ") }
        add(text, style)
    }

    /// Spaces up to this width.
    mutating func pad(to width: Int) { add(String(repeating: " ", count: max(0, width - columns))) }

    mutating func cut(to width: Int) {
        guard columns > width else { return }
        let mark = shown(Self.cutMark)
        let limit = max(0, width - mark.unicodeScalars.count)
        var kept: [(text: String, style: Style)] = []
        var used = 0
        cutting: for piece in pieces {
            var text = String.UnicodeScalarView()
            for scalar in piece.text.unicodeScalars {
                let wide = Self.columns(of: scalar)
                guard used + wide <= limit else {
                    kept.append((String(text), piece.style))
                    break cutting
                }
                text.append(scalar)
                used += wide
            }
            kept.append((String(text), piece.style))
        }
        if used + mark.unicodeScalars.count <= width { kept.append((mark, .faint)) }
        pieces = kept
        columns = pieces.reduce(0) { $0 + Self.columns(of: $1.text) }
    }

    /// All of it in one style.
    func styled(_ style: Style) -> StyledLine {
        var line = self
        line.pieces = [(text, style)]
        return line
    }

    /// With the escape sequences of its styles.
    var escaped: String {
        var text = ""
        for piece in pieces where !piece.text.isEmpty {
            text += piece.style == .plain ? piece.text : "\u{1b}[\(piece.style.rawValue)m\(piece.text)\u{1b}[0m"
        }
        return text
    }

    // MARK: Characters

    private func shown(_ text: String) -> String {
        let safe = text.visible(bytesMax: Self.textBytesMax)
        if safe.utf8.allSatisfy({ $0 < 0x80 }) { return safe }
        var shown = ""
        var accents = 0
        for scalar in safe.unicodeScalars {
            if isASCII {
                let other = Self.columns(of: scalar) == 0 ? "" : "?"
                shown += scalar.isASCII ? String(scalar) : Self.ascii[scalar] ?? other
                continue
            }
            accents = Self.columns(of: scalar) == 0 ? accents + 1 : 0
            guard accents <= Self.accentsMax else { continue }
            shown.unicodeScalars.append(scalar.isShowable ? scalar : "?")
        }
        return shown
    }

    private static let ascii: [Unicode.Scalar: String] = [
        "±": "+-", "°": " deg", "…": "...", "━": "#", "─": "-", "·": "-",
        "▁": "_", "▂": ".", "▃": ":", "▄": "-", "▅": "=", "▆": "+", "▇": "*", "█": "#",
    ]

    private static func columns(of text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + columns(of: $1) } }

    private static func columns(of scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return scalar.isWide ? 2 : 1
        }
    }
}

extension Unicode.Scalar {
    /// East Asian and pictographic characters, which take two columns.
    fileprivate var isWide: Bool {
        switch value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
            0x20000...0x3FFFD:
            true
        default: false
        }
    }

    /// A terminal knows what to do with it.
    fileprivate var isShowable: Bool {
        switch properties.generalCategory {
        case .unassigned, .privateUse, .surrogate, .control, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
