import WaypostCore
import WaypostTracking

extension Tracker.Settings {
    mutating func read(_ table: TableReader) {
        table.read("accuracy_limit", into: &admission.accuracyMax, as: .accuracyLimit)
        table.read("speed_limit", into: &admission.speedMax, as: .speed(.atLeast(1)))
        table.read("allow_simulated", into: &admission.allowSimulated, as: .flag)
        motion.read(table)
        table.read("trip_summary", into: &tripSummary, as: .flag)
    }
}

extension MotionDetector.Settings {
    fileprivate mutating func read(_ table: TableReader) {
        table.read(
            "stop_timeout", into: &stopTimeout, as: .duration(.between(0, 86_400)),
            alias: .init("stopTimeout", .bare("minutes", seconds: 60, .between(0, 1440))))
        table.read("still_speed", into: &stillSpeed, as: .speed(.between(0.1, 5)))
        table.read(
            "stationary_radius", into: &stationaryRadius, as: .distance(.between(10, 10_000)),
            alias: .init("stationaryRadius", .number("a number of metres", .between(10, 10_000))))
        table.read("backup_radius", into: &backupRadius, as: .distance(.between(100, 100_000)))
        if backupRadius < stationaryRadius {
            table.report(
                ["backup_radius", "stationary_radius", "stationaryRadius"],
                "found a backup radius of \(UnitScale.distance.render(backupRadius)) within the stationary radius of "
                    + "\(UnitScale.distance.render(stationaryRadius)), expected it to be at least as large")
        }
        table.read("start_evidence", into: &startEvidence, as: .distance(.between(1, 1000)))
        table.read("outside_evidence", into: &outsideEvidence, as: .distance(.between(1, 1000)))
        table.read("resume_evidence", into: &resumeEvidence, as: .distance(.between(1, 1000)))
        table.read("consecutive_fixes", into: &consecutiveFixes, as: .integer(.between(1, 60)))
        table.read("motion_trigger_delay", into: &motionTriggerDelay, as: .duration(.between(0, 600)))
        table.read("anchor_accuracy", into: &anchorAccuracy, as: .distance(.between(1, 50)))
        table.read(
            "heartbeat", into: &heartbeat, as: .heartbeat,
            alias: .init("heartbeatInterval", .bare("seconds", seconds: 1, .between(0, 7 * 86_400))))
        table.read("gap_after", into: &gapAfter, as: .duration(.between(10, 86_400)))
        table.read("no_fix_timeout", into: &noFixTimeout, as: .duration(.between(60, 7 * 86_400)))
        table.read("power_off_stop", into: &powerOffStop, as: .duration(.between(0, 86_400)))
        table.read("ring", into: &ring, as: .duration(.between(30, 3600)))
        table.read("static_navigation", into: &staticNavigation, as: .flag)
        table.read("disable_stop_detection", into: &disableStopDetection, as: .flag)
        table.read("stop_on_stationary", into: &stopOnStationary, as: .flag)
        table.read("start_moving", into: &startMoving, as: .flag)
        table.read("power_starts_trip", into: &powerStartsTrip, as: .flag)
    }
}

extension ReceiverCycle.Settings {
    mutating func read(_ table: TableReader) {
        table.read("sleep", into: &sleep, as: .flag, on: .reload)
        table.read("settle", into: &settle, as: .duration(.between(0, 86_400)), on: .reload)
        table.read("probe", into: &probe, as: .duration(.between(1, 86_400)), on: .reload)
        table.read("probe_on", into: &probeOn, as: .duration(.between(1, 3600)), on: .reload)
    }

    /// - Parameter table: that of the receiver.
    func warnOfNoEffect(_ table: TableReader) {
        if sleep { return }
        for key in table.changedKeys where key == "probe" || (!sleepMoving && ["settle", "probe_on"].contains(key)) {
            table.warn(key, "found without sleep = true, expected only with it: the receiver never sleeps")
        }
    }
}

