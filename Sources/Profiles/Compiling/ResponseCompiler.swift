/// Compiles `response`: what replies mean.
struct ResponseCompiler {
    let reader: ProfileReader
    let names: ReferenceResolver

    func rules(_ tree: ProfileNode) -> ResponseRules {
        var rules = ResponseRules()
        guard let member = tree.member("response"), let members = reader.table(member.node, "response") else {
            return rules
        }
        let classes = ResponseRules.Class.allCases
        reader.checkKeys(
            members, ["ok_status", "ok_json", "item_errors", "collision", "stored", "html"] + classes.map(\.rawValue),
            in: "response")
        let node = member.node
        rules.okStatus = node.member("ok_status").flatMap { statuses($0.node, "response.ok_status") }
        rules.okJSON = node.member("ok_json").flatMap { okJSON($0.node, "response.ok_json") }
        rules.itemErrors = node.member("item_errors").flatMap { itemErrors($0.node, "response.item_errors") }
        rules.collision = collisions(node.member("collision")?.node, "response.collision")
        rules.storedPath = reader.string(
            node.member("stored")?.node, "response.stored", expected: "the path of a number"
        )
        .map(Self.path)
        if let html = node.member("html") {
            switch html.node.value {
            case .string("accept"): rules.acceptsPages = true
            case .string("retry"): break
            default: reader.report(html.node, "response.html", expected: "\"retry\" or \"accept\"")
            }
        }
        for each in classes {
            guard let list = node.member(each.rawValue)?.node else { continue }
            rules.classes[each] = statuses(list, "response.\(each.rawValue)")
        }
        return rules
    }

    private static func path(_ text: String) -> [String] { text.split(separator: ".").map(String.init) }

