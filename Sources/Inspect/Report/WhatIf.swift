import Configuration
import WaypostCore
import WaypostTracking

/// Other settings under which the same log is looked at.
struct WhatIf {
    /// For links within the page.
    var key: String
    var label: String
    /// When these settings keep a fix.
    var words: String
    var settings: ReplaySettings

    /// What is in force first, then what differs from it.
    /// - Parameter compared: settings of the user's own.
    static func list(around settings: ReplaySettings, compared: [ComparedSettings]) -> [WhatIf] {
        let usual = settings.tracking.resolution.default
        var list = [WhatIf("now", "as it is", settings)]
        for (index, other) in compared.enumerated() {
            var own = WhatIf("own\(index + 1)", other.name, other.settings)
            if !other.differences.isEmpty { own.words += "; differs in \(other.differences)" }
            list.append(own)
        }
        for preset in SamplingPreset.allCases {
            var sampling = LocationSampler.Settings()
            sampling.angle = preset.angle
            list.append(
                WhatIf(
                    preset.rawValue, "preset \(preset.rawValue)",
                    settings.sampled(by: sampling, at: preset.resolution)))
        }
        for (bound, delay) in [(5.0, Duration.seconds(30)), (20.0, Duration.seconds(120))] {
            var sampling = LocationSampler.Settings()
            sampling.rule = .trackError
            sampling.bound = bound
            sampling.maxDelay = delay
            // What is in force already is compared with what is followed by interval and displacement.
            let isInForce = sampling == (settings.tracking.moving ?? settings.tracking.profile).sampling
            if isInForce { sampling.rule = .either }
            list.append(
                WhatIf(
                    isInForce ? "either" : "track-error-\(Int(bound))",
                    isInForce ? "either" : "track-error, \(Int(bound)) m",
                    settings.sampled(by: sampling, at: usual)))
        }
        var sampling = LocationSampler.Settings()
        sampling.rule = .interval
        let halfMinute = Resolution(priority: .balanced, intervalMs: 30_000, displacement: 0)
        list.append(WhatIf("interval-30", "every 30 s", settings.sampled(by: sampling, at: halfMinute)))
        sampling.rule = .significant
        var significant = usual
        significant.displacement = LocationSampler.significantDisplacement
        list.append(WhatIf("significant", "significant", settings.sampled(by: sampling, at: significant)))
        return list
    }

    /// Stop timeouts to compare: half, what is in force, and double.
    static func stopTimeouts(around settings: Tracker.Settings) -> [Tracker.Settings] {
        guard !settings.motion.disableStopDetection, settings.motion.stopTimeout > .zero else { return [] }
        return [settings.motion.stopTimeout / 2, settings.motion.stopTimeout * 2].map { timeout in
            var other = settings
            other.motion.stopTimeout = timeout
            return other
        }
    }

    private init(_ key: String, _ label: String, _ settings: ReplaySettings) {
        self.key = key
        self.label = label
        self.settings = settings
        let profile = settings.tracking.moving ?? settings.tracking.profile
        words = ReportWords.sampling(profile.sampling, profile.resolution)
    }
}

extension ReplaySettings {
    /// The same with other fixes kept, moving or parked.
    fileprivate func sampled(by sampling: LocationSampler.Settings, at resolution: Resolution) -> ReplaySettings {
        var other = self
        other.tracking.sampling = sampling
        other.tracking.ruleReason = .chosen
        other.tracking.resolution.default = resolution
        other.tracking.moving = nil
        other.tracking.stationary = nil
        return other
    }
}
