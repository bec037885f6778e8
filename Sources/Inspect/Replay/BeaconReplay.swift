import Configuration
import Places
import WaypostCore
import WaypostNMEA
import WaypostTracking

/// Plays the beacons that were sighted beside a log, as the daemon would have heard them: it scans all the time while the asset
/// moves, in windows while it is parked, and not outside of the hours.
///
/// Sightings count although no window is open: somebody heard them.
struct BeaconReplay {
    /// Sightings longer before the first fix are of another log.
    private static let reach = LogClock.leapMax

    private let log: BeaconLog
    private var played = 0
    private var passedOver = 0
    /// Line of the first of them.
    private var firstPassedOver: Int?
    private var monitor: BeaconMonitor
    private var plan: ScanPlan
    private var isParked = true
    private var isInHours = true
    private var isScanning = false
    /// Event time of the first dated fix.
    private var start: EventTime?

    init(_ log: BeaconLog, _ config: BeaconConfig) {
        self.log = log
        monitor = BeaconMonitor(config.regions)
        plan = ScanPlan(window: config.scan.window, period: config.scan.period)
        plan.parkingChanged(isParked)
    }

    /// Everything that happens before the next epoch.
    mutating func passed(
        before epoch: EventTime, _ clock: LogClock, _ run: inout TrackerRun, _ perform: (Effect, UTCTime?) -> Void
    ) {
        if start == nil {
            start = epoch
            while let at = next(clock), at < epoch - Self.reach { skip() }
        }
        while let at = [next(clock), deadline].compactMap(\.self).min(), at < epoch {
            play(at: at, clock, &run, perform)
        }
        run.passDeadlines(before: epoch, perform)
        follow(at: epoch, clock, &run, perform)
    }

    /// The log is over: what was sighted later is of no use, since tracking would take it for a silence of the receiver.
    mutating func ended() { while played < log.sightings.count { skip() } }

    /// What was not played, for people; nil = nothing.
    var notice: LogProblem? {
        firstPassedOver.map { line in
            let count = InWords.count(passedOver, "sighting")
            return LogProblem(
                file: log.path, line: line, words: "\(count) before or after the log, passed over")
        }
    }

    // MARK: Parts

    /// Of the monitor, or of a window.
    private var deadline: EventTime? {
        isInHours ? [monitor.nextDeadline, plan.nextDeadline].compactMap(\.self).min() : nil
    }

    /// Event time of the next sighting.
    private func next(_ clock: LogClock) -> EventTime? {
        guard played < log.sightings.count, let start else { return nil }
        switch log.sightings[played].moment {
        case .utc(let time): return clock.time(of: time)
        case .sinceStart(let span): return start + span
        }
    }

    private mutating func skip() {
        if firstPassedOver == nil { firstPassedOver = log.sightings[played].line }
        played += 1
        passedOver += 1
    }

    private mutating func play(
        at: EventTime, _ clock: LogClock, _ run: inout TrackerRun, _ perform: (Effect, UTCTime?) -> Void
    ) {
        run.passDeadlines(before: at, perform)
        let now = max(at, run.reached)
        follow(at: now, clock, &run, perform)
        pass(monitor.deadlineReached(at: now), at: now, clock, &run, perform)
        while let due = next(clock), due <= now {
            let sighting = log.sightings[played]
            played += 1
            pass(monitor.sighted(sighting.advertisement, rssi: sighting.rssi, at: now), at: now, clock, &run, perform)
        }
    }

    /// Scans, or does not, as the daemon would now.
    private mutating func follow(
        at now: EventTime, _ clock: LogClock, _ run: inout TrackerRun, _ perform: (Effect, UTCTime?) -> Void
    ) {
        let (isParked, isInHours) = (!run.tracker.isMoving, run.tracker.inHours)
        if isParked != self.isParked || isInHours != self.isInHours {
            (self.isParked, self.isInHours) = (isParked, isInHours)
            plan.parkingChanged(isParked)
        }
        plan.reached(now)
        let isWanted = plan.isScanning && isInHours
        guard isWanted != isScanning else { return }
        isScanning = isWanted
        if isWanted {
            monitor.scanStarted(at: now)
        } else {
            pass(monitor.scanStopped(at: now), at: now, clock, &run, perform)
        }
    }

    private func pass(
        _ events: [BeaconMonitor.Event], at now: EventTime, _ clock: LogClock, _ run: inout TrackerRun,
        _ perform: (Effect, UTCTime?) -> Void
    ) {
        // Before the first fix tracking knows no date, but the log does.
        for event in events { run.handle(event.trackerEvent, at: now) { perform($0, $1 ?? clock.utc(at: now)) } }
    }
}
