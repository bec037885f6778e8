import Profiles

/// The constants of an endpoint that the texts of a profile name.
struct ProfileReferences: Equatable {
    /// `$vars.x`: without it there is no request.
    var neededVars: Set<String> = []
    /// `$vars.x?`: as well, where it is known.
    var optionalVars: Set<String> = []
    var neededSecrets: Set<String> = []
    var optionalSecrets: Set<String> = []
    /// `$auth.token`.
    var needsToken = false

    var vars: Set<String> { neededVars.union(optionalVars) }
    var secrets: Set<String> { neededSecrets.union(optionalSecrets) }
    var carriesSecret: Bool { !secrets.isEmpty || needsToken }

    init(_ tree: ProfileNode) { scan(tree) }

    init(_ text: String) { scan(text) }

    private mutating func scan(_ node: ProfileNode) {
        switch node.value {
        case .string(let text): scan(text)
        case .array(let elements): for element in elements { scan(element) }
        case .table(let members): for member in members { scan(member.node) }
        case .integer, .float, .boolean: break
        }
    }

    private mutating func scan(_ text: String) {
        var rest = Substring(text)
        while let dollar = rest.firstIndex(of: "$") {
            rest = rest[rest.index(after: dollar)...]
            if rest.first == "$" {
                rest = rest.dropFirst()
                continue
            }
            if rest.first == "{" { rest = rest.dropFirst() }
            note(rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" || $0 == "." || $0 == "?" })
        }
    }

    private mutating func note(_ reference: Substring) {
        let isOptional = reference.last == "?"
        let parts = (isOptional ? reference.dropLast() : reference).split(
            separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return }
        let name = String(parts[1])
        switch (parts[0], isOptional) {
        case ("vars", false): neededVars.insert(name)
        case ("vars", true): optionalVars.insert(name)
        case ("secret", false): neededSecrets.insert(name)
        case ("secret", true): optionalSecrets.insert(name)
        case ("auth", _) where name == "token": needsToken = true
        default: break
        }
    }
}
