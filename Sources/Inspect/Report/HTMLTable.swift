/// A table of a page; texts are never markup.
struct HTMLTable {
    enum Column {
        case words(String)
        /// Aligned to the right.
        case numbers(String)
    }

    private let columns: [Column]
    private var rows = ""
    private let head: String

    /// - Parameters:
    ///   - caption: for those who cannot see what is around it.
    ///   - columns: their heads; none is written when all are empty.
    init(_ caption: String, _ columns: [Column], class name: String = "") {
        self.columns = columns
        var head = "<table\(name.isEmpty ? "" : " class=\"\(name)\"")><caption>\(Markup.text(caption))</caption>"
        if columns.contains(where: { !$0.head.isEmpty }) {
            let cells = columns.map { "<th scope=\"col\"\($0.attribute)>\(Markup.text($0.head))</th>" }
            head += "<thead><tr>\(cells.joined())</tr></thead>"
        }
        self.head = head + "<tbody>\n"
    }

    /// - Parameters:
    ///   - cells: as many as columns.
    ///   - isBad: the last of them stands out.
    mutating func row(_ cells: String..., isBad: Bool = false) {
        rows += "<tr>"
        for (index, (cell, column)) in zip(cells, columns).enumerated() {
            let bad = isBad && index == cells.count - 1 ? " class=\"n bad\"" : column.attribute
            rows += "<td\(bad)>\(Markup.text(cell))</td>"
        }
        rows += "</tr>\n"
    }

    var html: String { rows.isEmpty ? "" : "\(head)\(rows)</tbody></table>\n" }
}

extension HTMLTable.Column {
    fileprivate var head: String {
        switch self {
        case .words(let head), .numbers(let head): head
        }
    }

    fileprivate var attribute: String {
        switch self {
        case .words: ""
        case .numbers: " class=\"n\""
        }
    }
}
