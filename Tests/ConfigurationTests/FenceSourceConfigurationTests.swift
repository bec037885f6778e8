import ConfigurationTestSupport
import Places
import TestSupport
import Testing
import WaypostTracking

@testable import Configuration

@Suite struct FenceSourceConfigurationTests {
    private let source = """
        [[geofences.source]]
        name = "venue"
        profile = "accesso-venue"
        url = "https://api.example/api/v1/public/venues/${vars.venue_id}?full=1"
        vars = { venue_id = "4 2/7" }

        """

    @Test func noneUnlessConfigured() throws {
        #expect(try loaded(smallest + upload).config.fenceSources.isEmpty)
    }

    @Test func aVenueIsReadWhole() throws {
        let text =
            smallest + upload + source + """
                every = "1h"
                allow_plaintext = false
                secrets = { token = "env:TOKEN" }
                [geofences.source.auth]
                kind = "bearer"
                token = "token"
                [geofences.source.tls]
                pins = ["47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="]
                """
        let environment = testEnvironment(["TOKEN": "t"])
        let loaded = try loaded(text, environment)
        let found = try #require(loaded.config.fenceSources.first)
        let (list, endpoint) = (found.list, found.list.endpoint)
        #expect(found.name == "venue" && found.form == .mapping(.accessoVenue) && list.every == .seconds(3600))
        #expect(list.url == "https://api.example/api/v1/public/venues/4%202%2F7?full=1")
        #expect(list.label == "geofences venue" && endpoint.settings.name == "geofences.venue")
        #expect(endpoint.auth == .bearer(token: "token") && endpoint.carriesSecret)
        #expect(endpoint.secrets == ["token": .environment("TOKEN")] && endpoint.tls?.pins.count == 1)
        let shown = loaded.effective.description
        #expect(shown.contains("url = \"https://api.example/api/v1/public/venues/${vars.venue_id}?full=1\""))
        let again = try ConfigurationTestSupport.loaded(shown, environment)
        // A secret is shown as the reference that it is.
        let printed = try #require(again.config.fenceSources.first?.list)
        #expect(printed.url == list.url && printed.endpoint.auth == .bearer(token: "env:TOKEN"))
    }

    @Test func pathsOfOnesOwn() throws {
        let text =
            smallest + upload + """
                [[geofences.source]]
                name = "zones"
                url = "https://api.example/zones"
                profile = { list = "data.zones", id = "key", radius = "r", lat = "at.1", lon = "at.0", polygon = "shape", order = "lat-lon" }
                [[geofences.source]]
                name = "more"
                url = "https://api.example/more"
                profile = "geojson"
                """
        let loaded = try loaded(text)
        var mapping = FenceMapping()
        mapping.list = ["data", "zones"]
        mapping.id = ["key"]
        mapping.radius = ["r"]
        mapping.latitude = ["at", "1"]
        mapping.longitude = ["at", "0"]
        mapping.polygon = ["shape"]
        mapping.order = .latLon
        #expect(loaded.config.fenceSources.map(\.form) == [.mapping(mapping), .geoJSON])
        #expect(loaded.config.fenceSources[0].list.every == .seconds(6 * 3600))
        let again = try ConfigurationTestSupport.loaded(loaded.effective.description)
        #expect(again.config.fenceSources == loaded.config.fenceSources)
    }

