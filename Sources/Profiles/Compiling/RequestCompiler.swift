import WaypostCore

/// Compiles what requests consist of: bodies, URLs and headers.
struct RequestCompiler {
    let reader: ProfileReader
    let templates: TemplateCompiler
    let encoding: CompiledProfile.Encoding
    /// Maximum rows of one request; nil = not limited by the profile.
    let maxRecords: Int?
    /// A body names `trackable` beside its rows.
    private(set) var bodyNamesTrackable = false

    init(
        _ encoding: CompiledProfile.Encoding, maxRecords: Int?, _ templates: TemplateCompiler
    ) {
        self.encoding = encoding
        self.maxRecords = maxRecords
        self.templates = templates
        reader = templates.reader
    }

    /// The templates of rows; those in `tree` replace those of `base`.
    mutating func variant(
        _ tree: ProfileNode, _ path: String = "", over base: CompiledProfile.Variant? = nil
    ) -> CompiledProfile.Variant {
        var variant = base ?? CompiledProfile.Variant()
        switch encoding {
        case .compact: break
        case .lines:
            if let member = tree.member("line") {
                variant.line = reader.string(member.node, path + "line").flatMap {
                    templates.text($0, TemplateSite(.line, path + "line", of: member.node))
                }
            } else if base == nil {
                reader.report("line", "found no line, expected the text of a record", at: tree.position)
            }
        case .csv, .query, .form:
            if let member = tree.member("record") {
                variant.fields = fields(member.node, path + "record")
            } else if base == nil {
                reader.report("record", "found no record, expected a table of fields", at: tree.position)
            }
        case .json, .ndjson:
            if let member = tree.member("record") {
                variant.record = templates.json(member.node, .record, path + "record")
            } else if base == nil {
                reader.report("record", "found no record, expected the template of a record", at: tree.position)
            }
            if encoding == .json { variant.body = body(tree, path, over: base) }
        }
        return variant
    }

    private mutating func body(
        _ tree: ProfileNode, _ path: String, over base: CompiledProfile.Variant?
    ) -> JSONTemplate? {
        let single = maxRecords == 1
        guard let member = tree.member("body") else {
            // An array of records, or the one record that there is.
            return base?.body ?? templates.json(single ? "$record" : "$records", .body, "body")
        }
        let (template, named) = templates.names.named { templates.json(member.node, .body, path + "body") }
        bodyNamesTrackable = bodyNamesTrackable || named.records.contains(.trackable)
        let bearsRows = named.batch.contains(.records) || (single && named.batch.contains(.record))
        if !bearsRows {
            let expected = single ? "$record or $records" : "$records"
            reader.report(
                path + "body", "found a body without \(expected), expected the place of the rows",
                at: member.node.position ?? member.position)
        }
        return template
    }

    private func fields(_ node: ProfileNode, _ path: String) -> [CompiledProfile.Field] {
        var fields: [CompiledProfile.Field] = []
        for member in reader.table(node, path, expected: "a table of fields") ?? [] {
            let keyPath = "\(path).\(member.name)"
            switch member.node.value {
            case .table, .array:
                reader.report(member.node, keyPath, expected: "one value: encoding = \"\(encoding.rawValue)\" is flat")
            case .string(let content):
                if let value = templates.text(content, TemplateSite(.field, keyPath, of: member.node)) {
                    fields.append(.init(name: member.name, value: value))
                }
            case .integer, .float, .boolean:
                fields.append(.init(name: member.name, value: TextTemplate(parts: [.literal(member.node.found)])))
            }
        }
        return fields
    }

    /// `on.<event>`.
    mutating func overrides(_ tree: ProfileNode, into parts: inout CompiledProfile.Parts) {
        guard let base = parts.variants.first else { return }
        for (event, member) in events(tree) {
            let path = "on.\(event.rawValue)"
            if case .string("skip") = member.node.value {
                parts.choices[event] = .skip
                continue
            }
            guard let members = reader.table(member.node, path, expected: "a table, or \"skip\"") else { continue }
            reader.checkKeys(
                members, [tree.member("mqtt") == nil ? "url" : "topic", "record", "body", "line"], in: path)
            parts.choices[event] = .variant(parts.variants.count)
            parts.variants.append(variant(member.node, path + ".", over: base))
        }
    }

    private func events(_ tree: ProfileNode) -> [(LocationEvent, ProfileNode.Member)] {
        guard let on = tree.member("on"), let members = reader.table(on.node, "on") else { return [] }
        let known = LocationEvent.allCases.filter { $0 != .none }
        reader.checkKeys(members, known.map(\.rawValue), in: "on")
        return members.compactMap { member in
            known.first { $0.rawValue == member.name }.map { ($0, member) }
        }
    }

    /// The URLs of all variants, after their bodies.
    func urls(_ tree: ProfileNode, into parts: inout CompiledProfile.Parts) {
        guard !parts.variants.isEmpty else { return }
        let base = url(tree.member("url")?.node, .url, "url")
        for index in parts.variants.indices { parts.variants[index].url = base }
        // What is wrong with `on` itself was reported with the bodies.
        guard let on = tree.member("on"), case .table(let members) = on.node.value else { return }
        for member in members {
            guard let event = LocationEvent(rawValue: member.name), case .variant(let index)? = parts.choices[event],
                let node = member.node.member("url")?.node
            else { continue }
            parts.variants[index].url = url(node, .url, "on.\(member.name).url")
        }
    }

