import Configuration
import WaypostCore

/// A host that needs nothing of the real one.
package func testEnvironment(
    _ variables: [String: String] = [:], requiresCredentials: Bool = true
) -> ConfigurationEnvironment {
    var environment = ConfigurationEnvironment(
        variables: variables, hostname: { "van" }, machineID: { "0123456789abcdef" },
        buildDate: CivilDate(year: 2025, month: 1, day: 1), requiresCredentials: requiresCredentials)
    environment.localTime = "/nonexistent"
    return environment
}

package func loaded(
    _ text: String, _ environment: ConfigurationEnvironment = testEnvironment()
) throws(ConfigurationProblems) -> LoadedConfiguration {
    try AgentConfig.parse([("w.toml", Array(text.utf8))], environment: environment)
}

/// The lines of the report; empty when the text is a good configuration.
package func problems(_ text: String, _ environment: ConfigurationEnvironment = testEnvironment()) -> [String] {
    do throws(ConfigurationProblems) {
        _ = try loaded(text, environment)
        return []
    } catch {
        return error.problems.map(\.description)
    }
}

/// A good configuration of three lines, to which tests append theirs.
package let smallest = """
    [source]
    kind = "serial"
    path = "/dev/ttyACM0"

    """

package let upload = """
    [[endpoint]]
    base_url = "https://fleet.example"

    """