    static let mistakes = rows(
        #"""
        [[geofences.source]] ⏎ profile = "geojson" ⏎ url = "https://a.example"
        → w.toml:6:1: geofences.source.name: found nothing, expected a name of 1 to 32 characters a-z, 0-9 and -
        [[geofences.source]] ⏎ name = "a" ⏎ url = "https://a.example"
        → w.toml:6:1: geofences.source.profile: found nothing, expected "accesso-venue", "geojson" or a table of paths
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojso" ⏎ url = "https://a.example"
        → w.toml:8:11: geofences.source.profile: found "geojso", expected "accesso-venue", "geojson" or a table of paths (did you mean "geojson"?)
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojson"
        → w.toml:6:1: geofences.source.url: found nothing, expected a URL such as "https://api.example/fences"
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojson" ⏎ url = "https://a.example/${vars.x}"
        → w.toml:9:7: geofences.source.url: found ${vars.x}, expected a name of [geofences.source.vars]
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojson" ⏎ url = "mqtts://a.example"
        → w.toml:9:7: geofences.source.url: found "mqtts://a.example", expected a URL such as "https://api.example/fences"
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojson" ⏎ url = "https://a.example/x?a b"
        → w.toml:9:7: geofences.source.url: found "https://a.example/x?a b", expected a URL such as "https://api.example/fences"
        [[geofences.source]]
        name = "a"
        profile = "geojson"
        url = "http://a.example"
        auth = { kind = "bearer", token = "env:HOME" }
        → w.toml:9:7: geofences.source.url: found plain http to a.example with a secret, expected https (or allow_plaintext = true)
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojson" ⏎ url = "https://a.example" ⏎ every = "10s"
        → w.toml:10:9: geofences.source.every: found "10s", expected a duration from 1m to 30d
        [[geofences.source]]
        name = "a"
        profile = "geojson"
        url = "https://a.example"
        auth = { kind = "bearer", token = "toke" }
        secrets = { token = "env:HOME" }
        → w.toml:10:35: geofences.source.auth.token: found a literal, expected a name of [geofences.source.secrets], or "credential:NAME", "file:PATH" or "env:NAME" (never the secret itself) (did you mean "token"?)
        [[geofences.source]]
        name = "a"
        profile = "geojson"
        url = "https://a.example"
        [[geofences.source]]
        name = "a"
        profile = "geojson"
        url = "https://a.example"
        → w.toml:11:8: geofences.source.name: found "a" again, expected a name that no other source has
        [[geofences.source]]
        name = "a"
        profile = "geojson"
        url = "https://a.example"
        [[geofence]]
        id = "a/1"
        radius = 50
        center = { latitude = 52, longitude = 13 }
        → w.toml:7:8: geofences.source.name: found "a" beside the geofence "a/1", expected a name with which no id of another geofence begins
        [[geofences.source]] ⏎ name = "a" ⏎ profile = { radius = "r", lat = "y" } ⏎ url = "https://a.example"
        → w.toml:8:1: geofences.source.profile.lon: found nothing, expected a circle (lat, lon and radius) or a polygon
        [[geofences.source]] ⏎ name = "a" ⏎ profile = { id = "r" } ⏎ url = "https://a.example"
        → w.toml:8:1: geofences.source.profile.polygon: found nothing, expected a circle (lat, lon and radius) or a polygon
        [[geofences.source]] ⏎ name = "a" ⏎ profile = { polygon = "a..b" } ⏎ url = "https://a.example"
        → w.toml:8:23: geofences.source.profile.polygon: found "a..b", expected a path of names and indexes such as "center.lat"
        [[geofences.source]] ⏎ name = "a" ⏎ profile = "geojson" ⏎ url = "https://a.example" ⏎ sign = { scheme = "none" }
        → w.toml:10:1: geofences.source.sign: found an unknown key, expected a key of [[geofences.source]] (it belongs in [[endpoint]])
        """#)

    /// What is wrong, and the exact words about it. The lines under test begin at line 6.
    @Test(arguments: mistakes) func mistakesAreNamed(_ text: String, _ problem: String) {
        #expect(problems(smallest + upload + text, testEnvironment(["HOME": "h"])).first == problem)
    }

    @Test func doubtsAreNamed() throws {
        let text =
            smallest + upload + """
                [[geofences.source]]
                name = "a"
                profile = "geojson"
                url = "http://a.example/x"
                vars = { y = "1" }
                """
        #expect(
            try loaded(text).warnings.map(\.description) == [
                "w.toml:9:7: geofences.source.url: found plain http to a.example, expected https: anyone on the way can read and change the list",
                "w.toml:10:14: geofences.source.vars.y: has no effect: url has no ${vars.y}",
            ])
    }

    @Test func aRuleMayNameAFenceOfAServer() throws {
        let rule =
            "[[resolution.rule]]\ngeofence = \"venue/gate\"\npriority = \"high\"\ninterval = 1\ndisplacement = 1\n"
        #expect(try loaded(smallest + upload + source + rule).config.tracking.resolution.rules.count == 1)
        #expect(problems(smallest + upload + rule).count == 1)
    }
}
