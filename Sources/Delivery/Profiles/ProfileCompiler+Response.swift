extension ProfileCompiler {
    /// `response`: what replies mean.
    mutating func response(_ tree: ProfileNode) -> ResponseRules {
        var rules = ResponseRules()
        guard let member = tree.member("response"), let members = table(member.node, "response") else { return rules }
        let classes = ResponseRules.Class.allCases
        checkKeys(
            members, ["ok_status", "ok_json", "item_errors", "collision", "stored"] + classes.map(\.rawValue),
            in: "response")
        let node = member.node
        rules.okStatus = node.member("ok_status").flatMap { statuses($0.node, "response.ok_status") }
        rules.okJSON = node.member("ok_json").flatMap { okJSON($0.node, "response.ok_json") }
        rules.itemErrors = node.member("item_errors").flatMap { itemErrors($0.node, "response.item_errors") }
        rules.collision = collisions(node.member("collision")?.node, "response.collision")
        rules.storedPath = string(node.member("stored")?.node, "response.stored", expected: "the way to a number")
            .map(Self.way)
        for each in classes {
            guard let list = node.member(each.rawValue)?.node else { continue }
            rules.classes[each] = statuses(list, "response.\(each.rawValue)")
        }
        return rules
    }

    private static func way(_ text: String) -> [String] { text.split(separator: ".").map(String.init) }

    /// `[404, "5xx"]`.
    private mutating func statuses(_ node: ProfileNode, _ keyPath: String) -> Set<Int>? {
        let expected = "a list of statuses, as [404, \"5xx\"]"
        guard case .array(let items) = node.value else {
            report(node, keyPath, expected: expected)
            return nil
        }
        var statuses: Set<Int> = []
        for (index, item) in items.enumerated() {
            switch item.value {
            case .integer(let number) where (100...599).contains(number): statuses.insert(Int(number))
            case .string(let word) where word.utf8.count == 3 && word.hasSuffix("xx"):
                if let digit = word.first?.wholeNumberValue, (1...5).contains(digit) {
                    statuses.formUnion(digit * 100...digit * 100 + 99)
                } else {
                    fallthrough
                }
            default: report(item, "\(keyPath)[\(index)]", expected: "a status of 100 to 599, or a class as \"5xx\"")
            }
        }
        return statuses
    }

    /// A way, or alternatives.
    private mutating func ways(_ node: ProfileNode?, _ keyPath: String, at position: ProfileNode.Position?)
        -> [[String]]
    {
        let expected = "the way into the reply, as \"a.b\", or a list of alternatives"
        switch node?.value {
        case .string(let text)?: return [Self.way(text)]
        case .array(let items)?:
            return items.enumerated().compactMap { index, item in
                string(item, "\(keyPath)[\(index)]", expected: expected).map(Self.way)
            }
        case nil: report(keyPath, "found no path, expected \(expected)", at: position)
        default: if let node { report(node, keyPath, expected: expected) }
        }
        return []
    }

    /// Scalars, as text.
    private mutating func scalars(_ node: ProfileNode?, _ keyPath: String) -> [String]? {
        guard let node else { return nil }
        guard case .array(let items) = node.value else {
            report(node, keyPath, expected: "a list of values")
            return nil
        }
        return items.enumerated().compactMap { index, item in
            switch item.value {
            case .string(let text): return text
            case .integer, .float, .boolean: return item.found
            case .table, .array:
                report(item, "\(keyPath)[\(index)]", expected: "a string, a number, true or false")
                return nil
            }
        }
    }

    private mutating func okJSON(_ node: ProfileNode, _ path: String) -> ResponseRules.OkJSON? {
        guard let members = table(node, path) else { return nil }
        checkKeys(members, ["path", "in", "missing_ok"], in: path)
        let paths = ways(node.member("path")?.node, path + ".path", at: node.position)
        let values = scalars(node.member("in")?.node, path + ".in")
        if node.member("in") == nil {
            report(path + ".in", "found no list, expected the good values, as [\"ok\"]", at: node.position)
        }
        return ResponseRules.OkJSON(
            paths: paths, values: values ?? [], missingIsOk: flag(node, "missing_ok", in: path + ".") ?? false)
    }

    private mutating func itemErrors(_ node: ProfileNode, _ path: String) -> ResponseRules.ItemErrors? {
        guard let members = table(node, path) else { return nil }
        checkKeys(members, ["path", "match", "by", "code", "reason", "retry_codes", "auth_codes", "always"], in: path)
        let match = itemMatch(node, path)
        var ways: [String: [String]] = [:]
        for key in ["path", "code"] {
            guard let member = node.member(key) else {
                report("\(path).\(key)", "found no \(key), expected the way into the reply", at: node.position)
                continue
            }
            ways[key] = string(member.node, "\(path).\(key)", expected: "a way, as \"a.b\"").map(Self.way)
        }
        return ResponseRules.ItemErrors(
            path: ways["path"] ?? [], match: match, code: ways["code"] ?? [],
            reason: string(node.member("reason")?.node, path + ".reason").map(Self.way),
            retryCodes: scalars(node.member("retry_codes")?.node, path + ".retry_codes") ?? [],
            authCodes: scalars(node.member("auth_codes")?.node, path + ".auth_codes") ?? [],
            always: flag(node, "always", in: path + ".") ?? false)
    }

    private mutating func itemMatch(_ node: ProfileNode, _ path: String) -> ResponseRules.ItemErrors.Match {
        if let by = node.member("by") {
            if case .string("index") = by.node.value {} else { report(by.node, path + ".by", expected: "\"index\"") }
            if let match = node.member("match") {
                report(match.node, path + ".match", expected: "one of match and by")
            }
            return .index
        }
        guard let match = node.member("match") else {
            report(
                path + ".match", "found neither match nor by, expected match = { id = \"$id\" } or by = \"index\"",
                at: node.position)
            return .index
        }
        var fields: [String: String] = [:]
        for member in table(match.node, path + ".match") ?? [] {
            let keyPath = "\(path).match.\(member.name)"
            guard let content = string(member.node, keyPath, expected: "a reference, as \"$seq\"") else { continue }
            guard case .success(.reference(let reference)) = TemplateParser.parse(content, allowsSegments: false) else {
                report(member.node, keyPath, expected: "a reference, as \"$seq\"")
                continue
            }
            guard let expression = expression(reference, .record, keyPath, at: member.node.position) else { continue }
            if expression.isObject { report(member.node, keyPath, expected: "a reference to a single value") }
            fields[member.name] = String(content.dropFirst())
        }
        if fields.isEmpty, case .table(let members) = match.node.value, members.isEmpty {
            report(match.node, path + ".match", expected: "a table as { seq = \"$seq\" }")
        }
        return .fields(fields)
    }

    private mutating func collisions(_ node: ProfileNode?, _ path: String) -> [ResponseRules.CollisionSign] {
        guard let node else { return [] }
        guard case .array(let items) = node.value else {
            report(node, path, expected: "a list, as [{ status = [409] }]")
            return []
        }
        return items.enumerated().compactMap { index, item in collision(item, "\(path)[\(index)]") }
    }

    private mutating func collision(_ node: ProfileNode, _ path: String) -> ResponseRules.CollisionSign? {
        guard let members = table(node, path) else { return nil }
        checkKeys(members, ["status", "json"], in: path)
        if members.isEmpty { report(node, path, expected: "status, json, or both") }
        var sign = ResponseRules.CollisionSign()
        if let status = node.member("status") {
            sign.status = (statuses(status.node, path + ".status") ?? []).sorted()
            if sign.status.isEmpty { report(status.node, path + ".status", expected: "at least one status") }
        }
        guard let json = node.member("json"), let parts = table(json.node, path + ".json") else { return sign }
        checkKeys(parts, ["path", "equals", "contains"], in: path + ".json")
        sign.paths = ways(json.node.member("path")?.node, path + ".json.path", at: json.node.position)
        sign.equals = string(json.node.member("equals")?.node, path + ".json.equals")
        sign.contains = string(json.node.member("contains")?.node, path + ".json.contains")
        return sign
    }
}
