import ConfigurationTestSupport
import Testing

@testable import Configuration

@Suite struct BaseURLMaskTests {
    @Test(
        arguments: [
            ("https://home.example/api/webhook/0123abcd", "https://home.example/api/webhook/***"),
            ("\"https://home.example:8123/api/webhook/ID\"", "\"https://home.example:8123/api/webhook/***\""),
            ("https://h.example/services/T0/B0/aB3dE5gH7jK9mN1pQ3sT5vX7", "https://h.example/services/T0/B0/***"),
            ("https://h.example/api/v1/overland/batches", "https://h.example/api/v1/overland/batches"),
            ("https://a-long-name-of-a-host-1234567890.example", "https://a-long-name-of-a-host-1234567890.example"),
            ("mqtts://broker.example", "mqtts://broker.example"),
            ("\"see https://x/webhook/y\"", "\"see https://x/webhook/y\""),
            ("12", "12"),
        ] as [(String, String)])
    func whatIsLikelyASecretIsNotShown(_ text: String, _ shown: String) {
        #expect(BaseURL.masked(text) == shown)
    }

    /// As `check --print` has it; what is in force keeps it, since a reload compares it.
    @Test func theConfigurationIsPrintedWithoutIt() throws {
        let text = "\(smallest)[[endpoint]]\nbase_url = \"https://home.example/api/webhook/0123abcd\"\n"
        let loaded = try loaded(text)
        #expect(loaded.config.endpoints[0].settings.baseURL.hasSuffix("/0123abcd"))
        let printed = loaded.effective.description
        #expect(printed.contains("https://home.example/api/webhook/***") && !printed.contains("0123abcd"))
    }
}
