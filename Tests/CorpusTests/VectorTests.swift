import Configuration
import Testing
import WaypostCore
import WaypostTracking

/// What the reference, or where it differs waypost, must make of each vector.
@Suite struct VectorTests {
    @Test func thereAreVectorsOfEveryKind() throws {
        let vectors = try Vector.all.get()
        #expect(vectors.count >= 183)
        #expect(Set(vectors.map(\.name)).count == vectors.count)
        #expect(Set(vectors.map(\.kind)).count >= 34)
    }

    @Test(arguments: (try? Vector.all.get()) ?? [])
    func holds(_ vector: Vector) throws {
        let (input, expected) = (vector.input, vector.expected)
        switch vector.kind {
        case "policy.trackable": #expect(try network(input) == Resolution(expected))
        case "policy.engine": #expect(try engine(input) == Resolution(expected))
        case "policy.error": try refusesForeignConstraints(input, expected)
        case "proximity.invalid": try refusesEmptyProximity(input, expected)
        case "constraints.invalid": try refusesEmptyResolutions(input, expected)
        case "scenario": try scenario(input, expected)
        case "proximity": #expect(try .flag(reached(input)) == expected)
        case "filter.sequence": try sequence(input, expected)
        case "filter.single": #expect(try .flag(single(input)) == expected)
        case "filter.geo": try geo(input, expected)
        case "skipped": #expect(try skipped(input) == expected)
        case "battery.percent": #expect(try percent(input) == expected)
        case "waypost.proximity": #expect(try near(input) == expected)
        case "waypost.battery": #expect(try low(input) == expected)
        case "waypost.filter": #expect(try selected(input) == expected)
        default: try ChannelVector(vector).holds()
        }
    }

    // The policy.

    private func network(_ input: JSON) throws -> Resolution {
        try Fields.read(input) { fields in
            let constraints = try fields.optional("constraints").map(constraints)
            var battery = LowBatteryFlag()
            let percent = try fields.optionalNumber("batteryPercent")
            if let limit = constraints?.lowBattery?.threshold {
                battery.observe(percent: percent, threshold: limit, hysteresis: 2)
            }
            return try DefaultResolutionPolicy().networkResolution(
                for: TrackableResolutionRequest(
                    trackable: Trackable(id: "t", constraints: constraints.map { .default($0) }),
                    defaultResolution: fields.resolution("defaultResolution"), near: fields.flag("proximityReached"),
                    hasSubscribers: fields.flag("hasSubscribers"),
                    remoteRequests: fields.array("remoteRequests").map { try Resolution($0) }, batteryLow: battery.isLow
                ))
        }
    }

    private func constraints(_ value: JSON) throws -> DefaultResolutionConstraints {
        try Fields.read(value) { fields in
            let set = try Fields.read(fields.value("resolutions")) { set in
                DefaultResolutionConstraints.ResolutionSet(
                    farWithoutSubscriber: try set.optionalResolution("farWithoutSubscriber"),
                    farWithSubscriber: try set.optionalResolution("farWithSubscriber"),
                    nearWithoutSubscriber: try set.optionalResolution("nearWithoutSubscriber"),
                    nearWithSubscriber: try set.optionalResolution("nearWithSubscriber"))
            }
            let (threshold, multiplier) = (
                try fields.optionalNumber("batteryLevelThreshold"), try fields.optionalNumber("lowBatteryMultiplier")
            )
            return DefaultResolutionConstraints(
                resolutions: set, proximity: try fields.optional("proximityThreshold").map(proximity),
                lowBattery: threshold.flatMap { threshold in
                    multiplier.map { LowBattery(threshold: threshold, multiplier: $0) }
                })
        }
    }

    private func proximity(_ value: JSON) throws -> Proximity {
        try Fields.read(value) { fields in
            Proximity(
                spatial: try fields.optionalNumber("spatial"),
                temporal: try fields.optionalNumber("temporal").map { .milliseconds(Int64($0)) })
        }
    }

    private func engine(_ input: JSON) throws -> Resolution {
        try Fields.read(input) { fields in
            try DefaultResolutionPolicy().engineResolution(
                of: fields.array("networkResolutions").map { try Resolution($0) },
                default: fields.resolution("defaultResolution"))
        }
    }

