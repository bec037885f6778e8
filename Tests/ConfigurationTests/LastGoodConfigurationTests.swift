import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing

@testable import Configuration

/// What the daemon starts with when the configuration in the file cannot be used.
@Suite struct LastGoodConfigurationTests {
    private let directory: TemporaryDirectory
    private let environment: ConfigurationEnvironment
    private var path: String { "\(directory.path)/waypost.toml" }
    private var lastGood: LastGoodConfiguration { LastGoodConfiguration(of: path, environment: environment) }

    init() throws {
        directory = try TemporaryDirectory()
        try directory.write("fleet-key", "k-1\n")
        try directory.write("fleet-token", "sesame")
        environment = testEnvironment([
            "CREDENTIALS_DIRECTORY": directory.path, "STATE_DIRECTORY": directory.path,
        ])
    }

    private func load() throws(ConfigurationProblems) -> LoadedConfiguration {
        try AgentConfig.load(path: path, environment: environment, orElse: lastGood)
    }

    /// As the daemon does.
    private func keep(_ loaded: LoadedConfiguration) throws {
        let bytes = try lastGood.bytes(of: loaded)
        try Data(bytes).write(to: URL(fileURLWithPath: lastGood.path))
    }

    /// What is reported when neither can be used.
    private func report() -> [String] {
        do throws(ConfigurationProblems) {
            _ = try load()
            return []
        } catch { return error.problems.map { $0.description.replacing(directory.path + "/", with: "") } }
    }

    @Test func holdsAllTextsAndWhatTheyInclude() throws {
        let fences = """
            {"type":"FeatureCollection","features":[{"type":"Feature","id":"depot","properties":{"radius":100},
            "geometry":{"type":"Point","coordinates":[13.4,52.5]}}]}
            """
        try directory.write("fences.json", fences)
        try directory.write("waypost.toml", smallest + "[geofences]\nfile = \"\(directory.path)/fences.json\"\n")
        try directory.makeDirectory("waypost.d")
        try directory.write("waypost.d/fleet.toml", upload + "name = \"fleet\"\n")
        let good = try load()
        #expect(good.refused == nil)
        try keep(good)

        // All of it may be wrong or gone.
        try directory.write("fences.json", "{")
        try directory.write("waypost.d/fleet.toml", "[[endpoint]\n")
        try directory.write("waypost.toml", "")
        let fallback = try load()
        let names: [String] = fallback.config.endpoints.map(\.settings.name)
        let ids: [String] = fallback.config.tracking.geofences.fences.map(\.id)
        #expect(names == ["fleet"] && ids == ["depot"] && fallback.refused?.problems.first?.position?.line == 1)
        #expect(fallback.effective.description == good.effective.description)
        #expect(try lastGood.bytes(of: fallback) == lastGood.kept)

        try FileManager.default.removeItem(atPath: path)
        #expect(try load().refused?.description.contains("found no such file") == true)
    }

    @Test func holdsReferencesToSecretsAsTheyAreWritten() throws {
        try directory.write(
            "waypost.toml",
            smallest + upload + "[endpoint.auth]\nkind = \"bearer\"\ntoken = \"credential:fleet-token\"\n")
        let bytes = try lastGood.bytes(of: load())
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("token = \"credential:fleet-token\"") && !text.contains("sesame"))
    }

    @Test func saysWhyItCannotBeUsed() throws {
        try directory.write("waypost.toml", smallest)
        let good = try load()
        try directory.write("waypost.toml", "[source]\nkind = 7\n")
        let mistake = "waypost.toml:2:8: source.kind: found 7"
        // Nothing was ever kept: the report is that of the file alone.
        #expect(report().count == 1 && report()[0].hasPrefix(mistake))

        let bytes: [UInt8] = try lastGood.bytes(of: good)
        let kept = URL(fileURLWithPath: lastGood.path)
        func refusal(_ bytes: [UInt8]) throws -> String {
            try Data(bytes).write(to: kept)
            let report = report()
            try #require(report.count == 2 && report[0].hasPrefix(mistake), "\(report)")
            return report[1].replacing("last-good.conf: the last good configuration ", with: "")
        }
        var flipped = bytes
        flipped[bytes.count - 3] ^= 1
        var damaged: [String] = [try refusal(flipped)]
        for end in stride(from: 0, to: bytes.count, by: 23) { damaged.append(try refusal(Array(bytes[..<end]))) }
        #expect(damaged.allSatisfy { $0 == "is damaged" }, "\(damaged)")
        let newer = String(decoding: bytes, as: UTF8.self).replacing("format 1", with: "format 12")
        let other = LastGoodConfiguration(of: "/etc/waypost/waypost.toml", environment: environment)
        let strange: [String] = [try refusal(Array(newer.utf8)), try refusal(other.bytes(of: good))]
        #expect(strange == ["is that of another version of waypost", "is that of /etc/waypost/waypost.toml"])

        // It was written by a newer version, which knows other keys.
        var future = good
        future.texts[0].bytes += Array("[sourcery]\nlevel = 3\n".utf8)
        let reason = try refusal(lastGood.bytes(of: future))
        #expect(reason.hasPrefix("cannot be used either: waypost.toml:4"), "\(reason)")

        try FileManager.default.removeItem(at: kept)
        try directory.makeDirectory("last-good.conf")
        #expect(report().last == "last-good.conf: the last good configuration cannot be read")
    }

    @Test func staysOutOfAFolderThatMayBeAnothers() throws {
        try directory.write("waypost.toml", smallest + "[outbox]\npath = \"\(directory.path)/outbox.db\"\n")
        let loaded = try load()
        #expect(throws: Never.self) { try lastGood.bytes(of: loaded) }
        let usual = LastGoodConfiguration(of: path, environment: testEnvironment())
        #expect(usual.path == "/var/lib/waypost/last-good.conf")
        let error = #expect(throws: LastGoodConfiguration.NotKept.self) { try usual.bytes(of: loaded) }
        #expect(error?.reason.hasPrefix("the queue is not in the folder of /var/lib/waypost/last-good.conf") == true)
        var beside = loaded
        beside.config.outbox.settings.path = "/var/lib/waypost/queue.db"
        #expect(throws: Never.self) { try usual.bytes(of: beside) }
    }

    @Test(.bug(id: 13)) func saysThatItIsTooLarge() throws {
        try directory.write("waypost.toml", smallest)
        var loaded = try load()
        loaded.included.append(
            ConfigurationText(path: "fences.geojson", bytes: [UInt8](repeating: 0x20, count: 17 << 20)))
        let error = #expect(throws: LastGoodConfiguration.NotKept.self) { try lastGood.bytes(of: loaded) }
        #expect(error?.reason == "with its geofence files it has 17 MiB, more than 16 MiB")
    }
}
