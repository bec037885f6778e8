import Delivery
import NMEA
import Outbox
import Positioning
import Sensors
import TestSupport
import Testing
import Tracking

@testable import Configuration

@Suite struct ConfigurationMappingTests {
    @Test func smallestFileHasTheDefaultsOfTheTargets() throws {
        let config = try loaded(smallest + upload).config
        #expect(config.device == "0123456789abcdef")
        #expect(config.tracking.motion == MotionDetector.Settings())
        #expect(config.tracking.admission == FixFilter.Settings())
        var fewest = Tracker.Settings(trackables: [])
        fewest.keepFewest()
        #expect(config.tracking.sampling == fewest.sampling)
        #expect(config.tracking.resolution == ResolutionSettings())
        #expect(config.tracking.trackables == [Trackable(id: "0123456789abcdef")])
        #expect(!config.tracking.keepEngineFixes)
        #expect(config.outbox.settings == OutboxSettings(path: "/var/lib/waypost/outbox.db"))
        #expect(config.outbox.commitWindow == .seconds(10))
        #expect(config.endpoints.count == 1)
        let profile = config.endpoints[0].settings.profile
        #expect(profile.name == "waypost")
        #expect(
            config.endpoints[0].settings
                == EndpointSettings(baseURL: "https://fleet.example", device: "0123456789abcdef", profile: profile))
        #expect(!config.endpoints[0].carriesSecret && config.endpoints[0].shownHeaders.isEmpty)
        #expect(config.control == .init(socket: "/run/waypost/control.sock", group: nil))
        #expect(config.log == .init())
        guard case .serial(let serial) = config.source else {
            Issue.record("not serial")
            return
        }
        #expect(serial.device == .path("/dev/ttyACM0"))
        #expect(serial.speed == .auto)
        #expect(serial.decoder.live)
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
        #expect(tracking.admission.accuracyMax == 50)
        #expect(abs(tracking.admission.speedMax - 30) < 1e-9)
        #expect(tracking.admission.allowSimulated)
        #expect(tracking.tripSummary)
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

    @Test func presetGivesTheAngleUnlessItIsWritten() throws {
        func angle(_ keys: String) throws -> Double? {
            try loaded(smallest + upload + "[sampling]\n" + keys).config.tracking.sampling.angle
        }
        #expect(try angle("") == nil)
        #expect(try angle("preset = \"active\"") == nil)
        #expect(try angle("preset = \"balanced\"") == 20)
        #expect(try angle("preset = \"passive\"") == nil)
        #expect(try angle("preset = \"balanced\"\nangle = 30") == 30)
        #expect(try angle("angle = 30\npreset = \"balanced\"") == 30)
        #expect(try angle("angle = \"off\"\npreset = \"balanced\"") == nil)
        let shown = try loaded(smallest + upload + "[sampling]\npreset = \"balanced\"").effective.description
        #expect(shown.contains("angle = \"20deg\"  # preset \"balanced\"\n"))
    }

    @Test func aDistanceFilterOfZeroLeavesTheChoiceToTime() throws {
        func tracking(_ keys: String) throws -> Tracker.Settings {
            try loaded(smallest + upload + keys).config.tracking
        }
        let off = try tracking("[resolution]\ndistanceFilter = 0\nlocationUpdateInterval = 5000")
        #expect(off.sampling.rule == .interval)
        #expect(off.resolution.default == Resolution(priority: .balanced, intervalMs: 5000, displacement: 10))
        #expect(try tracking("[resolution]\ndistanceFilter = 1").sampling.rule == .either)
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

    @Test func sourcesOfEveryKind() throws {
        let file = try loaded("[source]\nkind=\"file\"\npath=\"-\"\nplayback=10\nfollow=true\n" + upload).config.source
        guard case .file(let settings) = file else { throw Unexpected() }
        #expect(settings.playback == .recorded(factor: 10))
        #expect(settings.follow)
        #expect(!settings.decoder.live)
        #expect(settings.decoder.rollover == .off)

        let tcp = try loaded("[source]\nkind=\"tcp\"\nhost=\"::1\"\nport=10110\ntalker=\"GN\"\n" + upload).config.source
        guard case .tcp(let settings) = tcp else { throw Unexpected() }
        #expect(settings.host == "::1")
        #expect(settings.port == 10110)
        #expect(settings.decoder.talker == "GN")
        #expect(settings.decoder.rollover == .repair(buildDate: CivilDate(year: 2025, month: 1, day: 1)!))

        let gpsd = try loaded("[source]\nkind=\"gpsd\"\n" + upload).config.source
        guard case .gpsd(let settings) = gpsd else { throw Unexpected() }
        #expect(settings.host == "localhost")
        #expect(settings.port == 2947)
        #expect(settings.device == nil)
        #expect(settings.decoder.rollover == .repair(buildDate: CivilDate(year: 2025, month: 1, day: 1)!))
        let remote = "[source]\nkind=\"gpsd\"\nhost=\"box.lan\"\nport=3000\ndevice=\"/dev/b\"\nstale_after=\"9s\"\n"
        let paced = "[receiver]\nprofile=\"gpsd-cycle\"\n"
        guard case .gpsd(let settings) = try loaded(remote + paced + upload).config.source else { throw Unexpected() }
        #expect(settings.receiver == .gpsdCycle)
        #expect(settings.host == "box.lan")
        #expect(settings.port == 3000)
        #expect(settings.device == "/dev/b")
        #expect(settings.staleness == .seconds(9))

        let udp = try loaded("[source]\nkind=\"udp\"\nport=10110\nstale_after=\"9s\"\n" + upload).config.source
        guard case .udp(let settings) = udp else { throw Unexpected() }
        #expect(settings.host == "127.0.0.1")
        #expect(settings.staleness == .seconds(9))

        let serial = try loaded(smallest + "baud = 4800\n[source.range_error]\ngps = 3\n" + upload).config.source
        guard case .serial(let settings) = serial else { throw Unexpected() }
        #expect(settings.speed == .fixed(LineSpeed(baud: 4800)!))
        #expect(settings.decoder.rangeErrors.gps == 3)
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
        #expect(config.tracking.motion.stopTimeout == .seconds(150))
        #expect(config.tracking.motion.stationaryRadius == 30)
        #expect(config.tracking.motion.heartbeat == .seconds(60))
        #expect(config.tracking.resolution.default.displacement == 15)
        #expect(config.tracking.resolution.default.intervalMs == 1500)
        let endpoint = try #require(config.endpoints.first?.settings)
        #expect(endpoint.baseURL == "https://fleet.example")
        #expect(endpoint.batchSize == 30)
        #expect(endpoint.batchWindow == .seconds(20))
        #expect(config.outbox.settings.maxRecords == 5000)
    }

    @Test func effectiveConfigurationTellsOrigins() throws {
        let text = smallest + "[sampling]\npreset = \"active\"\n[tracking]\nstopTimeout = 90\n" + upload
        let shown = try loaded(text).effective.description
        #expect(shown.contains("[source]\nkind = \"serial\"  # from w.toml:2\n"))
        #expect(shown.contains("stop_timeout = \"1h30m\"  # from w.toml:7\n"))
        #expect(shown.contains("interval = \"1s\"  # preset \"active\"\n"))
        #expect(shown.contains("still_speed = \"0.5m/s\"  # default\n"))
        #expect(shown.contains("max_bytes = \"256MiB\"  # default\n"))
        #expect(shown.contains("# group is not set  # default\n"))
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
