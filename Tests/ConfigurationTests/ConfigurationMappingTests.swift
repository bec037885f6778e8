import ConfigurationTestSupport
import Profiles
import Queue
import Sensors
import TestSupport
import Testing
import WaypostCore
import WaypostNMEA
import WaypostTracking

@testable import Configuration

@Suite struct ConfigurationMappingTests {
    @Test func smallestFileHasTheDefaultsOfTheTargets() throws {
        let config = try loaded(smallest + upload).config
        #expect(config.device == "0123456789abcdef")
        var tracking = Tracker.Settings(trackables: [Trackable(id: "0123456789abcdef")])
        tracking.keepFewest()
        #expect(config.tracking.motion == MotionDetector.Settings())
        #expect(config.tracking.admission == FixFilter.Settings())
        #expect(config.tracking.sampling == tracking.sampling)
        #expect(config.tracking.resolution == ResolutionSettings())
        #expect(config.tracking.trackables == tracking.trackables && !config.tracking.keepEngineFixes)
        #expect(config.outbox.settings == OutboxSettings(path: "/var/lib/waypost/outbox.db"))
        #expect(config.outbox.commitWindow == .seconds(10))
        let endpoint = try #require(config.endpoints.first)
        let profile = endpoint.settings.profile
        #expect(
            endpoint.settings
                == EndpointSettings(baseURL: "https://fleet.example", device: "0123456789abcdef", profile: profile))
        let isPlain = config.endpoints.count == 1 && !endpoint.carriesSecret && endpoint.shownHeaders.isEmpty
        #expect(profile.name == "waypost" && isPlain)
        #expect(config.control == .init(socket: "/run/waypost/control.sock", group: nil) && config.log == .init())
        guard case .serial(let serial) = config.source else { throw Unexpected() }
        #expect(serial.device == .path("/dev/ttyACM0") && serial.speed == .auto && serial.decoder.live)
    }

    @Test func pathsFollowTheDirectoriesOfTheUnit() throws {
        let environment = testEnvironment(["STATE_DIRECTORY": "/s/a:/s/b", "RUNTIME_DIRECTORY": "/r"])
        let config = try loaded(smallest + upload, environment).config
        #expect(config.outbox.settings.path == "/s/a/outbox.db")
        #expect(config.control.socket == "/r/control.sock")
    }

    @Test func everyKeyOfTrackingArrives() throws {
        let text = """
            [tracking]
            accuracy_limit = 50
            speed_limit = "108km/h"
            allow_simulated = true
            stop_timeout = "1h30m"
            still_speed = 1
            stationary_radius = "0.03km"
            backup_radius = "300m"
            start_evidence = 16
            outside_evidence = 9
            resume_evidence = 7.5
            consecutive_fixes = 3
            motion_trigger_delay = "250ms"
            anchor_accuracy = 40
            heartbeat = 0
            gap_after = "90s"
            no_fix_timeout = "1d"
            power_off_stop = "2m"
            ring = "5m"
            static_navigation = false
            disable_stop_detection = true
            stop_on_stationary = true
            start_moving = true
            power_starts_trip = true
            trip_summary = true
            [sampling]
            rule = "track-error"
            bound = "0.01km"
            max_delay = "2m"
            angle = "15deg"
            speed_change = "10km/h"
            elasticity = 2
            min_gap = 1.5
            """
        let tracking = try loaded(smallest + upload + text).config.tracking
        var motion = MotionDetector.Settings()
        motion.stopTimeout = .seconds(5400)
        motion.stillSpeed = 1
        motion.stationaryRadius = 30
        motion.backupRadius = 300
        motion.startEvidence = 16
        motion.outsideEvidence = 9
        motion.resumeEvidence = 7.5
        motion.consecutiveFixes = 3
        motion.motionTriggerDelay = .milliseconds(250)
        motion.anchorAccuracy = 40
        motion.heartbeat = .zero
        motion.gapAfter = .seconds(90)
        motion.noFixTimeout = .seconds(86_400)
        motion.powerOffStop = .seconds(120)
        motion.ring = .seconds(300)
        motion.staticNavigation = false
        motion.disableStopDetection = true
        motion.stopOnStationary = true
        motion.startMoving = true
        motion.powerStartsTrip = true
        #expect(tracking.motion == motion)
        let admission = tracking.admission
        #expect(admission.accuracyMax == 50 && abs(admission.speedMax - 30) < 1e-9)
        #expect(admission.allowSimulated && tracking.tripSummary)
        var sampling = LocationSampler.Settings()
        sampling.rule = .trackError
        sampling.bound = 10
        sampling.maxDelay = .seconds(120)
        sampling.angle = 15
        sampling.speedChange = 10.0 * 1000 / 3600
        sampling.elasticity = 2
        sampling.minGap = .milliseconds(1500)
        #expect(tracking.sampling == sampling)
    }

    @Test(arguments: ["\"off\"", "0", "0.0"])
    func triggersAreOffByAWordOrZero(off: String) throws {
        let text = "[sampling]\npreset = \"balanced\"\nangle = \(off)\nspeed_change = \(off)\nelasticity = \(off)\n"
        let loaded = try loaded(smallest + upload + text)
        #expect(loaded.config.tracking.sampling == LocationSampler.Settings())
        #expect(loaded.effective.description.contains("angle = \"off\"  # from w.toml:8\n"))
    }

    static let angles: [(String, Double?)] = [
        ("", nil), ("preset = \"active\"", nil), ("preset = \"balanced\"", 20), ("preset = \"passive\"", nil),
        ("preset = \"balanced\"\nangle = 30", 30), ("angle = 30\npreset = \"balanced\"", 30),
        ("angle = \"off\"\npreset = \"balanced\"", nil),
    ]

    @Test(arguments: angles) func presetGivesTheAngleUnlessItIsWritten(keys: String, angle: Double?) throws {
        let loaded = try loaded(smallest + upload + "[sampling]\n" + keys)
        #expect(loaded.config.tracking.sampling.angle == angle)
        let isOfThePreset = loaded.effective.description.contains("angle = \"20deg\"  # preset \"balanced\"\n")
        #expect(isOfThePreset == (angle == 20))
    }

    @Test func aDistanceFilterOfZeroLeavesTheChoiceToTime() throws {
        func tracking(_ keys: String) throws -> Tracker.Settings {
            try loaded(smallest + upload + keys).config.tracking
        }
        let off = try tracking("[resolution]\ndistanceFilter = 0\nlocationUpdateInterval = 5000")
        #expect(off.sampling.rule == .interval)
        #expect(off.resolution.default == Resolution(priority: .balanced, intervalMs: 5000, displacement: 10))
        // Above 0 it turns the interval off, unless a rule is set.
        let apart = try tracking("[resolution]\ndistanceFilter = 50")
        #expect(apart.sampling.rule == .displacement && apart.resolution.default.displacement == 50)
        let both = try tracking("[sampling]\nrule = \"either\"\n[resolution]\ndistanceFilter = 50")
        #expect(both.sampling.rule == .either)
        #expect(
            try tracking("[sampling]\nrule = \"interval\"\n[resolution]\ndistanceFilter = 0").sampling.rule == .interval
        )
        // Ours means what it says: every fix.
        let ours = "[resolution.default]\npriority = \"low\"\ninterval = \"5s\"\ndisplacement = 0"
        let every = try tracking(ours)
        #expect(every.sampling.rule == .either && every.resolution.default.displacement == 0)
        let shown = try loaded(smallest + upload + "[resolution]\ndistanceFilter = 0").effective.description
        #expect(shown.contains("rule = \"interval\"  # distanceFilter = 0\n"))
    }

    @Test func significantMeansHalfAKilometreUnlessADistanceIsSet() throws {
        func displacements(_ keys: String) throws -> [Double?] {
            let tracking = try loaded(smallest + upload + keys).config.tracking
            return [tracking.resolution.default.displacement, tracking.moving?.resolution.displacement]
        }
        let rule = "rule = \"significant\"\n"
        #expect(try displacements("[sampling]\n" + rule) == [500, nil])
        #expect(try displacements("[sampling]\n" + rule + "[tracking.moving]\nrule = \"either\"\n") == [500, 10])
        #expect(try displacements("[tracking.moving]\n" + rule) == [10, 500])
        #expect(try displacements("[tracking.moving]\n" + rule + "displacement = 80\n") == [10, 80])
        #expect(try displacements("[sampling]\n" + rule + "preset = \"active\"\n") == [5, nil])
        #expect(try displacements("[sampling]\n" + rule + "[resolution]\ndistanceFilter = 90\n") == [90, nil])
    }

    /// As milliseconds are written elsewhere; hours and quarters of them are seconds.
    @Test func aBareNumberThatLooksLikeMillisecondsIsDoubted() throws {
        func warnings(_ value: String) throws -> [String] {
            try loaded(smallest + upload + "[tracking]\nheartbeat = \(value)\n").warnings.map(\.description)
        }
        #expect(
            try warnings("1000") == [
                "w.toml:7:13: tracking.heartbeat: found 1000, which is \"16m40s\": a bare number is seconds; write "
                    + "\"16m40s\", or \"1000ms\" for milliseconds"
            ])
        for value in ["3000", "5000", "60000", "2500.0"] { #expect(try warnings(value).count == 1, "\(value)") }
        for value in ["0", "600", "900", "1200", "1800", "3600", "5400", "86400", "\"1000s\""] {
            #expect(try warnings(value).isEmpty, "\(value)")
        }
    }

    @Test func everyKeyOfTheReceiverArrives() throws {
        #expect(try loaded(smallest + upload).config.tracking.receiver == ReceiverCycle.Settings())
        let text = "[receiver]\nsleep = true\nsettle = \"2m\"\nprobe = \"15m\"\nprobe_on = 45\n"
        let receiver = try loaded(smallest + upload + text)
        var expected = ReceiverCycle.Settings()
        expected.sleep = true
        expected.settle = .seconds(120)
        expected.probe = .seconds(900)
        expected.probeOn = .seconds(45)
        #expect(receiver.config.tracking.receiver == expected)
        #expect(receiver.warnings.isEmpty)
        // What has no effect is said.
        let idle = try loaded(smallest + upload + "[receiver]\nprobe = \"15m\"\n").warnings
        #expect(idle.map(\.description).contains { $0.contains("receiver.probe") && $0.contains("sleep = true") })
        #expect(problems(smallest + upload + "[receiver]\nprobe = \"0s\"\n").contains { $0.contains("receiver.probe") })
    }

    @Test func presetYieldsToWhatIsWritten() throws {
        func standard(_ text: String) throws -> Resolution {
            try loaded(smallest + upload + text).config.tracking.resolution.default
        }
        #expect(try standard("") == Resolution(priority: .balanced, intervalMs: 3000, displacement: 10))
        #expect(
            try standard("[sampling]\npreset = \"passive\"")
                == Resolution(priority: .balanced, intervalMs: 300_000, displacement: 200))
        let written = "[resolution]\ndefault = { priority = \"low\", interval = \"7s\", displacement = 3 }\n"
        let low = Resolution(priority: .low, intervalMs: 7000, displacement: 3)
        #expect(try standard(written + "[sampling]\npreset = \"passive\"") == low)
        #expect(try standard("[sampling]\npreset = \"passive\"\n" + written) == low)
        #expect(
            try standard("[sampling]\npreset = \"active\"\n[resolution]\ndistanceFilter = 30")
                == Resolution(priority: .balanced, intervalMs: 1000, displacement: 30))
    }

    @Test func trackablesAreReadWhole() throws {
        let text = """
            [[trackable]]
            id = "order-17"
            destination = { latitude = 52.5163, longitude = 13.3777 }
            [trackable.constraints]
            proximity = { spatial = "500m", temporal = "5m" }
            battery_threshold = 20
            low_battery_multiplier = 2.0
            [trackable.constraints.resolutions]
            near_with_subscriber = { priority = "high", interval = "1s", displacement = "2m" }
            [[trackable]]
            id = "order-18"
            """
        let trackables = try loaded(smallest + upload + text).config.tracking.trackables
        let near = Resolution(priority: .high, intervalMs: 1000, displacement: 2)
        #expect(
            trackables == [
                Trackable(
                    id: "order-17", destination: Coordinate(latitude: 52.5163, longitude: 13.3777),
                    constraints: .default(
                        DefaultResolutionConstraints(
                            resolutions: .init(nearWithSubscriber: near),
                            proximity: .init(spatial: 500, temporal: .seconds(300)),
                            lowBattery: .init(threshold: 20, multiplier: 2)))),
                Trackable(id: "order-18"),
            ])
    }

    private func source(_ lines: String, _ more: String = "") throws -> SourceConfig {
        try loaded("[source]\n\(lines)\n\(more)\n\(upload)").config.source
    }

    private static let repair = NMEADecoder.Rollover.repair(buildDate: CivilDate(year: 2025, month: 1, day: 1)!)

    @Test func sourcesOfEveryKind() throws {
        guard case .file(let file) = try source("kind=\"file\"\npath=\"-\"\nplayback=10\nfollow=true"),
            case .tcp(let tcp) = try source("kind=\"tcp\"\nhost=\"::1\"\nport=10110\ntalker=\"GN\""),
            case .udp(let udp) = try source("kind=\"udp\"\nport=10110\nstale_after=\"9s\""),
            case .serial(let serial) = try source(
                "kind=\"serial\"\npath=\"/dev/ttyACM0\"\nbaud = 4800", "[source.range_error]\ngps = 3")
        else { throw Unexpected() }
        #expect(file.playback == .recorded(factor: 10) && file.follow)
        #expect(!file.decoder.live && file.decoder.rollover == .off)
        #expect(tcp.host == "::1" && tcp.port == 10110)
        #expect(tcp.decoder.talker == "GN" && tcp.decoder.rollover == Self.repair)
        #expect(udp.host == "127.0.0.1" && udp.staleness == .seconds(9))
        #expect(serial.speed == .fixed(LineSpeed(baud: 4800)!) && serial.decoder.rangeErrors.gps == 3)
    }

    @Test func aSourceThatIsGPSD() throws {
        let keys = "kind=\"gpsd\"\nhost=\"box.lan\"\nport=3000\ndevice=\"/dev/b\"\nstale_after=\"9s\""
        guard case .gpsd(let usual) = try source("kind=\"gpsd\""),
            case .gpsd(let gpsd) = try source(keys, "[receiver]\nprofile=\"gpsd-cycle\"")
        else { throw Unexpected() }
        #expect(usual.host == "localhost" && usual.port == 2947 && usual.device == nil)
        #expect(usual.decoder.rollover == Self.repair)
        #expect(gpsd.host == "box.lan" && gpsd.port == 3000 && gpsd.device == "/dev/b")
        #expect(gpsd.staleness == .seconds(9) && gpsd.receiver == .gpsdCycle)
    }

    @Test func endpointKeysArrive() throws {
        let text = """
            [[endpoint]]
            name = "fleet-2"
            base_url = "https://fleet.example:8443/in/"
            device = "${hostname}-${machine_id}-$$1"
            batch_size = 7
            batch_window = "20s"
            min_batch = 2
            timeout = "9s"
            feed = "engine"
            required = false
            backfill = true
            compress = "none"
            [[endpoint]]
            name = "spare"
            base_url = "http://127.0.0.1:9"
            """
        let loaded = try loaded(smallest + text)
        #expect(loaded.warnings.isEmpty)
        #expect(loaded.config.tracking.keepEngineFixes)
        let expected = EndpointSettings(
            name: "fleet-2", baseURL: "https://fleet.example:8443/in", device: "van-0123456789abcdef-$1", batchSize: 7,
            batchWindow: .seconds(20), minBatch: 2, timeout: .seconds(9), feed: .engine, required: false, gzip: false,
            backfill: true, profile: loaded.config.endpoints[0].settings.profile)
        #expect(loaded.config.endpoints.map(\.settings.name) == ["fleet-2", "spare"])
        #expect(loaded.config.endpoints[0].settings == expected)
    }

    @Test func vendorNamesCountInTheVendorsUnits() throws {
        let text = """
            [tracking]
            stopTimeout = 2.5
            stationaryRadius = 30
            heartbeatInterval = 60
            [resolution]
            distanceFilter = 15
            locationUpdateInterval = 1500
            [[endpoint]]
            [endpoint.data_tracking_config]
            baseUrl = "fleet.example"
            dataUploadingBatchSize = 30
            dataUploadingBatchWindow = 20
            dataStorageSize = 5000
            shouldClearLocalDataWhenCollision = false
            """
        let config = try loaded(smallest + text).config
        let (motion, standard) = (config.tracking.motion, config.tracking.resolution.default)
        #expect(motion.stopTimeout == .seconds(150) && motion.stationaryRadius == 30)
        #expect(motion.heartbeat == .seconds(60))
        #expect(standard.displacement == 15 && standard.intervalMs == 1500)
        let endpoint = try #require(config.endpoints.first?.settings)
        #expect(endpoint.baseURL == "https://fleet.example" && config.outbox.settings.maxRecords == 5000)
        #expect(endpoint.batchSize == 30 && endpoint.batchWindow == .seconds(20))
    }

    @Test func effectiveConfigurationTellsOrigins() throws {
        let text = smallest + "[sampling]\npreset = \"active\"\n[tracking]\nstopTimeout = 90\n" + upload
        let shown = try loaded(text).effective.description
        let lines: [String] = [
            "[source]\nkind = \"serial\"  # from w.toml:2\n", "stop_timeout = \"1h30m\"  # from w.toml:7\n",
            "interval = \"1s\"  # preset \"active\"\n", "still_speed = \"0.5m/s\"  # default\n",
            "max_bytes = \"256MiB\"  # default\n", "# group is not set  # default\n",
        ]
        for line in lines { #expect(shown.contains(line)) }
    }

    private struct Unexpected: Error {}
}

@Suite struct PrintedTextTests {
    /// What is printed is a configuration again, in which nothing is replaced that was plain text in the first one.
    @Test(arguments: ["a$${hostname}b", "$$$$", "$x", "a$$"])
    func dollarsArePrintedAsTheyAreWritten(_ id: String) throws {
        let first = try loaded("device.id = \"\(id)\"\n" + smallest + upload)
        #expect(try loaded(first.effective.description).config.device == first.config.device)
    }
}
