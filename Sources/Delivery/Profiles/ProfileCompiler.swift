import Positioning

/// Reads a profile and gathers everything that is wrong with it.
struct ProfileCompiler {
    let constants: ProfileConstants
    private(set) var problems: [ProfileProblem] = []
    /// Text in JSON is escaped down to ASCII.
    var isASCII = false
    /// Most rows of one request; nil = not limited by the profile.
    var maxRecords: Int?
    /// The body names `trackable` beside its rows.
    var bodyNamesTrackable = false
    /// What the templates that were compiled so far name.
    var named = NamedReferences()

    init(constants: ProfileConstants) {
        self.constants = constants
    }

    mutating func report(_ problem: ProfileProblem) { problems.append(problem) }

    mutating func report(
        _ keyPath: String, _ message: String, suggestion: String? = nil, at position: ProfileNode.Position?
    ) {
        problems.append(ProfileProblem(keyPath, message, suggestion: suggestion, at: position))
    }

    mutating func report(_ node: ProfileNode, _ keyPath: String, expected: String, suggestion: String? = nil) {
        report(keyPath, "found \(node.found), expected \(expected)", suggestion: suggestion, at: node.position)
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

/// Where a template stands, which decides what it may name.
enum TemplateUse: Hashable {
    case record, body, url, header, line
    /// A cell, or a field of a form.
    case field
    /// A request without rows.
    case bindURL, bindHeader, bindBody

    /// A nil has to be provided for, since there is no key to leave out.
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

extension ProfileCompiler {
    /// Looks up the name, checks the casts; nil when something was reported.
    mutating func expression(
        _ reference: TemplateSyntax.Reference, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> TemplateExpression? {
        guard let (source, type) = source(reference, use, keyPath, at: position) else { return nil }
        guard let casts = casts(reference, of: type, keyPath, at: position) else { return nil }
        let expression = TemplateExpression(source: source, casts: casts, fallback: reference.fallback)
        if use.needsValues, reference.fallback == .null {
            report(
                keyPath, "found the default null of $\(reference.name), expected text or a number here", at: position)
            return nil
        }
        return expression
    }

    private mutating func casts(
        _ reference: TemplateSyntax.Reference, of type: ValueType, _ keyPath: String, at position: ProfileNode.Position?
    ) -> [TemplateCast]? {
        var type = type
        var casts: [TemplateCast] = []
        for word in reference.casts {
            guard let cast = TemplateCast(word: word) else {
                let words = TemplateCast.words.map(\.0)
                report(
                    keyPath, "found the cast :\(word), expected one of \(words.joined(separator: ", "))",
                    suggestion: nearest(word, in: words).map { ":\($0)" }, at: position)
                return nil
            }
            guard let after = cast.type(of: type) else {
                report(
                    keyPath, "found :\(word) on $\(reference.name), which is \(type.words), expected \(cast.fits)",
                    at: position)
                return nil
            }
            type = after
            casts.append(cast)
        }
        return casts
    }

    private mutating func source(
        _ reference: TemplateSyntax.Reference, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> (TemplateExpression.Source, ValueType)? {
        let name = reference.name
        if name.hasPrefix("vars.") || name.hasPrefix("secret.") {
            return ownConstant(reference, keyPath, at: position).map { ($0, .string) }
        }
        guard !reference.isOptional else {
            report(keyPath, "found $\(name)?, expected ? only behind vars.NAME and secret.NAME", at: position)
            return nil
        }
        if name == "auth.token" {
            named.hasSecret = true
            if constants.hasToken { return (.token, .string) }
            report(
                keyPath, "found $auth.token without auth, expected auth = { kind = \"token_command\", … }", at: position
            )
            return nil
        }
        if let endpoint = EndpointReference(rawValue: name) { return (source(endpoint), .string) }
        if let batch = BatchName(rawValue: name) { return batchSource(batch, use, keyPath, at: position) }
        if let record = RecordName(rawValue: name) { return recordSource(record, use, keyPath, at: position) }
        if let module = AbsentModule.owner(of: name) {
            report(
                keyPath, "found $\(name) of the \(module) module, expected a name of a module that this version has",
                at: position)
            return nil
        }
        report(
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

    private mutating func ownConstant(
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
        report(
            keyPath, "found $\(reference.name) without its value, expected \(table) = { \(name) = … } at the endpoint",
            suggestion: nearest(name, in: present).map { "$\(isSecret ? "secret" : "vars").\($0)" }, at: position)
        return nil
    }

    private mutating func source(_ name: EndpointReference) -> TemplateExpression.Source {
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

    private mutating func batchSource(
        _ name: BatchName, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> (TemplateExpression.Source, ValueType)? {
        guard use.allowsRows else {
            report(
                keyPath, "found $\(name.rawValue), expected only names of the endpoint where no rows are", at: position)
            return nil
        }
        named.batch.insert(name)
        return (.batch(name), name.type)
    }

    private mutating func recordSource(
        _ name: RecordName, _ use: TemplateUse, _ keyPath: String, at position: ProfileNode.Position?
    ) -> (TemplateExpression.Source, ValueType)? {
        guard use.allowsRows else {
            report(
                keyPath, "found $\(name.rawValue), expected only names of the endpoint where no rows are", at: position)
            return nil
        }
        if use.isShared, maxRecords != 1, name != .trackable {
            report(
                keyPath,
                "found $\(name.rawValue), which each record has its own of, expected a name that all records share, "
                    + "or max_records = 1", at: position)
            return nil
        }
        named.records.insert(name)
        return (.record(name), name.type)
    }
}
