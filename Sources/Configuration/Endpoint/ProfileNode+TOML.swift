import Profiles

extension ProfileNode {
    /// A table of TOML as a profile. Dates, which no profile takes, become texts that any profile reader rejects.
    init(_ table: TOMLTable, at position: SourcePosition? = nil) {
        self.init(
            .table(
                table.entries.map {
                    Member($0.key, ProfileNode($0.node), at: $0.keyPosition)
                }),
            at: position)
    }

    init(_ node: TOMLNode) {
        let position = node.position
        switch node.value {
        case .string(let text): self.init(.string(text), at: position)
        case .integer(let number): self.init(.integer(number), at: position)
        case .float(let number): self.init(.float(number), at: position)
        case .boolean(let flag): self.init(.boolean(flag), at: position)
        case .datetime: self.init(.float(.nan), at: position)
        case .array(let elements): self.init(.array(elements.map { ProfileNode($0) }), at: position)
        case .table(let table): self.init(table, at: node.position)
        }
    }

    /// Back again, for readers of configuration values.
    ///
    /// - Parameter outer: the place of what no file says.
    func asTOMLNode(_ outer: SourcePosition = SourcePosition(file: "", line: 1, column: 1)) -> TOMLNode {
        let place = position ?? outer
        let value: TOMLValue
        switch self.value {
        case .string(let text): value = .string(text)
        case .integer(let number): value = .integer(number)
        case .float(let number): value = .float(number)
        case .boolean(let flag): value = .boolean(flag)
        case .array(let elements): value = .array(elements.map { $0.asTOMLNode(place) })
        case .table(let members):
            value = .table(
                TOMLTable(
                    entries: members.map {
                        TOMLEntry(key: $0.name, keyPosition: $0.position ?? place, node: $0.node.asTOMLNode(place))
                    }))
        }
        return TOMLNode(value: value, position: place)
    }

    package subscript(_ name: String) -> Member? {
        guard case .table(let members) = value else { return nil }
        return members.first { $0.name == name }
    }

    package var text: String? {
        if case .string(let text) = value { text } else { nil }
    }

    var integer: Int64? {
        if case .integer(let number) = value { number } else { nil }
    }
}

extension ProfileNode {
    /// In one line: `{ lat = "$lat", lon = "$lon" }`.
    var inlineTOML: String {
        switch value {
        case .string(let text): return text.asTOML
        case .integer(let number): return String(number)
        case .float(let number): return number.isFinite ? "\(number)" : "nan"
        case .boolean(let flag): return flag ? "true" : "false"
        case .array(let elements): return "[" + elements.map(\.inlineTOML).joined(separator: ", ") + "]"
        case .table(let members):
            if members.isEmpty { return "{}" }
            return "{ " + members.map { "\($0.name.asTOMLKey) = \($0.node.inlineTOML)" }.joined(separator: ", ") + " }"
        }
    }

    /// As a file: plain values first, then a section for each table. The order within a section is kept, since it is the
    /// order of what is sent.
    package func sections(_ title: String = "") -> String {
        guard case .table(let members) = value else { return "" }
        // The order of tables that only group others means nothing, so that these may be sections themselves.
        let grouping: Set = ["on"]
        func isSection(_ member: Member) -> Bool {
            guard case .table(let inner) = member.node.value else { return false }
            return (title.isEmpty || grouping.contains(title) || title.hasPrefix("on.")) && !inner.isEmpty
        }
        var text = ""
        let plain = members.filter { !isSection($0) }
        if !title.isEmpty, !plain.isEmpty || members.isEmpty { text += "\n[\(title)]\n" }
        for member in plain { text += "\(member.name.asTOMLKey) = \(member.node.inlineTOML)\n" }
        for member in members where isSection(member) {
            let inner = (title.isEmpty ? "" : "\(title).") + member.name.asTOMLKey
            text += member.node.sections(inner)
        }
        return text
    }
}

extension String {
    /// Bare where TOML allows it.
    var asTOMLKey: String {
        let isBare =
            !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
        return isBare ? self : asTOML
    }
}
