import ConfigurationTestSupport
import Places
import TestSupport
import Testing

@testable import Configuration

@Suite struct BeaconSourceConfigurationTests {
    private let source = """
        [[beacons.source]]
        name = "venue"
        profile = "accesso-beacons"
        url = "https://api.example/rest/venue/${vars.venue_id}/beacon/regions"
        vars = { venue_id = "42" }
        every = "1h"
        auth = { kind = "bearer", token = "env:TOKEN" }

        """
    private let enabled = "[beacons]\nenabled = true\n"

    @Test func aVenueIsReadWhole() throws {
        let environment = testEnvironment(["TOKEN": "t"])
        let loaded = try loaded(smallest + upload + enabled + source, environment)
        let found = try #require(loaded.config.beaconSources.first)
        #expect(found.form == .accessoBeacons && found.list.every == .seconds(3600))
        #expect(found.list.url == "https://api.example/rest/venue/42/beacon/regions")
        #expect(found.list.label == "beacons venue" && found.list.endpoint.settings.name == "beacons.venue")
        #expect(found.list.endpoint.auth == .bearer(token: "env:TOKEN") && loaded.warnings.isEmpty)
        let again = try ConfigurationTestSupport.loaded(loaded.effective.description, environment)
        #expect(again.config.beaconSources == loaded.config.beaconSources)
    }

    /// Nothing is asked for where no beacon is looked for.
    @Test func noneWhileBeaconsAreOff() throws {
        let environment = testEnvironment(["TOKEN": "t"])
        #expect(try loaded(smallest + upload + source, environment).config.beaconSources.isEmpty)
        #expect(try loaded(smallest + upload + enabled).config.beaconSources.isEmpty)
    }

    @Test func pathsOfOnesOwn() throws {
        let text =
            smallest + upload + enabled + """
                [[beacons.source]]
                name = "halls"
                url = "https://api.example/halls"
                profile = { list = "data.halls", uuid = "beacon.uuid", major = "beacon.major", minor = "n", name = "title" }
                """
        let loaded = try loaded(text)
        var mapping = BeaconMapping()
        mapping.list = ["data", "halls"]
        mapping.uuid = ["beacon", "uuid"]
        mapping.major = ["beacon", "major"]
        mapping.minor = ["n"]
        mapping.name = ["title"]
        #expect(loaded.config.beaconSources.map(\.form) == [mapping])
        let again = try ConfigurationTestSupport.loaded(loaded.effective.description)
        #expect(again.config.beaconSources == loaded.config.beaconSources)
    }

    static let mistakes = rows(
        #"""
        [beacons] ⏎ scan = "61s/60s"
        → w.toml:7:8: beacons.scan: found "61s/60s", expected a window and a period such as "10s/60s", from 1s to 1h, the window not the longer one
        [[beacons.source]] ⏎ name = "a" ⏎ url = "https://a.example"
        → w.toml:6:1: beacons.source.profile: found nothing, expected "accesso-beacons" or a table of paths
        [[beacons.source]] ⏎ name = "a" ⏎ profile = "accesso-venue" ⏎ url = "https://a.example"
        → w.toml:8:11: beacons.source.profile: found "accesso-venue", expected "accesso-beacons" or a table of paths
        [[beacons.source]] ⏎ name = "a" ⏎ profile = { uuid = "u", minor = "m" } ⏎ url = "https://a.example"
        → w.toml:8:33: beacons.source.profile.minor: found it without major, expected both
        [[beacons.source]] ⏎ name = "a" ⏎ profile = { radius = "r" } ⏎ url = "https://a.example"
        → w.toml:8:13: beacons.source.profile.radius: found an unknown key, expected a key of [beacons.source.profile] (it belongs in [[geofence]] or [geofences.source.profile])
        [[beacons.source]]
        name = "a"
        profile = "accesso-beacons"
        url = "https://a.example"
        [[beacons.source]]
        name = "a"
        profile = "accesso-beacons"
        url = "https://a.example"
        → w.toml:11:8: beacons.source.name: found "a" again, expected a name that no other source has
        """#)

    @Test(arguments: mistakes) func mistakesAreNamed(_ text: String, _ problem: String) {
        #expect(problems(smallest + upload + text).first == problem)
    }

    @Test func withoutAnyRegionThereIsAWarning() throws {
        #expect(
            try loaded(smallest + upload + enabled).warnings.map(\.description) == [
                "w.toml:6:2: beacons.regions: found none and no source, expected at least one: no beacon is looked for"
            ])
    }

    /// One name may serve both lists of a venue.
    @Test func fencesAndBeaconsMayShareAName() throws {
        let fences = "[[geofences.source]]\nname = \"venue\"\nprofile = \"geojson\"\nurl = \"https://a.example\"\n"
        let config = try loaded(smallest + upload + enabled + source + fences, testEnvironment(["TOKEN": "t"])).config
        #expect(config.fenceSources[0].list.endpoint.settings.name == "geofences.venue")
        #expect(config.beaconSources[0].list.endpoint.settings.name == "beacons.venue")
    }
}
