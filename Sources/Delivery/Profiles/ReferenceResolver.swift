import Positioning

/// Looks up the names that templates use, and records which those are.
final class ReferenceResolver {
    let constants: ProfileConstants
    /// Maximum rows of one request; nil = not limited by the profile.
    private let maxRecords: Int?
    private let reader: ProfileReader
    private var named = NamedReferences()

    init(_ constants: ProfileConstants, maxRecords: Int? = nil, reader: ProfileReader = ProfileReader()) {
        self.constants = constants
        self.maxRecords = maxRecords
        self.reader = reader
    }

    /// What templates name that are compiled in `body`.
    func named<Value>(in body: () -> Value) -> (value: Value, named: NamedReferences) {
        let before = named
        named = NamedReferences()
        defer { named = before + named }
        let value = body()
        return (value, named)
    }

    /// Looks up the name, checks the casts; nil when something was reported.
    func expression(
        _ reference: TemplateSyntax.Reference, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> TemplateExpression? {
        guard let (source, type) = source(reference, use, keyPath, at: position) else { return nil }
        guard let casts = casts(reference, of: type, keyPath, at: position) else { return nil }
        let expression = TemplateExpression(source: source, casts: casts, fallback: reference.fallback)
        if use.needsValues, reference.fallback == .null {
            reader.report(
                keyPath, "found the default null of $\(reference.name), expected text or a number here", at: position)
            return nil
        }
        return expression
    }

    private func casts(
        _ reference: TemplateSyntax.Reference, of type: ValueType, _ keyPath: String, at position: ProfileNode.Position?
    ) -> [TemplateCast]? {
        var type = type
        var casts: [TemplateCast] = []
        for word in reference.casts {
            guard let cast = TemplateCast(word: word) else {
                let words = TemplateCast.words.map(\.0)
                reader.report(
                    keyPath, "found the cast :\(word), expected one of \(words.joined(separator: ", "))",
                    suggestion: nearest(word, in: words).map { ":\($0)" }, at: position)
                return nil
            }
            guard let after = cast.type(of: type) else {
                reader.report(
                    keyPath, "found :\(word) on $\(reference.name), which is \(type.words), expected \(cast.fits)",
                    at: position)
                return nil
            }
            type = after
            casts.append(cast)
        }
        return casts
    }

    private func source(
        _ reference: TemplateSyntax.Reference, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> (TemplateExpression.Source, ValueType)? {
        let name = reference.name
        if name.hasPrefix("vars.") || name.hasPrefix("secret.") {
            return ownConstant(reference, keyPath, at: position).map { ($0, .string) }
        }
        guard !reference.isOptional else {
            reader.report(keyPath, "found $\(name)?, expected ? only behind vars.NAME and secret.NAME", at: position)
            return nil
        }
        if name == "auth.token" {
            named.hasSecret = true
            if constants.hasToken { return (.token, .string) }
            reader.report(
                keyPath, "found $auth.token without auth, expected auth = { kind = \"token_command\", … }", at: position
            )
            return nil
        }
        if let endpoint = EndpointReference(rawValue: name) { return (source(endpoint), .string) }
        if let batch = BatchName(rawValue: name) { return batchSource(batch, use, keyPath, at: position) }
        if let record = RecordName(rawValue: name) { return recordSource(record, use, keyPath, at: position) }
        if let module = AbsentModule.owner(of: name) {
            reader.report(
                keyPath, "found $\(name) of the \(module) module, expected a name of a module that this version has",
                at: position)
            return nil
        }
        reader.report(
            keyPath, "found $\(name), expected the name of a value",
            suggestion: Self.meant(by: name, in: Self.names(for: use)).map { "$\($0)" }, at: position)
        return nil
    }

    /// `latitude` is a long `lat` before it is a mistyped `altitude`, and `speed` a short `speed_mps`.
    private static func meant(by name: String, in known: [String]) -> String? {
        known.filter { $0.utf8.count >= 3 && name.hasPrefix($0) }.max { $0.utf8.count < $1.utf8.count }
            ?? nearest(name, in: known)
            ?? known.first { name.utf8.count >= 3 && $0.hasPrefix(name) }
    }

    private static func names(for use: TemplateUse) -> [String] {
        let rows = use.allowsRows ? RecordName.allCases.map(\.rawValue) + BatchName.allCases.map(\.rawValue) : []
        return rows + EndpointReference.allCases.map(\.rawValue) + ["auth.token"]
    }

    private func ownConstant(
        _ reference: TemplateSyntax.Reference, _ keyPath: String, at position: ProfileNode.Position?
    ) -> TemplateExpression.Source? {
        let isSecret = reference.name.hasPrefix("secret.")
        let name = String(reference.name.dropFirst(isSecret ? 7 : 5))
        if isSecret, constants.secrets.contains(name) {
            named.hasSecret = true
            return .secret(name)
        }
        if !isSecret, let value = constants.vars[name] {
            named.constants[reference.name] = value
            return .constant(value)
        }
        if reference.isOptional { return .constant(nil) }
        let table = isSecret ? "secrets" : "vars"
        let present = isSecret ? constants.secrets.sorted() : constants.vars.keys.sorted()
        reader.report(
            keyPath, "found $\(reference.name) without its value, expected \(table) = { \(name) = … } at the endpoint",
            suggestion: nearest(name, in: present).map { "$\(isSecret ? "secret" : "vars").\($0)" }, at: position)
        return nil
    }

    private func source(_ name: EndpointReference) -> TemplateExpression.Source {
        switch name {
        case .baseURL: named.constants[name.rawValue] = constants.baseURL
        case .device: named.constants[name.rawValue] = constants.device
        case .endpoint: named.constants[name.rawValue] = constants.endpoint
        case .agentVersion:
            named.constants[name.rawValue] = constants.agentVersion
            return .constant(constants.agentVersion)
        }
        return .endpoint(name)
    }

    private func batchSource(
        _ name: BatchName, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> (TemplateExpression.Source, ValueType)? {
        guard use.allowsRows else {
            reader.report(
                keyPath, "found $\(name.rawValue), expected only names of the endpoint where no rows are", at: position)
            return nil
        }
        named.batch.insert(name)
        return (.batch(name), name.type)
    }

    private func recordSource(
        _ name: RecordName, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> (TemplateExpression.Source, ValueType)? {
        guard use.allowsRows else {
            reader.report(
                keyPath, "found $\(name.rawValue), expected only names of the endpoint where no rows are", at: position)
            return nil
        }
        if use.isShared, maxRecords != 1, name != .trackable {
            reader.report(
                keyPath,
                "found $\(name.rawValue), which each record has its own of, expected a name that all records share, "
                    + "or max_records = 1", at: position)
            return nil
        }
        named.records.insert(name)
        return (.record(name), name.type)
    }

    /// What is known of a source before there are rows.
    func value(of source: TemplateExpression.Source) -> String? {
        switch source {
        case .constant(let text): text
        case .endpoint(.baseURL): constants.baseURL
        case .endpoint(.device): constants.device
        case .endpoint(.endpoint): constants.endpoint
        case .endpoint(.agentVersion): constants.agentVersion
        case .record, .batch, .secret, .token: nil
        }
    }
}

/// The names that templates use, and the constants whose values decide their bytes.
struct NamedReferences: Hashable {
    var records: Set<RecordName> = []
    var batch: Set<BatchName> = []
    var constants: [String: String] = [:]
    var hasSecret = false

    static func + (a: NamedReferences, b: NamedReferences) -> NamedReferences {
        var sum = a
        sum.records.formUnion(b.records)
        sum.batch.formUnion(b.batch)
        sum.constants.merge(b.constants) { first, _ in first }
        sum.hasSecret = a.hasSecret || b.hasSecret
        return sum
    }
}

/// Where a template is used, which decides what it may name.
enum TemplateUse: Hashable {
    case record, body, url, header, line
    /// A cell, or a field of a form.
    case field
    /// A request without rows.
    case bindURL, bindHeader, bindBody

    /// A nil needs a default or a segment, since there is no key to leave out.
    var needsValues: Bool {
        switch self {
        case .url, .header, .line, .bindURL, .bindHeader: true
        case .record, .body, .field, .bindBody: false
        }
    }

    var allowsRows: Bool {
        switch self {
        case .bindURL, .bindHeader, .bindBody: false
        default: true
        }
    }

    /// All rows of a batch share it.
    var isShared: Bool { self == .body || self == .url || self == .header }
}
