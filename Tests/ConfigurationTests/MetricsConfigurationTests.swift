import TestSupport
import Testing

@testable import Configuration

@Suite struct MetricsConfigurationTests {
    private func problems(_ lines: String) -> [String] { TestSupport.problems(smallest + "[metrics]\n" + lines) }

    @Test func isOffUnlessItIsAskedFor() throws {
        let metrics = try loaded(smallest).config.metrics
        #expect(metrics.listen == nil && metrics.textfile == nil)
    }

    @Test(arguments: [
        ("127.0.0.1:9477", "127.0.0.1", 9477), ("[::1]:80", "::1", 80), ("0.0.0.0:65535", "0.0.0.0", 65_535),
    ])
    func takesAnAddressInDigits(text: String, host: String, port: UInt16) throws {
        let address = try #require(MetricsConfig.Address(text))
        #expect(address.host == host && address.port == port && address.description == text)
    }

    @Test(arguments: [
        "localhost:9477", "9477", ":9477", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "::1:9477",
        "[::1]", "[127.0.0.1]:9477", "256.0.0.1:9477", "127.0.0.1:9477x",
    ])
    func anythingElseIsRefusedWithAnExample(text: String) {
        #expect(
            problems("listen = \"\(text)\"") == [
                "w.toml:5:10: metrics.listen: found \"\(text)\", "
                    + "expected an address in digits and a port, such as \"127.0.0.1:9477\""
            ])
    }

    @Test func aTextfileIsOneThatNodeExporterReads() {
        for path in ["waypost.prom", "/run/waypost.txt", "/run/"] {
            #expect(problems("textfile = \"\(path)\"").count == 1)
        }
        #expect(problems("textfile = \"/run/waypost.prom\"").isEmpty)
    }

    @Test func warnsWhereOthersCanReachIt() throws {
        #expect(try loaded(smallest + upload + "[metrics]\nlisten = \"127.0.0.1:9477\"\n").warnings.isEmpty)
        let warnings = try loaded(smallest + upload + "[metrics]\nlisten = \"0.0.0.0:9477\"\n").warnings
        #expect(warnings.first?.description.contains("metrics.listen: found 0.0.0.0:9477, where anyone") == true)
    }
}
