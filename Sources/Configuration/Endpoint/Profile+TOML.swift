import Profiles

/// The profiles that an endpoint can name: those that come with waypost and those of the file.
package struct ProfileLibrary {
    /// As they are written, in the order of the file.
    package private(set) var own: [(name: String, tree: ProfileNode)] = []

    package init() {}

    /// `[profile.<name>]`.
    init(reading table: TableReader) {
        for entry in table.takeAll() {
            let inner = table.table(entry.key)
            guard case .table(let written) = entry.node.value else { continue }
            for part in inner.takeAll() {
                inner.show(part.key, ProfileNode(part.node).inlineTOML, part.keyPosition)
            }
            if let mistake = ValueForm<String>.mistakeInName(entry.key) {
                table.report(entry.key, "found \(entry.key.asTOML), expected \(mistake)", at: entry.keyPosition)
            } else if BuiltInProfiles.names.contains(entry.key) {
                table.report(
                    entry.key,
                    "found the name of a profile of waypost, expected another one (with extends = \(entry.key.asTOML))",
                    at: entry.keyPosition)
            } else {
                own.append((entry.key, ProfileNode(written, at: entry.keyPosition)))
            }
        }
    }

    var names: [String] { own.map(\.name) + BuiltInProfiles.names }

    /// As it is written, `extends` and all.
    func tree(_ name: String) -> ProfileNode? {
        own.first { $0.name == name }?.tree ?? BuiltInProfiles.tree(name)
    }

    /// With what it extends.
    package func resolve(_ name: String) -> Result<ProfileNode, ProfileProblems> {
        Profile.resolve(name, lookup: tree, names: names)
    }

    /// The user's own profile that contains this position.
    func owner(of position: SourcePosition) -> String? {
        own.first { $0.tree.contains(position) }?.name
    }

    /// A profile that no endpoint uses is checked too, with placeholders for what an endpoint would fill in.
    func checkUnused(_ used: Set<String>, _ table: TableReader) {
        for (name, _) in own where !used.contains(name) {
            let problems: [ProfileProblem]
            switch resolve(name) {
            case .failure(let found): problems = found.list
            case .success(let tree):
                let constants = ProfileConstants.placeholders(for: tree)
                if case .failure(let found) = Profile.compile(name, tree: tree, constants: constants) {
                    problems = found.list
                } else {
                    problems = []
                }
            }
            for problem in problems { report(problem, of: name, to: table) }
        }
    }

    /// Reports literals in headers meant for secrets, in profiles of the file.
    func checkHeaders(_ headers: ProfileNode?, _ table: TableReader) {
        guard case .table(let members) = headers?.value else { return }
        for header in members where isSensitive(header.name) && !ProfileReferences(header.node).carriesSecret {
            guard let position = header.node.position, let owner = owner(of: position) else { continue }
            table.report(
                ConfigurationProblem(
                    "found a literal, expected a reference: \"${secret.NAME}\", with NAME in [endpoint.secrets]",
                    at: position, key: "profile.\(owner).headers.\(header.name)"))
        }
    }

    /// - Parameters:
    ///   - name: of the profile that is used.
    ///   - table: takes the report.
    ///   - user: the endpoint's place and key, for what is wrong only with what the endpoint gives a profile of waypost.
    func report(
        _ problem: ProfileProblem, of name: String, to table: TableReader,
        user: (key: String, place: SourcePosition)? = nil
    ) {
        let hint = problem.suggestion.map { " (did you mean \($0)?)" } ?? ""
        let message = problem.message + hint
        if let position = problem.position, let owner = owner(of: position) {
            let path = problem.keyPath.isEmpty ? "" : ".\(problem.keyPath)"
            table.report(
                ConfigurationProblem(message, at: position, key: "profile.\(owner)\(path)"))
        } else if let user {
            let path = problem.keyPath.isEmpty ? "" : "\(problem.keyPath): "
            table.report(ConfigurationProblem("profile \(name): \(path)\(message)", at: user.place, key: user.key))
        } else {
            table.report(ConfigurationProblem(message, at: table.position, key: "profile.\(name).\(problem.keyPath)"))
        }
    }
}

extension ProfileNode {
    fileprivate func contains(_ place: SourcePosition) -> Bool {
        if position == place { return true }
        switch value {
        case .table(let members): return members.contains { $0.position == place || $0.node.contains(place) }
        case .array(let elements): return elements.contains { $0.contains(place) }
        case .string, .integer, .float, .boolean: return false
        }
    }
}

extension ProfileConstants {
    /// Something in each place that an endpoint would fill: for looking at a profile without one.
    package static func placeholders(for tree: ProfileNode) -> ProfileConstants {
        let references = ProfileReferences(tree)
        let isBroker = tree["mqtt"] != nil
        // A level of a topic cannot have these brackets.
        let vars = Dictionary(
            uniqueKeysWithValues: references.vars.map { ($0, isBroker ? $0.uppercased() : "<\($0)>") })
        return ProfileConstants(
            endpoint: "main", baseURL: isBroker ? "mqtts://broker.example" : "https://server.example", device: "device",
            agentVersion: AgentVersion.current, vars: vars, secrets: references.secrets, hasToken: true)
    }
}

extension ValueForm where Value == String {
    /// A name of an endpoint or a profile.
    static var shortName: ValueForm {
        text("a name of 1 to 32 characters a-z, 0-9 and -") { mistakeInName($0) == nil ? nil : Mistake() }
    }

    /// What is expected instead; nil when the name is good.
    static func mistakeInName(_ name: String) -> String? {
        let isGood = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): true
            default: false
            }
        }
        return isGood && (1...32).contains(name.utf8.count) ? nil : shortName.expected
    }
}
