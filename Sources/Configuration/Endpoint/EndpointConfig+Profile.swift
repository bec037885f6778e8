import Profiles
import WaypostCore

extension ProfileSuggestions {
    /// `profile` and `verbose`. Where the name or what it extends is wrong, the profile `waypost` is used, so that the
    /// other keys are checked.
    init(reading table: TableReader, _ profiles: ProfileLibrary) {
        var name = "waypost"
        let isNamed = table.read(
            "profile", into: &name,
            as: .word(profiles.names.map { ($0, $0) }).expecting("a profile of waypost or [profile.NAME]"))
        var isVerbose = false
        table.read("verbose", into: &isVerbose, as: .flag)
        if isVerbose {
            if name == "waypost" || name == "waypost-verbose" {
                name = "waypost-verbose"
            } else {
                table.report(
                    "verbose", "found true with the profile \(name.asTOML), expected it with \"waypost\" alone")
            }
        }
        switch profiles.resolve(name) {
        case .success(let tree): self.init(name: name, tree: tree)
        case .failure(let problems):
            for problem in problems.list {
                profiles.report(
                    problem, of: name, to: table, user: (table.keyPath("profile"), table.place(of: "profile")))
            }
            self.init(name: isNamed ? name : "waypost", tree: ProfileNode(.table([])))
        }
    }

    var isWhole: Bool { if case .table(let members) = tree.value { !members.isEmpty } else { false } }
}

extension EndpointConfig {
    /// `[endpoint.vars]`. What is missing is reported, and gets a placeholder, so that the rest can be checked.
    mutating func readVars(
        _ varTable: TableReader, _ profile: ProfileSuggestions, _ table: TableReader
    ) -> [String: String] {
        var vars = Self.vars(varTable)
        settings.assetID = vars["asset_id"]
        guard profile.isWhole else { return vars }
        let references = references(table)
        for name in vars.keys.sorted() where !references.vars.contains(name) && name != "asset_id" {
            varTable.warn(name, "has no effect: the profile \(profile.name.asTOML) has no ${vars.\(name)}")
        }
        for name in references.neededVars.sorted() where vars[name] == nil {
            missing("vars.\(name)", "a text", profile, table)
            vars[name] = "x"
        }
        return vars
    }

    /// The endpoint's own `auth` and `sign` replace those of the profile.
    private func references(_ table: TableReader) -> ProfileReferences {
        var tree = profileTree
        for key in ["auth", "sign"] where table.has(key) { tree = tree.leavingOut(key) }
        return ProfileReferences(tree)
    }

    /// Compiles the profile with all that the endpoint gives.
    mutating func compile(
        _ profile: ProfileSuggestions, _ vars: [String: String], _ own: [OwnHeader], _ table: TableReader,
        _ profiles: ProfileLibrary
    ) {
        guard profile.isWhole else { return }
        let references = references(table)
        if references.carriesSecret { carriesSecret = true }
        checkSecrets(of: own, table)
        profiles.checkHeaders(profileTree["headers"]?.node, table)
        let ofHeaders = Set(own.flatMap(\.references.neededSecrets))
        var names = Set(secrets.keys)
        for name in references.neededSecrets.subtracting(ofHeaders).sorted() where !names.contains(name) {
            missing("secrets.\(name)", Secret.expectation, profile, table)
        }
        names.formUnion(references.neededSecrets)
        if references.needsToken, !hasToken { missing("auth", "one of kind \"token_command\"", profile, table) }
        let constants = ProfileConstants(
            endpoint: settings.name, baseURL: settings.baseURL, device: settings.device,
            agentVersion: AgentVersion.current, vars: vars, secrets: names,
            hasToken: hasToken || references.needsToken)
        switch Profile.compile(profile.name, tree: profileTree, constants: constants) {
        case .success(let compiled): settings.profile = compiled
        case .failure(let problems):
            settings.profile.name = profile.name
            for problem in problems.list {
                report(problem, profile, own, table, profiles)
            }
        }
    }

    private func report(
        _ problem: ProfileProblem, _ profile: ProfileSuggestions, _ own: [OwnHeader], _ table: TableReader,
        _ profiles: ProfileLibrary
    ) {
        guard let header = Self.headerName(at: problem.position, in: own), let position = problem.position else {
            profiles.report(
                problem, of: profile.name, to: table, user: (table.keyPath("profile"), table.place(of: "profile")))
            return
        }
        let hint = problem.suggestion.map { " (did you mean \($0)?)" } ?? ""
        table.report("headers.\(header)", problem.message + hint, at: position)
    }

    private func checkSecrets(of own: [OwnHeader], _ table: TableReader) {
        for header in own {
            for name in header.references.neededSecrets.sorted()
            where secrets[name] == nil {
                let hint = nearest(name, in: secrets.keys.sorted()).map { " (did you mean ${secret.\($0)}?)" } ?? ""
                table.report(
                    "headers.\(header.entry.key)",
                    "found ${secret.\(name)}, expected a name of [endpoint.secrets]\(hint)",
                    at: header.entry.node.position)
            }
        }
    }

    private func missing(_ key: String, _ expected: String, _ profile: ProfileSuggestions, _ table: TableReader) {
        table.report(
            key, "found nothing, expected \(expected): the profile \(profile.name.asTOML) needs it", at: table.position)
    }

    private static func vars(_ table: TableReader) -> [String: String] {
        var vars: [String: String] = [:]
        for entry in table.takeAll() {
            let form = ValueForm<String>.text()
            guard let value = table.evaluate(entry, form) else { continue }
            vars[entry.key] = value
            table.show(entry.key, form.render(value), entry.keyPosition)
        }
        return vars
    }
}

extension ProfileNode {
    func leavingOut(_ name: String) -> ProfileNode {
        guard case .table(let members) = value else { return self }
        return ProfileNode(.table(members.filter { $0.name != name }), at: position)
    }
}

extension ValueForm {
    /// The same in other words, where a list would be long.
    func expecting(_ words: String) -> ValueForm {
        var form = self
        form.expected = words
        return form
    }
}