    func url(_ node: ProfileNode?, _ use: TemplateUse, _ keyPath: String) -> TextTemplate {
        let base = TextTemplate.Part.reference(TemplateExpression(source: .endpoint(.baseURL)))
        guard let node, let content = reader.string(node, keyPath) else { return TextTemplate(parts: [base]) }
        guard let template = templates.text(content, TemplateSite(use, keyPath, of: node)) else {
            return TextTemplate(parts: [base])
        }
        if template.parts.first != base {
            reader.report(node, keyPath, expected: "a URL that begins with ${base_url}")
        } else if template.parts.contains(where: { $0.hasUnwritable }) {
            reader.report(
                node, keyPath,
                expected: "a URL without spaces, control characters or non-ASCII characters: write them as %XX")
        }
        return template
    }

    func headers(_ tree: ProfileNode) -> [CompiledProfile.Field] {
        let (given, removed) = headerTable(tree.member("headers")?.node, .header, "headers")
        var headers: [CompiledProfile.Field] = []
        let isNamed = { (name: String) in
            removed.contains(name) || given.contains { $0.name.lowercased() == name }
        }
        // Servers of forms and queries work with single records and know no such header.
        if !encoding.isSingle, !isNamed("idempotency-key") {
            // A structured-field string, so with quotes (draft-ietf-httpapi-idempotency-key-header-07).
            let id = TextTemplate.Part.reference(TemplateExpression(source: .batch(.id)))
            headers.append(
                .init(name: "Idempotency-Key", value: TextTemplate(parts: [.literal("\""), id, .literal("\"")])))
        }
        return headers + given
    }

    /// - Returns: the headers, and in lower case the names of those that are `false`.
    func headerTable(
        _ node: ProfileNode?, _ use: TemplateUse, _ path: String
    ) -> (given: [CompiledProfile.Field], removed: Set<String>) {
        var given: [CompiledProfile.Field] = []
        var removed: Set<String> = []
        for member in reader.table(node, path) ?? [] {
            let keyPath = "\(path).\(member.name)"
            if member.name.isEmpty || !member.name.utf8.allSatisfy(\.isTokenCharacter) {
                reader.report(
                    keyPath, "found \"\(member.name)\", expected the name of a header",
                    at: member.position ?? member.node.position)
            }
            if case .boolean(false) = member.node.value {
                removed.insert(member.name.lowercased())
                continue
            }
            guard let content = reader.string(member.node, keyPath, expected: "a string, or false for no such header"),
                let template = templates.text(content, TemplateSite(use, keyPath, of: member.node))
            else { continue }
            if breaksLine(template.parts) {
                reader.report(
                    keyPath, "found a line break or a NUL in the value, expected neither in a header",
                    at: member.node.position)
            }
            given.append(.init(name: member.name, value: template))
        }
        return (given, removed)
    }

    private func breaksLine(_ parts: [TextTemplate.Part]) -> Bool {
        parts.contains { part in
            switch part {
            case .literal(let text): text.utf8.contains(where: \.breaksHeader)
            case .reference(let expression):
                templates.names.value(of: expression.source)?.utf8.contains(where: \.breaksHeader) ?? false
            case .optional(let inner): breaksLine(inner)
            }
        }
    }

    func method(_ tree: ProfileNode, _ keyPath: String, usual: String = "POST") -> String {
        guard let member = tree.member("method") else { return usual }
        return (reader.word(member.node, keyPath) as RequestMethod?)?.rawValue ?? usual
    }

    func contentType(_ tree: ProfileNode) -> String? {
        guard let member = tree.member("content_type"), let text = reader.string(member.node, "content_type") else {
            return nil
        }
        if text.isEmpty || text.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }) {
            reader.report(member.node, "content_type", expected: "a media type, as \"application/json\"")
        }
        return text
    }

    /// A request without rows: the one that binds an asset (`bind`), or one that stores nothing (`probe`).
    ///
    /// - Parameter method: the usual one.
    func plain(_ tree: ProfileNode, _ key: String, method usual: String = "POST") -> CompiledProfile.Plain? {
        guard let member = tree.member(key), let members = reader.table(member.node, key) else { return nil }
        reader.checkKeys(members, ["method", "url", "headers", "body"], in: key)
        var plain = CompiledProfile.Plain()
        plain.method = method(member.node, "\(key).method", usual: usual)
        plain.url = url(member.node.member("url")?.node, .bindURL, "\(key).url")
        plain.headers = headerTable(member.node.member("headers")?.node, .bindHeader, "\(key).headers").given
        plain.body = member.node.member("body").map { templates.json($0.node, .bindBody, "\(key).body") }
        return plain
    }
}

extension TextTemplate.Part {
    /// A literal that a URL must not contain.
    fileprivate var hasUnwritable: Bool {
        switch self {
        case .literal(let text):
            text.utf8.contains { $0 <= 0x20 || $0 >= 0x7F || $0 == 0x22 || $0 == 0x3C || $0 == 0x3E }
        case .reference: false
        case .optional(let inner): inner.contains { $0.hasUnwritable }
        }
    }
}

private enum RequestMethod: String, CaseIterable {
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case get = "GET"
}
