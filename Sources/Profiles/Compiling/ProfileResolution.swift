import WaypostCore

/// All mistakes of a profile, in their order in it.
package struct ProfileProblems: Error, Hashable, Sendable {
    package var list: [ProfileProblem]

    package init(_ list: [ProfileProblem]) {
        self.list = list
    }
}

extension Profile {
    /// Each of them may have thousands of members, and all are merged at each reading.
    private static let chainMax = 16

    /// The whole tree of a profile: merged with what it `extends`, table by table.
    ///
    /// Members keep the order of the base, and new ones follow. Anything but a table replaces the value of the base.
    ///
    /// - Parameters:
    ///   - lookup: the tree of a profile as it is written; nil = there is none of that name.
    ///   - names: all names that there are, for suggestions.
    package static func resolve(
        _ name: String, lookup: (String) -> ProfileNode?, names: [String] = []
    ) -> Result<ProfileNode, ProfileProblems> {
        guard var tree = lookup(name) else {
            let problem = ProfileProblem(
                "", "found \"\(name)\", expected the name of a profile", suggestion: nearest(name, in: names))
            return .failure(ProfileProblems([problem]))
        }
        var seen = [name]
        while let base = tree.member("extends") {
            guard case .string(let baseName) = base.node.value else {
                return .failure(ProfileProblems([base.node.misplaced("extends", expected: "the name of a profile")]))
            }
            if seen.contains(baseName) {
                let chain = (seen + [baseName]).joined(separator: " → ")
                let problem = ProfileProblem(
                    "extends", "found a cycle (\(chain)), expected a chain that ends", at: base.node.position
                )
                return .failure(ProfileProblems([problem]))
            }
            guard seen.count < chainMax else {
                let problem = ProfileProblem(
                    "extends", "found a chain of more than \(chainMax) profiles, expected a shorter one",
                    at: base.node.position)
                return .failure(ProfileProblems([problem]))
            }
            guard let below = lookup(baseName) else {
                let problem = ProfileProblem(
                    "extends", "found \"\(baseName)\", expected the name of a profile",
                    suggestion: nearest(baseName, in: names), at: base.node.position)
                return .failure(ProfileProblems([problem]))
            }
            seen.append(baseName)
            tree = tree.without("extends").laid(over: below)
        }
        return .success(tree)
    }
}

extension ProfileNode {
    func member(_ name: String) -> Member? {
        guard case .table(let members) = value else { return nil }
        return members.first { $0.name == name }
    }

    fileprivate func without(_ name: String) -> ProfileNode {
        guard case .table(let members) = value else { return self }
        return ProfileNode(.table(members.filter { $0.name != name }), at: position)
    }

    fileprivate func laid(over base: ProfileNode) -> ProfileNode {
        guard case .table(let mine) = value, case .table(var members) = base.value else { return self }
        let places = Dictionary(zip(members.map(\.name), members.indices)) { first, _ in first }
        for member in mine {
            if let index = places[member.name] {
                let below = members[index].node
                members[index] = Member(member.name, member.node.laid(over: below), at: member.position)
            } else {
                members.append(member)
            }
        }
        return ProfileNode(.table(members), at: position)
    }

    /// The value, in words for a message.
    var found: String {
        switch value {
        case .table: "a table"
        case .array: "an array"
        case .string(let text): "\"\(text)\""
        case .integer(let number): String(number)
        case .float(let number): String(number)
        case .boolean(let flag): String(flag)
        }
    }

    func misplaced(_ keyPath: String, expected: String) -> ProfileProblem {
        ProfileProblem(keyPath, "found \(found), expected \(expected)", at: position)
    }
}
