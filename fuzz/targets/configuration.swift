@testable import Configuration
@testable import WaypostCore

/// libFuzzer entry: any text is a configuration or has problems, each at a line and column that the text has.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    // What is behind a path is not the text's.
    guard bytes.firstRange(of: Array("file:".utf8)) == nil else { return 0 }
    var found: [ConfigurationProblem] = []
    do throws(ConfigurationProblems) {
        let loaded = try AgentConfig.parse([("w.toml", bytes)], environment: host())
        found = loaded.warnings
        _ = loaded.effective.description
    } catch {
        demand(!error.problems.isEmpty, "refused without a problem")
        found = error.problems + error.warnings
    }
    let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for problem in found {
        guard let position = problem.position else {
            // Of something that is missing there is no place.
            demand(problem.message.hasPrefix("found no"), "\(problem) has no place")
            continue
        }
        guard position.file == "w.toml" else {
            demand(position.file.hasPrefix("<profile "), "\(problem) is in another file")
            continue
        }
        demand((1...lines.count).contains(position.line), "\(problem) is behind the last line")
        // Columns count characters, and there may be one behind the last.
        demand((1...lines[position.line - 1].count + 1).contains(position.column), "\(problem) is behind its line")
    }
    return 0
}

private func host() -> ConfigurationEnvironment {
    var environment = ConfigurationEnvironment(
        variables: [:], hostname: { "van" }, machineID: { "0123456789abcdef" },
        buildDate: CivilDate(year: 2025, month: 1, day: 1), requiresCredentials: false)
    environment.localTime = "/nonexistent"
    environment.zoneInfo = "/nonexistent"
    return environment
}
