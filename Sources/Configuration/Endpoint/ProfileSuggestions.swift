import Profiles

/// The profile of an endpoint, as far as the endpoint's own keys take their defaults from it.
struct ProfileSuggestions {
    var name: String
    /// With what it extends.
    var tree: ProfileNode

    /// nil when the profile has none, or none that counts.
    func value<Value>(_ key: String, as form: ValueForm<Value>, _ table: TableReader) -> Value? {
        guard let member = tree[key] else { return nil }
        do throws(Mistake) {
            return try form.read(member.node.asTOMLNode(), table.environment)
        } catch {
            let mistake = error
            let node = member.node.asTOMLNode()
            let hint = mistake.suggestion.map { " (did you mean \($0)?)" } ?? ""
            table.report(
                ConfigurationProblem(
                    "found \(mistake.found ?? node.description), expected \(mistake.expected ?? form.expected)\(hint)",
                    at: node.position, key: "profile.\(name).\(key)", dependsOnReader: mistake.dependsOnReader))
            return nil
        }
    }

    var note: String { "profile \(name.asTOML)" }
}

extension TableReader {
    /// A key whose default is the profile's, where that has one.
    @discardableResult
    func read<Value>(
        _ key: String, into value: inout Value, as form: ValueForm<Value>, alias: Alias<Value>? = nil,
        suggested profile: ProfileSuggestions, note: String? = nil, on effect: ChangeEffect? = nil
    ) -> Bool {
        var note = note
        if let suggestion = profile.value(key, as: form, self) {
            value = suggestion
            note = profile.note
        }
        return read(key, into: &value, as: form, alias: alias, note: note, on: effect)
    }
}
