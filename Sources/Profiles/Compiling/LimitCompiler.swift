import WaypostCore

/// Compiles `limits.<name>`: constants are checked at once, rows when they are planned.
struct LimitCompiler {
    let reader: ProfileReader
    let constants: ProfileConstants

    func limits(_ tree: ProfileNode) -> [CompiledProfile.Limit] {
        guard let member = tree.member("limits"), let members = reader.table(member.node, "limits") else { return [] }
        var limits: [CompiledProfile.Limit] = []
        for member in members {
            // A dotted key makes a table of its own: limits.vars.name.
            if member.name == "vars", case .table(let names) = member.node.value {
                for name in names { judge("vars.\(name.name)", name, &limits) }
            } else {
                judge(member.name, member, &limits)
            }
        }
        return limits
    }

    private func judge(_ name: String, _ member: ProfileNode.Member, _ limits: inout [CompiledProfile.Limit]) {
        let path = "limits.\(name)"
        let constant: String?
        switch name {
        case "device": constant = constants.device
        case "endpoint": constant = constants.endpoint
        case _ where name.hasPrefix("vars."): constant = constants.vars[String(name.dropFirst(5))]
        default: constant = nil
        }
        let record = RecordName(rawValue: name)
        let isText = constant != nil || name.hasPrefix("vars.") || record?.type == .string
        let isNumber = record.map { $0.type == .int || $0.type == .float } ?? false
        guard isText || isNumber else {
            let known = RecordName.allCases.map(\.rawValue) + ["device", "endpoint"]
            reader.report(
                path, "found \(name), expected the name of a number or a text", suggestion: nearest(name, in: known),
                at: member.position ?? member.node.position)
            return
        }
        guard let rule = rule(member.node, path, isText: isText) else { return }
        if let constant {
            guard let broken = rule.broken(by: .text(constant)) else { return }
            reader.report(
                "\(path).\(broken)", "found \(name) = \"\(constant)\", expected a value that keeps \(broken)",
                at: member.node.member(broken)?.node.position ?? member.node.position)
        } else if let record {
            limits.append(.init(name: record, rule: rule))
        }
    }

    private func rule(_ node: ProfileNode, _ path: String, isText: Bool) -> LimitRule? {
        let keys = isText ? ["min_len", "max_len", "pattern"] : ["min", "max"]
        guard let members = reader.table(node, path, expected: "a table of \(keys.joined(separator: ", "))") else {
            return nil
        }
        reader.checkKeys(members, keys, in: path)
        var rule = LimitRule()
        rule.minLength = reader.integer(node, "min_len", in: 0...1 << 20, path: path + ".")
        rule.maxLength = reader.integer(node, "max_len", in: 0...1 << 20, path: path + ".")
        rule.min = reader.number(node.member("min")?.node, path + ".min")
        rule.max = reader.number(node.member("max")?.node, path + ".max")
        if let pattern = node.member("pattern")?.node, let text = reader.string(pattern, path + ".pattern") {
            rule.pattern = TextPattern(text)
            if rule.pattern == nil {
                reader.report(
                    pattern, path + ".pattern",
                    expected: "characters, ., \\d, \\w, \\s, \\p{L}, \\p{N} and [classes], each with ?, *, + or {n,m}")
            }
        }
        return rule
    }
}
