import WaypostCore

/// Looks up the names that templates use, and records which those are.
final class ReferenceResolver {
    let constants: ProfileConstants
    /// Maximum rows of one request; nil = not limited by the profile.
    private let maxRecords: Int?
    private var named = NamedReferences()

    init(_ constants: ProfileConstants, maxRecords: Int? = nil) {
        self.constants = constants
        self.maxRecords = maxRecords
    }

    /// What templates name that are compiled in `body`.
    func named<Value>(in body: () -> Value) -> (value: Value, named: NamedReferences) {
        let before = named
        named = NamedReferences()
        defer { named = before + named }
        let value = body()
        return (value, named)
    }

    /// Looks up the name, and checks the casts.
    func expression(
        _ reference: TemplateSyntax.Reference, _ site: TemplateSite
    ) throws(ProfileProblem) -> TemplateExpression {
        let reference = try resolved(reference, site)
        let (source, type) = try source(reference, site)
        let casts = try casts(reference, of: type, site)
        if site.use.needsValues, reference.fallback == .null {
            throw site.problem("found the default null of $\(reference.name), expected text or a number here")
        }
        return TemplateExpression(source: source, casts: casts, fallback: reference.fallback)
    }

    /// A variable may name a value of the record, `vars = { x = "$geofence_id" }`, and a value may stand in for one that is
    /// missing, `$vars.x?|$geofence_name`.
    private func resolved(
        _ reference: TemplateSyntax.Reference, _ site: TemplateSite
    ) throws(ProfileProblem) -> TemplateSyntax.Reference {
        let isVariable = reference.name.hasPrefix("vars.")
        if reference.otherwise != nil, !isVariable || !reference.isOptional {
            throw site.problem("found a name as default of $\(reference.name), expected that only after $vars.NAME?")
        }
        guard isVariable else { return reference }
        let value = constants.vars[String(reference.name.dropFirst(5))]
        let chosen = value.flatMap { $0.hasPrefix("$") ? RecordName(rawValue: String($0.dropFirst()))?.rawValue : nil }
        guard let name = chosen ?? (value == nil ? reference.otherwise : nil) else { return reference }
        // What a batch in flight is made of includes the choice.
        if let value { named.constants[reference.name] = value }
        var other = TemplateSyntax.Reference(name: name)
        (other.casts, other.fallback) = (reference.casts, reference.fallback)
        return other
    }

    private func casts(
        _ reference: TemplateSyntax.Reference, of type: ValueType, _ site: TemplateSite
    ) throws(ProfileProblem) -> [TemplateCast] {
        var type = type
        var casts: [TemplateCast] = []
        for word in reference.casts {
            guard let cast = TemplateCast(word: word) else {
                let words = TemplateCast.words.map(\.0)
                throw site.problem(
                    "found the cast :\(word), expected one of \(words.joined(separator: ", "))",
                    suggestion: nearest(word, in: words).map { ":\($0)" })
            }
            guard let after = cast.type(of: type) else {
                throw site.problem(
                    "found :\(word) on $\(reference.name), which is \(type.words), expected \(cast.fits)")
            }
            type = after
            casts.append(cast)
        }
        return casts
    }

    private func source(
        _ reference: TemplateSyntax.Reference, _ site: TemplateSite
    ) throws(ProfileProblem) -> (TemplateExpression.Source, ValueType) {
        let name = reference.name
        if name.hasPrefix("vars.") || name.hasPrefix("secret.") { return (try ownConstant(reference, site), .string) }
        if reference.isOptional {
            throw site.problem("found $\(name)?, expected ? only after vars.NAME and secret.NAME")
        }
        if name == "auth.token" {
            named.hasSecret = true
            if constants.hasToken { return (.token, .string) }
            throw site.problem("found $auth.token without auth, expected auth = { kind = \"token_command\", … }")
        }
        if let endpoint = EndpointReference(rawValue: name) { return (source(endpoint), .string) }
        let (batch, record) = (BatchName(rawValue: name), RecordName(rawValue: name))
        if batch != nil || record != nil, !site.use.allowsRows {
            throw site.problem("found $\(name), expected only names of the endpoint in a request without rows")
        }
        if let batch {
            named.batch.insert(batch)
            return (.batch(batch), batch.type)
        }
        if let record {
            if site.use.isShared, maxRecords != 1, record != .trackable {
                throw site.problem(
                    "found $\(name), which differs between records, expected a name that all records share, "
                        + "or max_records = 1")
            }
            named.records.insert(record)
            return (.record(record), record.type)
        }
        throw site.problem(
            "found $\(name), expected the name of a value",
            suggestion: Self.meant(by: name, in: Self.names(for: site.use)).map { "$\($0)" })
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
        _ reference: TemplateSyntax.Reference, _ site: TemplateSite
    ) throws(ProfileProblem) -> TemplateExpression.Source {
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
        throw site.problem(
            "found $\(reference.name) without its value, expected \(table) = { \(name) = … } at the endpoint",
            suggestion: nearest(name, in: present).map { "$\(isSecret ? "secret" : "vars").\($0)" })
    }

    private func source(_ name: EndpointReference) -> TemplateExpression.Source {
        let value = value(of: .endpoint(name))
        named.constants[name.rawValue] = value
        return name == .agentVersion ? .constant(value) : .endpoint(name)
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

/// A place in a profile where a template is used.
struct TemplateSite {
    let use: TemplateUse
    let keyPath: String
    let position: SourcePosition?

    init(_ use: TemplateUse, _ keyPath: String, of node: ProfileNode? = nil) {
        self.use = use
        self.keyPath = keyPath
        position = node?.position
    }

    func problem(_ message: String, suggestion: String? = nil) -> ProfileProblem {
        ProfileProblem(keyPath, message, suggestion: suggestion, at: position)
    }
}

/// What a template is used for, which decides what it may name.
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