extension ResolutionSettings {
    /// - Parameter rule: of `[sampling]`; nil = none is set.
    /// - Returns: the tables of the rules, for `requireFences`.
    mutating func read(
        _ table: TableReader, preset: SamplingPreset?, rule: LocationSampler.Rule?
    ) -> [TableReader] {
        let note = preset?.note
        var displacementNote = note
        if let preset {
            self.default = preset.resolution
        } else if rule == .significant {
            self.default.displacement = LocationSampler.significantDisplacement
            displacementNote = "rule \(LocationSampler.Rule.significant.rawValue.asTOML)"
        }
        let whole = table.table("default")
        let vendorMs = ValueForm<Int64>.intervalMs(.number("a number of milliseconds", .between(0, 86_400_000)))
        // 0 is no distance: see `vendorRule`.
        let usual = self.default.displacement
        let vendorMetres = ValueForm<Double>.number("a number of metres", .between(0, 1e6))
            .map(to: { $0 == 0 ? usual : $0 }, from: { $0 })
        if whole.isWritten {
            if let resolution = Resolution(reading: whole) { self.default = resolution }
            for name in ["distanceFilter", "locationUpdateInterval"] where table.take(name) != nil {
                table.report(name, "found together with default, expected one of the two: \(name) is a part of it")
            }
        } else {
            // Not `require`: these are names of the reader's vocabulary here, and values only by the vendor's names.
            whole.countsWhenWritten = true
            whole.read("priority", into: &self.default.priority, as: .priority, note: note)
            whole.read(
                "interval", into: &self.default.intervalMs, as: .intervalMs,
                alias: .init("locationUpdateInterval", vendorMs, in: table), note: note)
            whole.read(
                "displacement", into: &self.default.displacement, as: .displacement,
                alias: .init("distanceFilter", vendorMetres, in: table), note: displacementNote)
        }
        constantEngine = Resolution(reading: table.table("constant_engine"))
        return readPolicy(table)
    }
}

extension ResolutionSettings {
    /// The rule that Transistor's `distanceFilter` means: above 0 the distance alone counts, and 0 turns it off and leaves the
    /// choice to time alone. That is no displacement of 0 m, which is every fix. nil = it is not set.
    static func vendorRule(_ table: TableReader) -> LocationSampler.Rule? {
        table.take("distanceFilter")?.node.finiteNumber.map { $0 == 0 ? .interval : .displacement }
    }

    /// Whether the file says how far apart locations are to be.
    static func hasDisplacement(_ table: TableReader, preset: SamplingPreset?) -> Bool {
        preset != nil || table.has("default") || table.has("distanceFilter")
    }
}

extension Resolution {
    /// nil when the table is not written, or not whole.
    init?(reading table: TableReader) {
        let priority = table.require("priority", as: .priority)
        let interval = table.require("interval", as: .intervalMs)
        let displacement = table.require("displacement", as: .displacement)
        guard let priority, let interval, let displacement else { return nil }
        self.init(priority: priority, intervalMs: interval, displacement: displacement)
    }
}

extension ValueForm where Value == AccuracyPriority {
    static var priority: ValueForm { .word(AccuracyPriority.allCases.map { ($0.word, $0) }) }
}

extension ValueForm where Value == Int64 {
    static var intervalMs: ValueForm {
        ValueForm<Duration>.duration(.between(0, 86_400))
            .map(to: { $0.milliseconds }, from: { .milliseconds($0) })
    }

    /// A vendor's bare number of milliseconds.
    static func intervalMs(_ form: ValueForm<Double>) -> ValueForm {
        let ours = intervalMs
        var vendor = form.map(to: { Int64($0.rounded()) }, from: { Double($0) })
        vendor.render = ours.render
        return vendor
    }
}

extension ValueForm where Value == Double {
    static var displacement: ValueForm { .distance(.between(0, 1e6)) }
}
