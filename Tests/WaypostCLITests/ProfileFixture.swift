import Configuration
import ConfigurationTestSupport
import Foundation
import Profiles
import TestSupport
import Testing

@testable import WaypostCLI

/// A profile of waypost with the configuration that lies beside its reviewed requests in `fixtures/profiles`.
struct ProfileFixture: CustomTestStringConvertible, Sendable {
    static let folder = BuiltProducts.repository.appendingPathComponent("fixtures/profiles")
    static let all = BuiltInProfiles.names.map { ProfileFixture(name: $0) }
    /// Those whose servers answer with a status.
    static let ofHTTP = all.filter { !$0.name.hasSuffix("-mqtt") }

    var name: String

    var testDescription: String { name }

    var samples: [ProfileSample] {
        let common: [ProfileSample] = [.full, .bare, .eventEnter, .batch]
        switch name {
        case "waypost", "waypost-verbose": return common + [.mixed]
        case "waypost-compact": return common + [.mixed, .constant]
        default: return common
        }
    }

    func file(_ sample: ProfileSample) -> URL {
        Self.folder.appendingPathComponent("\(name)/\(sample.rawValue).request")
    }

    func config() throws -> AgentConfig {
        let path = Self.folder.appendingPathComponent("\(name)/waypost.toml").path
        return try AgentConfig.load(path: path, environment: testEnvironment(requiresCredentials: false)).config
    }

    func settings() throws -> EndpointSettings { try #require(try config().endpoints.first).settings }

    func rendered(_ sample: ProfileSample) throws -> String {
        try ProfileReport(try config()).render(name, for: nil, .sample(sample)).map { $0 + "\n" }.joined()
    }
}