    /// A whole tracker: constraints stand in all four cases, subscribers ask, the engine serves all.
    private func scenario(_ input: JSON, _ expected: JSON) throws {
        var settings = Tracker.Settings(trackables: [])
        // The network resolution as the policy gives it: without floor and without the cap of a parked asset.
        settings.motion.heartbeat = .zero
        settings.resolution.subscriberIntervalFloor = .zero
        var events: [TrackerEvent] = []
        try Fields.read(input) { fields in
            settings.resolution.default = try fields.resolution("defaultResolution")
            settings.resolution.constantEngine = try fields.optionalResolution("constantLocationEngineResolution")
            events.append(
                .batteryChanged(percent: try fields.optionalNumber("batteryPercent").map { Int($0) }, charging: nil))
            let isNear = try fields.flag("proximityReached")
            for trackable in try fields.array("trackables") {
                try Fields.read(trackable) { fields in
                    let id = try fields.text("id")
                    let constraints = try fields.optionalResolution("constraint").map { resolution in
                        DefaultResolutionConstraints(
                            resolutions: .init(
                                farWithoutSubscriber: isNear ? nil : resolution,
                                farWithSubscriber: isNear ? nil : resolution, nearWithoutSubscriber: resolution,
                                nearWithSubscriber: resolution))
                    }
                    settings.trackables.append(Trackable(id: id, constraints: constraints.map { .default($0) }))
                    for (number, request) in try fields.array("subscribers").enumerated() {
                        let change = SubscriberChange(
                            trackable: id, member: "\(number)", action: .add(try Resolution(request)))
                        events.append(.subscriberChanged(change))
                    }
                }
            }
        }
        var tracker = Tracker(settings: settings, restored: nil)
        for event in events { _ = tracker.handle(event, at: .zero) }
        let snapshot = tracker.snapshot
        try Fields.read(expected) { (fields) throws in
            #expect(try snapshot.engine == fields.resolution("engine"))
            try Fields.read(fields.value("network")) { (network) throws in
                for trackable in snapshot.trackables {
                    #expect(try trackable.resolution == network.resolution(trackable.id), "\(trackable.id)")
                }
            }
        }
    }

    // Configurations that are refused.

