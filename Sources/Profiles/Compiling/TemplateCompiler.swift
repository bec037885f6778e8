import WaypostCore

/// Compiles texts and trees of JSON with references.
struct TemplateCompiler {
    let reader: ProfileReader
    let names: ReferenceResolver
    /// Text in JSON is escaped down to ASCII.
    let isASCII: Bool

    init(reader: ProfileReader, names: ReferenceResolver, isASCII: Bool) {
        self.reader = reader
        self.names = names
        self.isASCII = isASCII
    }

    /// For templates that name nothing of an endpoint.
    init() {
        reader = ProfileReader()
        names = ReferenceResolver(ProfileConstants(endpoint: "", baseURL: "", device: ""))
        isASCII = false
    }

    /// More would be a mistake, and would cost stack.
    private static let depthMax = 32

    /// A URL, a header, a line or a field; nil when something was reported.
    func text(_ text: String, _ site: TemplateSite) -> TextTemplate? {
        let syntax: TemplateSyntax
        switch TemplateParser.parse(text, allowsSegments: site.use.needsValues) {
        case .success(let parsed): syntax = parsed
        case .failure(let flaw):
            reader.report(site.problem(flaw.message, suggestion: flaw.suggestion))
            return nil
        }
        let parts: [TemplateSyntax.Part] =
            switch syntax {
            case .literal(let text): [.literal(text)]
            case .reference(let reference): [.reference(reference)]
            case .text(let parts): parts
            }
        return self.parts(parts, site).map(TextTemplate.init)
    }

    private func parts(
        _ parts: [TemplateSyntax.Part], _ site: TemplateSite, inSegment: Bool = false
    ) -> [TextTemplate.Part]? {
        let compiled: [TextTemplate.Part?] = parts.map { part in
            switch part {
            case .literal(let text): .literal(text)
            case .optional(let inner): self.parts(inner, site, inSegment: true).map { .optional($0) }
            case .reference(let reference):
                reader.attempt { () throws(ProfileProblem) in
                    .reference(try textExpression(reference, site, inSegment: inSegment))
                }
            }
        }
        return compiled.contains { $0 == nil } ? nil : compiled.compactMap(\.self)
    }

    private func textExpression(
        _ reference: TemplateSyntax.Reference, _ site: TemplateSite, inSegment: Bool
    ) throws(ProfileProblem) -> TemplateExpression {
        let expression = try names.expression(reference, site)
        let name = reference.name
        if expression.isObject {
            throw site.problem("found $\(name) as text, expected it as a value of its own in JSON")
        }
        let isNullable = expression.isNullable || (reference.isOptional && reference.fallback == nil)
        if site.use.needsValues, !inSegment, isNullable {
            throw site.problem(
                "found $\(name), which may be nil, expected it inside [? … ] or with a default",
                suggestion: "[?${\(name)}]")
        }
        if site.use == .line, expression.casts.contains(.tag), let flaw = tagFlaw(expression) {
            throw site.problem("found \(flaw) in the tag $\(name), expected none")
        }
        return expression
    }