    /// `[404, "5xx"]`.
    private func statuses(_ node: ProfileNode, _ keyPath: String) -> Set<Int>? {
        let expected = "a list of statuses, as [404, \"5xx\"]"
        guard case .array(let items) = node.value else {
            reader.report(node, keyPath, expected: expected)
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
            default:
                reader.report(item, "\(keyPath)[\(index)]", expected: "a status of 100 to 599, or a class as \"5xx\"")
            }
        }
        return statuses
    }

    /// A path, or alternatives.
    private func paths(_ node: ProfileNode?, _ keyPath: String, at position: SourcePosition?)
        -> [[String]]
    {
        let expected = "the path into the reply, as \"a.b\", or a list of alternatives"
        switch node?.value {
        case .string(let text)?: return [Self.path(text)]
        case .array(let items)?:
            return items.enumerated().compactMap { index, item in
                reader.string(item, "\(keyPath)[\(index)]", expected: expected).map(Self.path)
            }
        case nil: reader.report(keyPath, "found no path, expected \(expected)", at: position)
        default: if let node { reader.report(node, keyPath, expected: expected) }
        }
        return []
    }

    /// Scalars, as text.
    private func scalars(_ node: ProfileNode?, _ keyPath: String) -> [String]? {
        guard let node else { return nil }
        guard case .array(let items) = node.value else {
            reader.report(node, keyPath, expected: "a list of values")
            return nil
        }
        return items.enumerated().compactMap { index, item in
            switch item.value {
            case .string(let text): return text
            case .integer, .float, .boolean: return item.found
            case .table, .array:
                reader.report(item, "\(keyPath)[\(index)]", expected: "a string, a number, true or false")
                return nil
            }
        }
    }

    private func okJSON(_ node: ProfileNode, _ path: String) -> ResponseRules.OkJSON? {
        guard let members = reader.table(node, path) else { return nil }
        reader.checkKeys(members, ["path", "in", "is", "missing_ok"], in: path)
        let kind = node.member("is")?.node
        if let kind, kind.value != .string("array") { reader.report(kind, path + ".is", expected: "\"array\"") }
        let isWhole = kind != nil && node.member("path") == nil
        let paths = isWhole ? [[]] : paths(node.member("path")?.node, path + ".path", at: node.position)
        let values = scalars(node.member("in")?.node, path + ".in")
        if values != nil, let kind { reader.report(kind, path + ".is", expected: "one of in and is") }
        if node.member("in") == nil, kind == nil {
            reader.report(path + ".in", "found no list, expected the good values, as [\"ok\"]", at: node.position)
        }
        return ResponseRules.OkJSON(
            paths: paths, values: values ?? [], isArray: kind != nil,
            missingIsOk: reader.flag(node, "missing_ok", in: path + ".") ?? false)
    }

    private func itemErrors(_ node: ProfileNode, _ path: String) -> ResponseRules.ItemErrors? {
        guard let members = reader.table(node, path) else { return nil }
        reader.checkKeys(
            members, ["path", "match", "by", "code", "reason", "retry_codes", "auth_codes", "always"], in: path)
        let match = itemMatch(node, path)
        var required: [String: [String]] = [:]
        for key in ["path", "code"] {
            guard let member = node.member(key) else {
                reader.report("\(path).\(key)", "found no \(key), expected the path into the reply", at: node.position)
                continue
            }
            required[key] = reader.string(member.node, "\(path).\(key)", expected: "a path, as \"a.b\"").map(Self.path)
        }
        return ResponseRules.ItemErrors(
            path: required["path"] ?? [], match: match, code: required["code"] ?? [],
            reason: reader.string(node.member("reason")?.node, path + ".reason").map(Self.path),
            retryCodes: scalars(node.member("retry_codes")?.node, path + ".retry_codes") ?? [],
            authCodes: scalars(node.member("auth_codes")?.node, path + ".auth_codes") ?? [],
            always: reader.flag(node, "always", in: path + ".") ?? false)
    }

    private func itemMatch(_ node: ProfileNode, _ path: String) -> ResponseRules.ItemErrors.Match {
        if let by = node.member("by") {
            if case .string("index") = by.node.value {
            } else {
                reader.report(by.node, path + ".by", expected: "\"index\"")
            }
            if let match = node.member("match") {
                reader.report(match.node, path + ".match", expected: "one of match and by")
            }
            return .index
        }
        guard let match = node.member("match") else {
            reader.report(
                path + ".match", "found neither match nor by, expected match = { id = \"$id\" } or by = \"index\"",
                at: node.position)
            return .index
        }
        var fields: [String: String] = [:]
        for member in reader.table(match.node, path + ".match") ?? [] {
            let keyPath = "\(path).match.\(member.name)"
            guard let content = reader.string(member.node, keyPath, expected: "a reference, as \"$seq\"") else {
                continue
            }
            guard case .success(.reference(let reference)) = TemplateParser.parse(content, allowsSegments: false) else {
                reader.report(member.node, keyPath, expected: "a reference, as \"$seq\"")
                continue
            }
            let site = TemplateSite(.record, keyPath, of: member.node)
            guard
                let expression = reader.attempt({ () throws(ProfileProblem) in try names.expression(reference, site) })
            else { continue }
            if expression.isObject { reader.report(member.node, keyPath, expected: "a reference to a single value") }
            fields[member.name] = String(content.dropFirst())
        }
        if fields.isEmpty, case .table(let members) = match.node.value, members.isEmpty {
            reader.report(match.node, path + ".match", expected: "a table as { seq = \"$seq\" }")
        }
        return .fields(fields)
    }

    private func collisions(_ node: ProfileNode?, _ path: String) -> [ResponseRules.CollisionSign] {
        guard let node else { return [] }
        guard case .array(let items) = node.value else {
            reader.report(node, path, expected: "a list, as [{ status = [409] }]")
            return []
        }
        return items.enumerated().compactMap { index, item in collision(item, "\(path)[\(index)]") }
    }

    private func collision(_ node: ProfileNode, _ path: String) -> ResponseRules.CollisionSign? {
        guard let members = reader.table(node, path) else { return nil }
        reader.checkKeys(members, ["status", "json"], in: path)
        if members.isEmpty { reader.report(node, path, expected: "status, json, or both") }
        var sign = ResponseRules.CollisionSign()
        if let status = node.member("status") {
            sign.status = (statuses(status.node, path + ".status") ?? []).sorted()
            if sign.status.isEmpty { reader.report(status.node, path + ".status", expected: "at least one status") }
        }
        guard let json = node.member("json"), let parts = reader.table(json.node, path + ".json") else { return sign }
        reader.checkKeys(parts, ["path", "equals", "contains"], in: path + ".json")
        sign.paths = paths(json.node.member("path")?.node, path + ".json.path", at: json.node.position)
        sign.equals = reader.string(json.node.member("equals")?.node, path + ".json.equals")
        sign.contains = reader.string(json.node.member("contains")?.node, path + ".json.contains")
        return sign
    }
}
