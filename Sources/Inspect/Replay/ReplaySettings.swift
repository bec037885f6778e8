import Configuration
import WaypostCore
import WaypostNMEA
import WaypostTracking

/// The settings under which logs are read again.
package struct ReplaySettings: Sendable {
    package var decoding: NMEADecoder.Settings
    package var tracking: Tracker.Settings
    package var timetable: Timetable
    /// In what a story writes speeds and long ways.
    package var units = DisplayUnits.metric
    /// Regions and windows, for a log of beacons; whether beacons are looked for does not matter.
    package var beacons = BeaconConfig()

    package init(decoding: NMEADecoder.Settings, tracking: Tracker.Settings, timetable: Timetable = Timetable()) {
        self.decoding = decoding
        self.tracking = tracking
        self.timetable = timetable
    }

    private static var standardTracking: Tracker.Settings {
        var settings = Tracker.Settings(trackables: [Trackable(id: "device")])
        settings.keepFewest()
        return settings
    }

    /// - Parameter loaded: whose settings decide; nil = the defaults.
    package init(_ loaded: LoadedConfiguration?) {
        decoding = loaded?.config.source.decoding ?? NMEADecoder.Settings()
        decoding.live = false
        // Logs are legitimately old: what suits the receiver by default does not suit them.
        if let loaded, !loaded.effective.isWritten("rollover", in: "[source]") { decoding.rollover = .off }
        tracking = loaded?.config.tracking ?? Self.standardTracking
        timetable = loaded?.config.timetable ?? Timetable()
        units = loaded?.config.units ?? .metric
        beacons = loaded?.config.beacons ?? BeaconConfig()
    }
}
