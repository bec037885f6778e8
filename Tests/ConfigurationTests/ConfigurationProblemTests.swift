import ConfigurationTestSupport
import TestSupport
import Testing

@testable import Configuration

/// Wrong inputs and the exact words about them. The lines under test begin at line 6, after `smallest` and `upload`.
@Suite struct ConfigurationProblemTests {
    @Test func aMistakeAcrossKeysIsReportedOnceWhereOneOfThemIs() throws {
        let reader = ConfigurationReader(files: ["w.toml"], environment: testEnvironment())
        let root = reader.root(try TOMLTable.parse(Array("[a]\nlow = 3\n[b]\n".utf8), file: "w.toml"))
        for name in ["a", "b", "c"] { root.table(name).report(["high", "low"], "found low above high") }
        #expect(reader.sortedProblems.map(\.description) == ["w.toml:2:7: a.low: found low above high"])
    }

    @Test func namesOfOtherSystemsLeadToKeysThatExist() {
        let reader = ConfigurationReader(files: [], environment: testEnvironment())
        _ = AgentConfig(reading: reader.root(TOMLTable()))
        let known = Set(reader.keys.map { "\($0.name) in \($0.table)" })
        for (name, home) in ForeignNames.homes { #expect(known.contains("\(home.key) in \(home.table)"), "\(name)") }
    }

    /// Of a text without end no more is read, compared and listed than serves anybody.
    @Test func longTextsAreReadInShortTime() throws {
        func problems(_ text: String) -> [String] {
            do throws(ConfigurationProblems) {
                _ = try loaded(smallest + upload + text)
                return []
            } catch { return error.problems.map(\.description) }
        }
        func many(_ count: Int, _ text: (Int) -> String) -> String { (0..<count).map(text).joined(separator: "\n") }
        let unknown = problems("[tracking]\n" + many(20_000) { "stop_timeou\($0) = 1" })
        #expect(unknown.count == 1001 && unknown.first?.hasSuffix("(did you mean stop_timeout?)") == true)
        #expect(unknown.last == "found no room for 19000 more problems")
        let trackables = problems(many(1002) { "[[trackable]]\nid = \"t\($0)\"" })
        #expect(trackables == ["w.toml:2006:1: trackable: found 1002 tables, expected at most 1000"])
        let fields = many(20_000) { "f\($0) = \"$lt\($0)\"" }
        let own = "profile = \"own\"\n[profile.own]\nurl = \"${base_url}\"\n[profile.own.record]\n"
        let profile = problems(own + fields)
        let end = "found more problems than are listed here, expected none"
        #expect(profile.count == 101 && profile.last?.hasSuffix(end) == true)
    }

    static let values = rows(
        #"""
        // Unknown keys and tables.
        [tracking] ⏎ stop_timout = "5m"
        → w.toml:7:1: tracking.stop_timout: found an unknown key, expected a key of [tracking] (did you mean stop_timeout?)
        [tracking] ⏎ max_records = 5
        → w.toml:7:1: tracking.max_records: found an unknown key, expected a key of [tracking] (it belongs in [outbox])
        [sampling] ⏎ interval = "5s"
        → w.toml:7:1: sampling.interval: found an unknown key, expected a key of [sampling] (it belongs in [resolution.default] or [resolution.constant_engine])
        [outbox] ⏎ batch_sise = 5
        → w.toml:7:1: outbox.batch_sise: found an unknown key, expected a key of [outbox] (did you mean batch_size in [[endpoint]]?)
        [outbox] ⏎ frobnicate = 5 → w.toml:7:1: outbox.frobnicate: found an unknown key, expected a key of [outbox]
        [tracking] ⏎ isMoving = true
        → w.toml:7:1: tracking.isMoving: found an unknown key, expected a key of [tracking] (did you mean start_moving in [tracking]?)
        [sampling] ⏎ useSignificantChangesOnly = true
        → w.toml:7:1: sampling.useSignificantChangesOnly: found an unknown key, expected a key of [sampling] (did you mean rule = "significant" in [sampling]?)
        [trackng] ⏎ heartbeat = 1
        → w.toml:6:2: trackng: found an unknown table, expected one of the tables of waypost (did you mean tracking?)
        [tracking] ⏎ stop-timeout = "5m"
        → w.toml:7:1: tracking.stop-timeout: found an unknown key, expected a key of [tracking] (did you mean stop_timeout?)
        [sampling] ⏎ rule = "both" ⏎ [resolution] ⏎ distanceFilter = 0
        → w.toml:7:8: sampling.rule: found "both" together with distanceFilter = 0, expected one of the two: that is the rule "interval"
        // Types.
        [tracking] ⏎ heartbeat = true
        → w.toml:7:13: tracking.heartbeat: found true, expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds)
        [tracking] ⏎ heartbeat = 2020-01-01
        → w.toml:7:13: tracking.heartbeat: found a date or time, expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds)
        [tracking] ⏎ heartbeat = nan
        → w.toml:7:13: tracking.heartbeat: found nan, expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds)
        [tracking] ⏎ start_moving = "yes" → w.toml:7:16: tracking.start_moving: found "yes", expected true or false
        [tracking] ⏎ consecutive_fixes = 2.0
        → w.toml:7:21: tracking.consecutive_fixes: found 2, expected a whole number from 1 to 60
        [log] ⏎ level = 3
        → w.toml:7:9: log.level: found 3, expected "critical", "error", "warning", "notice", "info", "debug" or "trace"
        tracking = 3
        → w.toml:6:1: endpoint.tracking: found an unknown key, expected a key of [[endpoint]] (it is a table: [tracking])
        [[tracking]] ⏎ heartbeat = 1
        → w.toml:6:3: tracking: found an array of tables, expected one table, written [tracking]
        // Words.
        [log] ⏎ level = "inf"
        → w.toml:7:9: log.level: found "inf", expected "critical", "error", "warning", "notice", "info", "debug" or "trace" (did you mean "info"?)
        [sampling] ⏎ rule = "track_error"
        → w.toml:7:8: sampling.rule: found "track_error", expected "either", "both", "interval", "displacement", "track-error" or "significant" (did you mean "track-error"?)
        [sampling] ⏎ bound = 0 → w.toml:7:9: sampling.bound: found 0, expected a distance from 0.1m to 10km
        [sampling] ⏎ angle = "200deg"
        → w.toml:7:9: sampling.angle: found "200deg", expected an angle from 0deg to 180deg, or "off"
        [sampling] ⏎ speed_change = "never"
        → w.toml:7:16: sampling.speed_change: found "never", expected a speed such as "10km/h" (units km/h, kn, m/s; a bare number is m/s), or "off"
        [sampling] ⏎ elasticity = -1
        → w.toml:7:14: sampling.elasticity: found -1, expected a factor from 0 to 100, or "off"
        // Units.
        [tracking] ⏎ heartbeat = "5km"
        → w.toml:7:13: tracking.heartbeat: found "5km", expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds)
        [tracking] ⏎ heartbeat = "5min"
        → w.toml:7:13: tracking.heartbeat: found "5min", expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds) (did you mean "5m"?)
        [tracking] ⏎ heartbeat = "300"
        → w.toml:7:13: tracking.heartbeat: found "300" without a unit, expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds)
        [tracking] ⏎ speed_limit = "100kmh"
        → w.toml:7:15: tracking.speed_limit: found "100kmh", expected a speed such as "10km/h" (units km/h, kn, m/s; a bare number is m/s) (did you mean "100km/h"?)
        [tracking] ⏎ speed_limit = "60mph"
        → w.toml:7:15: tracking.speed_limit: found "60mph", expected a speed such as "10km/h" (units km/h, kn, m/s; a bare number is m/s) (did you mean "96.6km/h"?)
        [sampling] ⏎ bound = "30ft"
        → w.toml:7:9: sampling.bound: found "30ft", expected a distance such as "50m" (units m, km; a bare number is metres) (did you mean "9.14m"?)
        [outbox] ⏎ max_bytes = "256mb"
        → w.toml:7:13: outbox.max_bytes: found "256mb", expected a size such as "256MiB" (units B, kB, KiB, MB, MiB, GB, GiB; a bare number is bytes), or "off" (did you mean "256MB"?)
        // Ranges.
        [tracking] ⏎ stationary_radius = "5m"
        → w.toml:7:21: tracking.stationary_radius: found "5m", expected a distance from 10m to 10km
        [tracking] ⏎ heartbeat = -1 → w.toml:7:13: tracking.heartbeat: found -1, expected a duration from 0s to 7d
        [tracking] ⏎ accuracy_limit = 0
        → w.toml:7:18: tracking.accuracy_limit: found 0, expected a distance of 1m or more
        [tracking] ⏎ accuracy_limit = 1e300
        → w.toml:7:18: tracking.accuracy_limit: found 1e+300, expected a distance from 1m to 100000km
        [tracking] ⏎ heartbeat = 9223372036854775807
        → w.toml:7:13: tracking.heartbeat: found 9223372036854775807, expected a duration from 0s to 7d
        [tracking] ⏎ stationary_radius = 150 ⏎ backup_radius = 120
        → w.toml:8:17: tracking.backup_radius: found a backup radius of 120m within the stationary radius of 150m, expected it to be at least as large
        [tracking] ⏎ stationary_radius = "300m" ⏎ backup_radius = "1m"
        → w.toml:8:17: tracking.backup_radius: found "1m", expected a distance from 100m to 100km
        // Vendor names.
        [tracking] ⏎ stop_timeout = "5m" ⏎ stopTimeout = 5
        → w.toml:8:1: tracking.stopTimeout: found together with stop_timeout (line 7), expected one of the two: it is another name for the same setting
        [tracking] ⏎ stopTimeout = "5m"
        → w.toml:7:15: tracking.stopTimeout: found "5m", expected a number of minutes from 0 to 1440
        [tracking] ⏎ stopTimeot = 5
        → w.toml:7:1: tracking.stopTimeot: found an unknown key, expected a key of [tracking] (did you mean stopTimeout?)
        // Resolutions and trackables.
        [resolution] ⏎ default = { priority = "high", interval = "1s" }
        → w.toml:7:1: resolution.default.displacement: found nothing, expected a distance such as "50m" (units m, km; a bare number is metres)
        [[trackable]] ⏎ destination = { latitude = 91, longitude = 0 } ⏎ id = "a"
        → w.toml:7:28: trackable.destination.latitude: found 91, expected degrees from -90 to 90
        [[trackable]] ⏎ id = "" → w.toml:7:6: trackable.id: found an empty text, expected a name of at most 128 bytes
        [[trackable]] ⏎ id = "a" ⏎ [[trackable]] ⏎ id = "a"
        → w.toml:9:6: trackable.id: found "a" again, expected an id that no other trackable has
        [[trackable]] ⏎ id = "a" ⏎ constraints = { battery_threshold = 20 }
        → w.toml:8:37: trackable.constraints.battery_threshold: found without low_battery_multiplier, expected both or neither
        [[trackable]] ⏎ id = "a" ⏎ constraints = { proximity = {} }
        → w.toml:8:17: trackable.constraints.proximity.spatial: found neither spatial nor temporal, expected one of them or both
        [[trackable]] ⏎ id = "a" ⏎ constraints = { resolutions = {} }
        → w.toml:8:31: trackable.constraints.resolutions: found an empty table, expected at least one resolution
        // References.
        [device] ⏎ id = "${env:NAM}"
        → w.toml:7:6: device.id: found ${env:NAM}, expected a variable that is set in the environment (did you mean ${env:NAME}?)
        [device] ⏎ id = "${host}"
        → w.toml:7:6: device.id: found ${host}, expected ${env:NAME}, ${hostname} or ${machine_id}
        [device] ⏎ id = "${hostname"
        → w.toml:7:6: device.id: found "${" without "}", expected ${env:NAME}, ${hostname} or ${machine_id}
        // Paths.
        [outbox] ⏎ path = "queue.db"
        → w.toml:7:8: outbox.path: found "queue.db", expected the absolute path of the queue
        """#)

    @Test(arguments: values) func wrongValue(text: String, message: String) {
        #expect(problems(smallest + upload + text, testEnvironment(["NAME": "x"])) == [message])
    }

    static let sources = rows(
        #"""
        kind = "gpsd" ⏎ port = 70000 → w.toml:3:8: source.port: found 70000, expected a port from 1 to 65535
        kind = "gpsd" ⏎ host = "shared memory"
        → w.toml:3:8: source.host: found "shared memory", expected a host name or address
        kind = "gpsd" ⏎ baud = 9600
        → w.toml:3:8: source.baud: found with kind = "gpsd", expected only with kind = "serial"
        kind = "serial" ⏎ path = "/dev/a" ⏎ device = "/dev/b"
        → w.toml:4:10: source.device: found with kind = "serial", expected only with kind = "gpsd"
        kind = "gpsd" ⏎ talker = "GP"
        → w.toml:3:10: source.talker: found with kind = "gpsd", expected only with kind = "serial" or kind = "file" or kind = "tcp" or kind = "udp"
        kind = "seriel" ⏎ path = "/dev/a"
        → w.toml:2:8: source.kind: found "seriel", expected "serial", "gpsd", "file", "tcp" or "udp" (did you mean "serial"?)
        kind = "serial"
        → w.toml:1:2: source.path: found nothing, expected the path of the device, or usb_id or serial_number, of which kind = "serial" needs one
        path = "/dev/a" → w.toml:1:2: source.kind: found nothing, expected "serial", "gpsd", "file", "tcp" or "udp"
        kind = "file" ⏎ path = "/a" ⏎ baud = 9600
        → w.toml:4:8: source.baud: found with kind = "file", expected only with kind = "serial"
        kind = "tcp" ⏎ host = "a" ⏎ port = 0 → w.toml:4:8: source.port: found 0, expected a port from 1 to 65535
        kind = "serial" ⏎ path = "/dev/a" ⏎ baud = 11520
        → w.toml:4:8: source.baud: found 11520, expected "auto" or one of 1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 500000, 576000, 921600, 1000000, 1500000, 2000000, 3000000 (did you mean 115200?)
        kind = "file" ⏎ path = "/a" ⏎ playback = "fast"
        → w.toml:4:12: source.playback: found "fast", expected "recorded", "max" or a factor above 0
        kind = "serial" ⏎ path = "/dev/a" ⏎ talker = "gps"
        → w.toml:4:10: source.talker: found "gps", expected a talker of two capital letters, such as "GP"
        """#)

    @Test(arguments: sources) func wrongSource(text: String, message: String) {
        #expect(problems("[source]\n\(text)\n\(upload)") == [message])
    }

    static let endpoints = rows(
        #"""
        name = "main" → w.toml:4:1: endpoint.base_url: found nothing, expected a URL such as "https://fleet.example"
        base_url = "fleet.example"
        → w.toml:5:12: endpoint.base_url: found "fleet.example", expected a URL such as "https://fleet.example" (did you mean "https://fleet.example"?)
        base_url = "traccar.lan:5055"
        → w.toml:5:12: endpoint.base_url: found "traccar.lan:5055", expected a URL such as "https://fleet.example" (did you mean "http://traccar.lan:5055"?)
        base_url = "fleet.example:https"
        → w.toml:5:12: endpoint.base_url: found "fleet.example:https", expected a URL such as "https://fleet.example"
        base_url = "htps://fleet.example"
        → w.toml:5:12: endpoint.base_url: found "htps://fleet.example", expected a URL such as "https://fleet.example" (did you mean "https://fleet.example"?)
        base_url = "https://u:pw@fleet.example"
        → w.toml:5:12: endpoint.base_url: found a user name in the URL, expected a URL without one (see auth and secrets)
        base_url = "https://fleet.example/?key=pw"
        → w.toml:5:12: endpoint.base_url: found a query in the URL, expected a URL that ends with its path: a key goes into auth, or into secrets and the url of a profile
        base_url = "https://Müller.example:8443/x"
        → w.toml:5:12: endpoint.base_url: found a host with letters beyond ASCII, expected its form for the DNS (punycode) (did you mean "https://xn--mller-kva.example:8443/x"?)
        base_url = "https://пример.испытание"
        → w.toml:5:12: endpoint.base_url: found a host with letters beyond ASCII, expected its form for the DNS (punycode) (did you mean "https://xn--e1afmkfd.xn--80akhbyknj4f"?)
        base_url = "https://fleet.example:99999"
        → w.toml:5:12: endpoint.base_url: found "https://fleet.example:99999", expected a URL such as "https://fleet.example"
        base_url = "https://f" ⏎ batch_size = 0
        → w.toml:6:14: endpoint.batch_size: found 0, expected a whole number from 1 to 10000
        base_url = "https://f" ⏎ min_batch = 101
        → w.toml:6:13: endpoint.min_batch: found a min_batch of 101 above the batch_size of 100, expected at most that
        base_url = "https://f" ⏎ batch_size = 0 ⏎ min_batch = 101
        → w.toml:6:14: endpoint.batch_size: found 0, expected a whole number from 1 to 10000
        base_url = "https://f" ⏎ name = "Main"
        → w.toml:6:8: endpoint.name: found "Main", expected a name of 1 to 32 characters a-z, 0-9 and -
        base_url = "https://f" ⏎ max_age = "5k"
        → w.toml:6:11: endpoint.max_age: found "5k", expected a duration such as "5m" (units ms, s, m, h, d; a bare number is seconds), or "off"
        base_url = "https://f" ⏎ headers = { Host = "a" }
        → w.toml:6:13: endpoint.headers.Host: found a header that waypost sets itself, expected another one
        base_url = "https://f" ⏎ headers = { "A B" = "a" }
        → w.toml:6:13: endpoint.headers.A B: found a name that no header can have, expected letters, digits and -
        base_url = "https://f" ⏎ data_tracking_config = { shouldClearLocalDataWhenCollision = 1 }
        → w.toml:6:62: endpoint.data_tracking_config.shouldClearLocalDataWhenCollision: found 1, expected true or false
        name = "main" ⏎ base_url = "https://b.example" ⏎ [[endpoint]] ⏎ name = "main" ⏎ base_url = "https://b.example"
        → w.toml:8:8: endpoint.name: found "main" again, expected a name that no other endpoint has
        base_url = "https://fleet.example" ⏎ [[endpoint]] ⏎ name = "main" ⏎ base_url = "https://b.example"
        → w.toml:4:1: endpoint.name: with two or more endpoints each needs a name: name = "main" for the one that had none so far, since what waits for it is kept under that name, and another, such as name = "traccar"
        """#)

    @Test(arguments: endpoints) func wrongEndpoint(text: String, message: String) {
        #expect(problems("\(smallest)[[endpoint]]\n\(text)") == [message])
    }

    static let cutTexts: [(String, String)] = [
        ("a = \"\"\"x\n", "1:9"), ("a = \"\"\"x", "1:9"), ("a = [1,\n", "1:8"), ("a = [1,\n\n", "2:1"),
    ]

    /// Where the text ends, toml++ names a column behind the line.
    @Test(arguments: cutTexts)
    func aTextThatEndsTooEarlyHasAProblemInsideIt(text: String, place: String) {
        #expect(problems(text) == ["w.toml:\(place): not valid TOML: encountered end-of-file"])
    }

    static let wholeTexts = rows(
        #"""
        a = “x” → w.toml:1:5: not valid TOML: could not determine value type (found the typographic quotation mark “: TOML knows only " and ')
        a = 5m → w.toml:1:6: not valid TOML: expected digit, saw 'm' (a value with letters needs quotes: "5m")
        [source] ⏎ kind = serial
        → w.toml:2:8: not valid TOML: could not determine value type (a value with letters needs quotes: "serial")
        [a] ⏎ b = 1 ⏎ b = 2 → w.toml:3:5: not valid TOML: cannot redefine existing integer 'b'
        a = "x → w.toml:1:7: not valid TOML: encountered end-of-file
        → w.toml:1:1: source.kind: found nothing, expected [source], which says where the fixes come from
        """#)

    @Test(arguments: wholeTexts) func wrongText(text: String, message: String) {
        #expect(problems(text) == [message])
    }

    @Test func allProblemsAreReportedAtOnceInTheOrderOfTheLines() {
        let text = """
            [tracking]
            heartbeat = "x"
            stop_timout = 1
            [source]
            kind = "serial"
            [log]
            level = "loud"
            [[endpoint]]
            batch_size = -1
            """
        let lines = problems(text).map { $0.split(separator: " ").prefix(2).joined(separator: " ") }
        #expect(
            lines == [
                "w.toml:2:13: tracking.heartbeat:", "w.toml:3:1: tracking.stop_timout:", "w.toml:4:2: source.path:",
                "w.toml:7:9: log.level:", "w.toml:8:1: endpoint.base_url:", "w.toml:9:14: endpoint.batch_size:",
            ])
    }

    @Test func withoutEndpointThereIsAWarning() throws {
        #expect(
            try loaded(smallest).warnings.map(\.description) == [
                "w.toml:1:1: endpoint: none is configured yet: drives are stored on this device, `sudo waypost init` asks for a server"
            ])
    }

    @Test func deviceNamedMachineNeedsAMachineID() {
        var environment = testEnvironment()
        environment.machineID = { nil }
        #expect(
            problems(smallest + upload, environment) == [
                "w.toml:1:1: device.id: found \"machine\" on a host without /etc/machine-id, "
                    + "expected the name of the device here"
            ])
        #expect(problems(smallest + upload + "[device]\nid = \"van\"", environment).isEmpty)
    }
}
