/// An upper bound of what a template writes, without rendering it.
struct SizeBound: Hashable, Sendable {
    /// Bytes that do not depend on text.
    var fixed = 0
    /// Times that a text of the row, the batch or the endpoint is written.
    var texts = 0

    /// Most bytes that escaping makes of one (`\u0007`).
    static let escapeFactor = 6
    /// Sign, 19 digits, point and the comma after them.
    private static let number = 24

    static func + (a: SizeBound, b: SizeBound) -> SizeBound {
        SizeBound(fixed: a.fixed + b.fixed, texts: a.texts + b.texts)
    }

    /// - Parameter longest: bytes of the longest text.
    func bytes(longest: Int) -> Int {
        let (product, overflow) = (texts * Self.escapeFactor).multipliedReportingOverflow(by: longest)
        return overflow ? .max : fixed.addingReportingOverflow(product).overflow ? .max : fixed + product
    }

    init(fixed: Int = 0, texts: Int = 0) {
        self.fixed = fixed
        self.texts = texts
    }

    init(_ expression: TemplateExpression) {
        var constant = expression.fallback?.plain.utf8.count ?? 0
        if case .constant(let text?) = expression.source { constant += text.utf8.count }
        // The escapes of line protocol at most double a text.
        self.init(fixed: Self.number + 2 * Self.escapeFactor * constant, texts: expression.casts.isEmpty ? 1 : 2)
    }

    init(_ text: TextTemplate) {
        self = Self.sum(of: text.parts)
        fixed += 4
    }

    private static func sum(of parts: [TextTemplate.Part]) -> SizeBound {
        parts.reduce(SizeBound()) { sum, part in
            switch part {
            case .literal(let text): sum + SizeBound(fixed: escapeFactor * text.utf8.count)
            case .reference(let expression): sum + SizeBound(expression)
            case .optional(let inner): sum + Self.sum(of: inner)
            }
        }
    }

    /// - Parameter record: of `$record` and `$newest`; `$records` counts as empty.
    init(_ template: JSONTemplate, record: SizeBound = SizeBound()) {
        self.init(fixed: template.pieces.count + 4 * template.steps.count)
        for step in template.steps {
            switch step {
            case .number, .flag: fixed += Self.number
            case .word, .json: texts += 1
            case .value(_, let index): self = self + SizeBound(template.expressions[index])
            case .text(_, let index): self = self + SizeBound(template.texts[index])
            case .object(_, .location): self = self + SizeBound(LocationTemplate.shared.template)
            case .object(_, .record), .object(_, .newest): self = self + record
            case .object(_, .records), .literal, .begin, .end: break
            }
        }
    }

    init(_ columns: [CompactColumn]) {
        self.init(fixed: Self.number * columns.count, texts: columns.count { $0.kind == .text })
    }
}

extension CompiledProfile.Parts {
    /// Of a row in the largest of the templates.
    var boundOfRow: SizeBound {
        if encoding == .compact { return SizeBound(columns) }
        return variants.map { variant in
            var bound = SizeBound()
            if let record = variant.record { bound = bound + SizeBound(record) }
            if let line = variant.line { bound = bound + SizeBound(line) }
            for field in variant.fields {
                bound = bound + SizeBound(field.value) + SizeBound(fixed: 3 * field.name.utf8.count)
            }
            return SizeBound(fixed: bound.fixed + 4, texts: bound.texts)
        }.reduce(SizeBound()) { SizeBound(fixed: max($0.fixed, $1.fixed), texts: max($0.texts, $1.texts)) }
    }

    /// Of what is around the rows.
    var boundOfFrame: SizeBound {
        if encoding == .compact { return SizeBound(columns) + SizeBound(fixed: 256, texts: 2) }
        let row = boundOfRow
        return variants.compactMap(\.body).map { SizeBound($0, record: row) }
            .reduce(
                SizeBound(fixed: 64 + 6 * variants.reduce(0) { $0 + $1.fields.reduce(0) { $0 + $1.name.utf8.count } })
            ) {
                SizeBound(fixed: max($0.fixed, $1.fixed), texts: max($0.texts, $1.texts))
            }
    }
}

extension QueuedLocation {
    /// Bytes of the longest text that it can give.
    var longestText: Int {
        // 36 for an id, 24 for a time.
        var longest = max(40, location.trackable?.utf8.count ?? 0, bootID?.utf8.count ?? 0)
        if let reason = location.reason { longest = max(longest, reason.utf8.count) }
        if let geofence = location.geofence {
            longest = max(longest, geofence.id.utf8.count, geofence.name?.utf8.count ?? 0)
        }
        if let network = location.network {
            longest = max(longest, network.ssid?.utf8.count ?? 0, network.bssid?.utf8.count ?? 0)
        }
        if let change = location.settings { longest = max(longest, change.utf8.count) }
        return longest
    }
}
