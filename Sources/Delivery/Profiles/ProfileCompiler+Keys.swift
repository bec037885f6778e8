import Positioning

extension ProfileCompiler {
    /// Keys of a profile that the configuration reads itself.
    static let suggestionKeys = [
        "extends", "auth", "sign", "compress", "batch_size", "batch_window", "min_batch", "delivery", "max_age",
        "fresh_head", "vars", "secrets",
    ]
    static let ownKeys = [
        "method", "url", "headers", "encoding", "content_type", "ascii", "max_records", "max_bytes", "record", "body",
        "line", "columns", "on", "geofence_actions", "require", "limits", "response", "bind",
    ]

    mutating func checkKeys(
        _ members: [ProfileNode.Member], _ known: [String] = ownKeys + suggestionKeys, in path: String = ""
    ) {
        for member in members where !known.contains(member.name) {
            let keyPath = path.isEmpty ? member.name : "\(path).\(member.name)"
            report(
                keyPath, "found the unknown key \(member.name), expected one of \(known.joined(separator: ", "))",
                suggestion: nearest(member.name, in: known), at: member.position ?? member.node.position)
        }
    }

    /// The members of a table; nil when there is none or when it is something else.
    mutating func table(_ node: ProfileNode?, _ keyPath: String, expected: String = "a table") -> [ProfileNode.Member]?
    {
        guard let node else { return nil }
        if case .table(let members) = node.value { return members }
        report(node, keyPath, expected: expected)
        return nil
    }

    mutating func string(_ node: ProfileNode?, _ keyPath: String, expected: String = "a string") -> String? {
        guard let node else { return nil }
        if case .string(let text) = node.value { return text }
        report(node, keyPath, expected: expected)
        return nil
    }

    /// A list of strings.
    mutating func strings(_ node: ProfileNode?, _ keyPath: String, expected: String) -> [(ProfileNode, String)]? {
        guard let node else { return nil }
        guard case .array(let items) = node.value else {
            report(node, keyPath, expected: expected)
            return nil
        }
        var list: [(ProfileNode, String)] = []
        for (index, item) in items.enumerated() {
            if let text = string(item, "\(keyPath)[\(index)]") { list.append((item, text)) }
        }
        return list
    }

    mutating func flag(_ tree: ProfileNode, _ key: String, in path: String = "") -> Bool? {
        guard let member = tree.member(key) else { return nil }
        if case .boolean(let flag) = member.node.value { return flag }
        report(member.node, path + key, expected: "true or false")
        return nil
    }

    mutating func integer(_ tree: ProfileNode, _ key: String, in range: ClosedRange<Int>, path: String = "") -> Int? {
        guard let member = tree.member(key) else { return nil }
        if case .integer(let number) = member.node.value, let number = Int(exactly: number), range.contains(number) {
            return number
        }
        report(member.node, path + key, expected: "an integer, \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    /// A word out of a list.
    mutating func word<Word: CaseIterable & RawRepresentable>(_ node: ProfileNode, _ keyPath: String) -> Word?
    where Word.RawValue == String {
        let words = Word.allCases.map(\.rawValue)
        let expected = "one of " + words.map { "\"\($0)\"" }.joined(separator: ", ")
        guard let text = string(node, keyPath, expected: expected) else { return nil }
        if let word = Word(rawValue: text) { return word }
        report(node, keyPath, expected: expected, suggestion: nearest(text, in: words).map { "\"\($0)\"" })
        return nil
    }

    mutating func encoding(_ tree: ProfileNode) -> CompiledProfile.Encoding {
        tree.member("encoding").flatMap { word($0.node, "encoding") } ?? .json
    }

    mutating func maxRecords(_ tree: ProfileNode, _ encoding: CompiledProfile.Encoding) -> Int? {
        let given = integer(tree, "max_records", in: 1...100_000)
        guard encoding.isSingle else { return given }
        if let given, given > 1, let member = tree.member("max_records") {
            report(member.node, "max_records", expected: "1 with encoding = \"\(encoding.rawValue)\"")
        }
        return 1
    }

    mutating func method(_ tree: ProfileNode, _ keyPath: String) -> String {
        guard let member = tree.member("method") else { return "POST" }
        return (word(member.node, keyPath) as RequestMethod?)?.rawValue ?? "POST"
    }

    mutating func contentType(_ tree: ProfileNode) -> String? {
        guard let member = tree.member("content_type"), let text = string(member.node, "content_type") else {
            return nil
        }
        if text.isEmpty || text.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }) {
            report(member.node, "content_type", expected: "a media type, as \"application/json\"")
        }
        return text
    }

    mutating func columns(_ tree: ProfileNode, _ encoding: CompiledProfile.Encoding) -> [CompactColumn] {
        let expected = "a list of columns"
        guard let member = tree.member("columns"), let list = strings(member.node, "columns", expected: expected) else {
            return encoding == .compact ? CompactColumn.standard : []
        }
        if encoding != .compact {
            report(
                "columns", "found columns with encoding = \"\(encoding.rawValue)\", expected encoding = \"compact\"",
                at: member.position ?? member.node.position)
        }
        var columns = CompactColumn.standard
        let names = CompactColumn.further.map(\.name.rawValue)
        for (index, (node, text)) in list.enumerated() {
            if let column = CompactColumn.further.first(where: { $0.name.rawValue == text }) {
                if !columns.contains(column) { columns.append(column) }
            } else if !columns.contains(where: { $0.title == text }) {
                report(
                    node, "columns[\(index)]", expected: "one of \(names.joined(separator: ", "))",
                    suggestion: nearest(text, in: names).map { "\"\($0)\"" })
            }
        }
        return columns
    }

    mutating func geofenceActions(_ tree: ProfileNode) -> Set<GeofenceCrossing.Action>? {
        guard let member = tree.member("geofence_actions") else { return nil }
        guard case .array(let items) = member.node.value else {
            report(member.node, "geofence_actions", expected: "a list of \"enter\", \"exit\", \"dwell\"")
            return nil
        }
        var actions: Set<GeofenceCrossing.Action> = []
        for (index, item) in items.enumerated() {
            if let action: GeofenceCrossing.Action = word(item, "geofence_actions[\(index)]") { actions.insert(action) }
        }
        return actions
    }

    mutating func require(_ tree: ProfileNode) -> [RecordName] {
        guard let member = tree.member("require"),
            let list = strings(member.node, "require", expected: "a list of names")
        else { return [] }
        let names = RecordName.allCases.map(\.rawValue)
        var required: [RecordName] = []
        for (index, (node, text)) in list.enumerated() {
            if let name = RecordName(rawValue: text), name != .location {
                required.append(name)
            } else {
                report(
                    node, "require[\(index)]", expected: "the name of a value of a record",
                    suggestion: nearest(text, in: names).map { "\"\($0)\"" })
            }
        }
        return required
    }
}

private enum RequestMethod: String, CaseIterable {
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case get = "GET"
}