    private func problems(_ constraints: String) -> [String] {
        let text = """
            [source]
            kind = "serial"
            path = "/dev/ttyACM0"
            [[endpoint]]
            base_url = "https://fleet.example"
            [[trackable]]
            id = "t"
            [trackable.constraints]
            \(constraints)
            """
        let environment = ConfigurationEnvironment(
            variables: [:], hostname: { "van" }, machineID: { "0123456789abcdef" }, buildDate: nil,
            requiresCredentials: false)
        do throws(ConfigurationProblems) {
            _ = try AgentConfig.parse([("w.toml", Array(text.utf8))], environment: environment)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    private func isRefusal(_ expected: JSON) { #expect(expected == .text("reject configuration")) }

    private func refusesForeignConstraints(_ input: JSON, _ expected: JSON) throws {
        isRefusal(expected)
        let kind = try Fields.read(input) { try $0.text("constraints") }
        #expect(!kind.isEmpty)
        #expect(
            problems("mood = \"sunny\"").contains { $0.contains("trackable.constraints.mood: found an unknown key") })
        let settings = Tracker.Settings(trackables: [Trackable(id: "t", constraints: .custom(["mood": .text("sunny")]))]
        )
        #expect(!settings.problems.isEmpty)
    }

    private func refusesEmptyProximity(_ input: JSON, _ expected: JSON) throws {
        isRefusal(expected)
        #expect(try Fields.read(input) { try proximity($0.value("threshold")) } == Proximity())
        #expect(problems("proximity = {}").contains { $0.contains("found neither spatial nor temporal") })
    }

    private func refusesEmptyResolutions(_ input: JSON, _ expected: JSON) throws {
        isRefusal(expected)
        #expect(try constraints(input) == DefaultResolutionConstraints())
        #expect(problems("resolutions = {}").contains { $0.contains("found an empty table") })
    }

    // Nearness.

    private func reached(_ input: JSON) throws -> Bool {
        try Fields.read(input) { fields in
            let threshold = try proximity(fields.value("threshold"))
            let place = try Fields.read(fields.value("location")) { try $0.coordinate() }
            let destination = try fields.optional("destination").map { try Fields.read($0) { try $0.coordinate() } }
            let now = try fields.number("nowMs")
            let eta = try fields.optionalNumber("etaMs")
            return threshold.isReached(
                distance: destination.map { place.distance(to: $0) }, remaining: eta.map { ($0 - now) / 1000 })
        }
    }

    private func near(_ input: JSON) throws -> JSON {
        try Fields.read(input) { fields in
            let word = try fields.text("mode")
            guard let mode = ProximityMode(rawValue: word) else { throw Malformed("unknown mode \(word)") }
            let threshold = try proximity(fields.value("threshold"))
            var flag = NearFlag()
            var isNear = false
            return .array(
                try fields.array("observations").map { observation in
                    let (distance, remaining) = try Fields.read(observation) {
                        (try $0.optionalNumber("distanceM"), try $0.optionalNumber("remainingMs").map { $0 / 1000 })
                    }
                    switch mode {
                    case .perTrackable:
                        flag.observe(threshold, distance: distance, remaining: remaining)
                        isNear = flag.isNear
                    case .sticky: isNear = isNear || threshold.isReached(distance: distance, remaining: remaining)
                    }
                    return .flag(isNear)
                })
        }
    }

    // The battery.

    private func percent(_ input: JSON) throws -> JSON {
        try Fields.read(input) { fields in
            PowerState.percent(level: try fields.number("level"), scale: try fields.number("scale"))
                .map { .number($0) } ?? .null
        }
    }

    private func low(_ input: JSON) throws -> JSON {
        try Fields.read(input) { fields in
            let threshold = try fields.number("batteryLevelThreshold")
            var flag = LowBatteryFlag()
            return .array(
                try fields.array("percents").map { value in
                    var percent: Double?
                    if case .number(let number) = value { percent = number }
                    flag.observe(
                        percent: percent, threshold: threshold, hysteresis: ResolutionSettings().lowBatteryHysteresis)
                    return .flag(flag.isLow)
                })
        }
    }

    // Which fixes are kept.

    private struct TimedPlace {
        var time: UTCTime
        var coordinate: Coordinate
    }

    /// So far along a parallel near the pole, where 1e-7 degree is a fifth of a millimetre.
    private func place(_ value: JSON) throws -> TimedPlace {
        try Fields.read(value) { fields in
            let plane = LocalPlane(origin: Coordinate(latitudeE7: 890_000_000, longitudeE7: 0))
            return TimedPlace(
                time: UTCTime(milliseconds: Int64(try fields.number("timeMs"))),
                coordinate: plane.coordinate(PlanePoint(east: try fields.number("metres"), north: 0)))
        }
    }

    /// A limit that is exactly a distance of a vector is not missed by the grid of positions.
    private func slackened(_ resolution: Resolution?) -> Resolution? {
        guard var resolution else { return nil }
        resolution.displacement = max(0, resolution.displacement - 0.01)
        return resolution
    }

    private func take(_ sampler: inout LocationSampler, _ fix: TimedPlace, _ resolution: Resolution?) -> Bool {
        sampler.sample(.init(time: fix.time, coordinate: fix.coordinate), resolution: resolution) != nil
    }

    private func sequence(_ input: JSON, _ expected: JSON) throws {
        let (resolution, fixes) = try Fields.read(input) {
            (slackened(try $0.resolution("resolution")), try $0.array("fixes").map(place))
        }
        var sampler = LocationSampler(settings: .init())
        var waiting = SkippedLocations<Int>()
        var sent: [JSON] = []
        for (index, fix) in fixes.enumerated() {
            guard take(&sampler, fix, resolution) else {
                waiting.add(index, time: fix.time, sequence: Int64(index))
                continue
            }
            sent.append(.object(["index": .number(Double(index)), "skipped": numbers(waiting.elements)]))
            waiting.acknowledged(Set(waiting.entries.map(\.sequence)))
        }
        try Fields.read(expected) { (fields) throws in
            #expect(try fields.array("sent") == sent)
            #expect(try fields.value("stillSkipped") == numbers(waiting.elements))
        }
    }

    private func numbers(_ values: [Int]) -> JSON { .array(values.map { .number(Double($0)) }) }

    /// - Parameter last: what was sent last; nil = nothing.
    private func isSelected(_ fix: TimedPlace, after last: TimedPlace?, _ resolution: Resolution?) -> Bool {
        var sampler = LocationSampler(settings: .init())
        if let last { _ = take(&sampler, last, resolution) }
        return take(&sampler, fix, resolution)
    }

    private func single(_ input: JSON) throws -> Bool {
        try Fields.read(input) { fields in
            isSelected(
                try place(fields.value("fix")), after: try fields.optional("lastSent").map(place),
                slackened(try fields.optionalResolution("resolution")))
        }
    }

    private func geo(_ input: JSON, _ expected: JSON) throws {
        func place(_ value: JSON) throws -> TimedPlace {
            try Fields.read(value) { fields in
                TimedPlace(
                    time: UTCTime(milliseconds: Int64(try fields.number("timeMs"))), coordinate: try fields.coordinate()
                )
            }
        }
        let (resolution, last, fix) = try Fields.read(input) {
            (try $0.resolution("resolution"), try place($0.value("lastSent")), try place($0.value("fix")))
        }
        try Fields.read(expected) { (fields) throws in
            #expect(try isSelected(fix, after: last, resolution) == fields.flag("sent"))
            let distance = last.coordinate.distance(to: fix.coordinate)
            #expect(try abs(distance - fields.number("distanceM")) <= fields.number("toleranceM"))
        }
    }

    private func selected(_ input: JSON) throws -> JSON {
        try Fields.read(input) { fields in
            let word = try fields.text("rule")
            guard let rule = LocationSampler.Rule(rawValue: word) else { throw Malformed("unknown rule \(word)") }
            var settings = LocationSampler.Settings()
            settings.rule = rule
            settings.minGap = .milliseconds(Int64(try fields.number("minimumGapMs")))
            var sampler = LocationSampler(settings: settings)
            let resolution = slackened(try fields.resolution("resolution"))
            let fixes = try fields.array("fixes").map(place)
            return numbers(fixes.indices.filter { take(&sampler, fixes[$0], resolution) })
        }
    }

    private func skipped(_ input: JSON) throws -> JSON {
        try Fields.read(input) { fields in
            var waiting = SkippedLocations<JSON>()
            for (sequence, value) in try fields.array("addTimes").enumerated() {
                guard case .number(let ms) = value else { throw Malformed("no time: \(value)") }
                waiting.add(value, time: UTCTime(milliseconds: Int64(ms)), sequence: Int64(sequence))
            }
            return .array(waiting.elements)
        }
    }
}
