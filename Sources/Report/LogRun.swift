import Positioning
import Tracking

/// A log under one set of settings: what the tracker made of it.
struct LogRun {
    private var run: TrackerRun
    private(set) var builder: JourneyBuilder
    private(set) var kept: [KeptPoint] = []
    private(set) var upload: UploadSize?
    /// Why the epoch that was received last was not believed; nil = it was, or it had no fix.
    private(set) var refusal: FixFilter.Rejection?

    /// - Parameter upload: nil = the bytes are not wanted.
    init(_ settings: Tracker.Settings, _ timetable: Timetable, upload: UploadSize? = nil) {
        run = TrackerRun(tracker: Tracker(settings: settings, restored: nil), timetable: timetable)
        builder = JourneyBuilder(settings.motion)
        self.upload = upload
    }

    var tracker: Tracker { run.tracker }

    mutating func received(_ epoch: Epoch, at: EventTime) {
        refusal = nil
        var effects: [Effect] = []
        run.epochReceived(epoch, at: at) { effect, _ in effects.append(effect) }
        for effect in effects { receive(effect) }
    }

    mutating func ended() {
        var effects: [Effect] = []
        run.ended { effect, _ in effects.append(effect) }
        for effect in effects { receive(effect) }
        upload?.finish()
        kept.sort { $0.time < $1.time }
    }

    private mutating func receive(_ effect: Effect) {
        builder.receive(effect)
        switch effect {
        case .count(.rejected(let reason)): refusal = reason
        case .record(let location) where location.published:
            let reason = location.event == .none ? location.reason ?? "other" : location.event.rawValue
            kept.append(
                KeptPoint(time: location.time.milliseconds, coordinate: location.coordinate, reason: reason))
            upload?.add(location)
        case .record, .announceMotion, .announceHalt, .announceGap, .announceLowBattery, .announceResolution,
            .setReceiver, .sleepReceiver,
            .wakeReceiver, .count:
            break
        }
    }
}
