import WaypostCore

/// Replaces `${env:NAME}`, `${hostname}` and `${machine_id}`; `$$` is a plain `$`.
///
/// `further` knows names that are good in this place alone, and gives nil for all others.
func substituted(
    _ text: String, _ environment: ConfigurationEnvironment,
    further: (String) -> Result<String, Mistake>? = { _ in nil }
) -> Result<String, Mistake> {
    guard text.contains("$") else { return .success(text) }
    var result = ""
    var rest = Substring(text)
    while let dollar = rest.firstIndex(of: "$") {
        result += rest[..<dollar]
        rest = rest[rest.index(after: dollar)...]
        if rest.first == "$" {
            result += "$"
            rest = rest.dropFirst()
            continue
        }
        guard rest.first == "{" else {
            result += "$"
            continue
        }
        guard let end = rest.firstIndex(of: "}") else {
            return .failure(
                Mistake(found: "\"${\" without \"}\"", expected: "${env:NAME}, ${hostname} or ${machine_id}"))
        }
        let name = String(rest[rest.index(after: rest.startIndex)..<end])
        rest = rest[rest.index(after: end)...]
        switch further(name) ?? reference(name, environment) {
        case .success(let value): result += value
        case .failure(let mistake): return .failure(mistake)
        }
    }
    return .success(result + rest)
}

private func reference(_ name: String, _ environment: ConfigurationEnvironment) -> Result<String, Mistake> {
    if name.hasPrefix("env:") {
        let variable = String(name.dropFirst(4))
        if let value = environment.variables[variable] { return .success(value) }
        return .failure(
            Mistake(
                found: "${\(name)}", expected: "a variable that is set in the environment",
                suggestion: nearest(variable, in: environment.variables.keys.sorted()).map { "${env:\($0)}" },
                dependsOnReader: true))
    }
    switch name {
    case "hostname":
        if let value = environment.hostname() { return .success(value) }
        return .failure(Mistake(found: "${hostname}", expected: "a host that has a name"))
    case "machine_id":
        if let value = environment.machineID() { return .success(value) }
        return .failure(Mistake(found: "${machine_id}", expected: "a host that has /etc/machine-id"))
    default:
        return .failure(
            Mistake(
                found: "${\(name)}".shortened, expected: "${env:NAME}, ${hostname} or ${machine_id}",
                suggestion: nearest(name, in: ["hostname", "machine_id"]).map { "${\($0)}" }))
    }
}