    private func tagFlaw(_ expression: TemplateExpression) -> String? {
        guard let text = names.value(of: expression.source) else { return nil }
        if text.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) { return "a line break" }
        return text.hasSuffix("\\") ? "a \\ at the end" : nil
    }

    /// A tree of JSON.
    func json(
        _ node: ProfileNode, _ use: TemplateUse, _ keyPath: String, location: LocationTemplate? = .shared
    ) -> JSONTemplate {
        var template = JSONTemplate(location: location)
        _ = json(node, key: nil, use, keyPath, depth: 0, into: &template)
        return template
    }

    /// - Returns: whether it may be left out.
    private func json(
        _ node: ProfileNode, key: String?, _ use: TemplateUse, _ keyPath: String, depth: Int,
        into template: inout JSONTemplate
    ) -> Bool {
        guard depth < Self.depthMax else {
            reader.report(node, keyPath, expected: "at most \(Self.depthMax) levels")
            return false
        }
        let name = template.piece(key.map { rendered(key: $0) } ?? [])
        switch node.value {
        case .string(let text):
            return leaf(text, name, TemplateSite(use, keyPath, of: node), into: &template)
        case .integer(let number): template.append(.literal(name, template.piece(rendered(.int(number)))))
        case .boolean(let flag): template.append(.literal(name, template.piece(rendered(.bool(flag)))))
        case .float(let number):
            guard let value = RenderedValue(number: String(number)) else {
                reader.report(node, keyPath, expected: "a number of at most 15 digits without exponent")
                return false
            }
            template.append(.literal(name, template.piece(rendered(value))))
        case .table(let members):
            if members.isEmpty {
                template.append(.literal(name, template.piece(Array("{}".utf8))))
                return false
            }
            template.append(.begin(name, isObject: true))
            var mayVanish = true
            for member in members {
                let path = keyPath.isEmpty ? member.name : "\(keyPath).\(member.name)"
                let isNullable = json(member.node, key: member.name, use, path, depth: depth + 1, into: &template)
                mayVanish = mayVanish && isNullable
            }
            template.append(.end)
            return mayVanish
        case .array(let items):
            if items.isEmpty {
                template.append(.literal(name, template.piece(Array("[]".utf8))))
                return false
            }
            template.append(.begin(name, isObject: false))
            var mayVanish = false
            for (index, item) in items.enumerated() {
                let path = "\(keyPath)[\(index)]"
                mayVanish = json(item, key: nil, use, path, depth: depth + 1, into: &template)
                if mayVanish, index < items.count - 1 {
                    reader.report(
                        item, path, expected: "a value that is never nil, or a default: nil may stand only at the end")
                }
            }
            template.append(.end)
            return mayVanish && items.count == 1
        }
        return false
    }

    private func leaf(
        _ text: String, _ key: JSONTemplate.Piece, _ site: TemplateSite, into template: inout JSONTemplate
    ) -> Bool {
        switch TemplateParser.parse(text, allowsSegments: false) {
        case .failure(let flaw):
            reader.report(site.problem(flaw.message, suggestion: flaw.suggestion))
            return false
        case .success(.literal(let text)):
            template.append(.literal(key, template.piece(rendered(.text(text)))))
            return false
        case .success(.reference(let reference)):
            guard
                let expression = reader.attempt({ () throws(ProfileProblem) in try names.expression(reference, site) })
            else { return false }
            let step = reader.attempt { () throws(ProfileProblem) in
                try self.step(expression, key, reference, site, in: &template)
            }
            if let step, let step { template.append(step) }
            return expression.isNullable
        case .success(.text(let parts)):
            guard let parts = self.parts(parts, site) else { return false }
            template.append(.text(key, template.index(of: TextTemplate(parts: parts))))
            return parts.contains { if case .reference(let expression) = $0 { expression.isNullable } else { false } }
        }
    }

    /// The shortest step that writes it; nil = it is always nil.
    private func step(
        _ expression: TemplateExpression, _ key: JSONTemplate.Piece, _ reference: TemplateSyntax.Reference,
        _ site: TemplateSite, in template: inout JSONTemplate
    ) throws(ProfileProblem) -> JSONTemplate.Step? {
        switch expression.source {
        case .constant(let text):
            guard let value = text.map({ RenderedValue.text($0) }) ?? expression.fallback else { return nil }
            let cast = text == nil ? value : expression.casts.reduce(value) { $1.applied(to: $0, of: nil) }
            return .literal(key, template.piece(rendered(cast)))
        case .batch(.records), .batch(.record), .batch(.newest), .record(.location):
            return .object(key, try object(expression, reference, site))
        case .record(let name) where expression.casts.isEmpty && expression.fallback == nil:
            return switch name.type {
            case .object: .json(key, name)
            case .int, .float: .number(key, name, places: name.places)
            case .bool: .flag(key, name)
            case .string: .word(key, name)
            }
        default: return .value(key, expression: template.index(of: expression))
        }
    }

    private func object(
        _ expression: TemplateExpression, _ reference: TemplateSyntax.Reference, _ site: TemplateSite
    ) throws(ProfileProblem) -> JSONTemplate.Object {
        let isInBody = site.use == .body
        let object: JSONTemplate.Object? =
            switch expression.source {
            case .record(.location): .location
            case .batch(.records) where isInBody: .records
            case .batch(.record) where isInBody: .record
            case .batch(.newest) where isInBody: .newest
            default: nil
            }
        guard let object else { throw site.problem("found $\(reference.name), expected it only in body") }
        guard reference.fallback == nil else {
            throw site.problem("found a default of $\(reference.name), expected none for an object")
        }
        return object
    }

    private func rendered(_ value: RenderedValue) -> [UInt8] {
        var writer = JSONWriter(isASCII: isASCII)
        writer.value(value)
        return writer.bytes
    }

    private func rendered(key: String) -> [UInt8] {
        [UInt8(ascii: ",")] + rendered(.text(key)) + [UInt8(ascii: ":")]
    }
}

extension TemplateExpression {
    var isObject: Bool {
        switch source {
        case .record(.location), .batch(.records), .batch(.record), .batch(.newest): true
        default: false
        }
    }
}
