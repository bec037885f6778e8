import ConfigurationTestSupport
import TestSupport
import Testing
import WaypostCore

@testable import Configuration

/// Live channels.
@Suite struct ChannelConfigurationTests {
    private let environment = testEnvironment(["SECRET": "s"])
    private let token = "auth = { kind = \"bearer\", token = \"env:SECRET\" }"

    private func channel(_ lines: String) -> String { smallest + "[[channel]]\n\(lines)\n" }

    @Test func readsAChannel() throws {
        let config = try loaded(
            channel(
                """
                name = "live"
                url = "wss://realtime.example:8443"
                client_id = "van"
                send_resolution = false
                remain_present = "2m"
                \(token)
                """), environment
        ).config
        let channel = try #require(config.channels.first)
        #expect(channel.endpoint.settings.name == "live" && channel.clientID == "van" && !channel.isUsualService)
        #expect(!channel.sendsResolution && channel.remainPresent == .seconds(120))
        #expect(channel.endpoint.settings.baseURL == "wss://realtime.example:8443")
    }

    @Test func isThatOfTheServiceWithoutURL() throws {
        let config = try loaded(channel(token), environment).config
        #expect(config.channels.map(\.isUsualService) == [true] && config.channels[0].clientID == config.device)
        #expect(try loaded(smallest + upload, environment).config.channels.isEmpty)
    }

    static let mistakes = rows(
        #"""
        → channel.auth: found nothing
        url = "https://x.example" ⏎ auth = { kind = "bearer", token = "env:SECRET" } → channel.url
        url = "ws://x.example" ⏎ auth = { kind = "bearer", token = "env:SECRET" } → expected wss
        auth = { kind = "header", name = "X", key = "env:SECRET" } → expected "basic" with a key
        auth = { kind = "bearer", token = "sesame" } → channel.auth.token
        batch_size = 3 ⏎ auth = { kind = "bearer", token = "env:SECRET" } → batch_size
        """#)

    @Test(arguments: mistakes) func aMistakeIsTold(_ lines: String, _ words: String) {
        let found = problems(channel(lines), environment)
        #expect(found.contains { $0.contains(words) }, "\(found)")
        #expect(!found.contains { $0.contains("sesame") })
    }
}
