import ConfigurationTestSupport
import TestSupport
import Testing

@testable import Configuration

@Suite struct MetricsConfigurationTests {
    private func problems(_ lines: String) -> [String] {
        ConfigurationTestSupport.problems(smallest + "[metrics]\n" + lines)
    }

    @Test func isOffUnlessItIsAskedFor() throws {
        let metrics = try loaded(smallest).config.metrics
        #expect(metrics.listen == nil && metrics.textfile == nil)
    }

    static let addresses: [(String, String, UInt16)] = [
        ("127.0.0.1:9477", "127.0.0.1", 9477), ("[::1]:80", "::1", 80), ("0.0.0.0:65535", "0.0.0.0", 65_535),
    ]

    @Test(arguments: addresses)
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

    static let textfiles: [(String, Int)] = [
        ("waypost.prom", 1), ("/run/waypost.txt", 1), ("/run/", 1), ("/run/waypost.prom", 0),
    ]

    @Test(arguments: textfiles)
    func aTextfileIsOneThatNodeExporterReads(path: String, count: Int) {
        #expect(problems("textfile = \"\(path)\"").count == count)
    }

    @Test func warnsWhereOthersCanReachIt() throws {
        #expect(try loaded(smallest + upload + "[metrics]\nlisten = \"127.0.0.1:9477\"\n").warnings.isEmpty)
        let warnings = try loaded(smallest + upload + "[metrics]\nlisten = \"0.0.0.0:9477\"\n").warnings
        #expect(warnings.first?.description.contains("metrics.listen: found 0.0.0.0:9477, where anyone") == true)
    }
}
