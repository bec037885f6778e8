import WaypostCore
import WaypostTracking

/// A log under one set of settings: what the tracker made of it.
struct LogRun {
    let settings: Tracker.Settings
    private var run: TrackerRun
    private var builder: JourneyBuilder
    /// In the order of time, once the log has ended; empty where only counts are wanted.
    private(set) var kept: [KeptPoint] = []
    /// Locations that were kept and published, whatever became of their time.
    private(set) var published = 0
    /// The same by the word for why they were kept.
    private(set) var kinds: [String: Int] = [:]
    private(set) var upload: UploadSize?
    /// What became of the epoch that was received last, as far as it is known at once.
    private(set) var verdict: EpochTable.Verdict?
    /// The time of the epoch that was received last, if with it the tracker followed a clock that was set back; Unix milliseconds.
    private(set) var setBackTo: Int64?

    /// - Parameter upload: nil = only counts are wanted.
    init(_ settings: Tracker.Settings, _ timetable: Timetable, upload: UploadSize? = nil) {
        self.settings = settings
        run = TrackerRun(tracker: Tracker(settings: settings, restored: nil), timetable: timetable)
        builder = JourneyBuilder(settings.motion)
        self.upload = upload
    }

    var tracker: Tracker { run.tracker }

    func journey(in table: EpochTable) -> Journey { builder.finished(table, kept: kept) }

    mutating func received(_ epoch: Epoch, at: EventTime) {
        (verdict, setBackTo) = (nil, nil)
        var effects: [Effect] = []
        run.epochReceived(epoch, at: at) { effect, _ in effects.append(effect) }
        guard case .fix(let fix) = epoch else {
            for effect in effects { receive(effect, nil) }
            return
        }
        for effect in effects { receive(effect, fix.time?.milliseconds) }
        if verdict == nil, run.schedule?.isOpen == false { verdict = .outsideHours }
    }

    mutating func ended() {
        var effects: [Effect] = []
        run.ended { effect, _ in effects.append(effect) }
        for effect in effects { receive(effect, nil) }
        upload?.finish()
        kept.sort { $0.time < $1.time }
    }

    private mutating func receive(_ effect: Effect, _ time: Int64?) {
        builder.receive(effect)
        switch effect {
        case .count(.rejected(let reason)):
            verdict = EpochTable.Verdict(kind: .refused, reason: reason.rawValue)
        case .count(.clockStep):
            guard let time else { return }
            setBackTo = time
            builder.clockSetBack(to: time)
            kept.removeAll { $0.time >= time }
        case .record(let location) where location.published: keep(location)
        case .record, .announceMotion, .announceHalt, .announceGap, .announceMove, .announceLowBattery,
            .announceResolution, .announceRule, .setReceiver, .sleepReceiver, .wakeReceiver, .count:
            break
        }
    }

    private mutating func keep(_ location: Location) {
        published += 1
        guard upload != nil else { return }
        let reason = location.event == .none ? location.reason ?? "other" : location.event.rawValue
        kinds[reason, default: 0] += 1
        kept.append(KeptPoint(time: location.time.milliseconds, coordinate: location.coordinate, reason: reason))
        upload?.add(location)
    }
}
