import DriveSimulation
import WaypostCore
import WaypostNMEA
import WaypostTracking

/// Sends a simulated drive as NMEA bytes through decoding and tracking, as `waypost replay` would, and gives the same fixes
/// to the baseline. Epochs are streamed; what is kept is what was announced and stored.
package struct SimulatedRun: Sendable {
    /// What waypost said.
    package private(set) var tracker = DriveRecord()
    /// What a plain distance filter said.
    package private(set) var baseline = DriveRecord()
    package private(set) var sentences = 0

    /// Seconds between two fixes, in units of the interval between epochs, above which the way between was not seen.
    private static let intervalsSeen = 3

    /// - Parameters:
    ///   - thinning: only every so many epochs arrive.
    ///   - period: milliseconds between the epochs that arrive.
    package init(
        _ simulated: SimulatedDrive, thinning: Int = 1,
        settings: Tracker.Settings = .shipped,
        decoding: NMEADecoder.Settings = .init()
    ) {
        var drive = simulated
        let start = drive.settings.start
        let plane = LocalPlane(origin: drive.settings.origin)
        let seen = Self.intervalsSeen * drive.settings.period * max(1, thinning)
        var decoder = NMEADecoder(settings: decoding)
        var clock = LogClock()
        var run = TrackerRun(tracker: Tracker(settings: settings, restored: nil))
        var plain = PlainTracker(start: start, plane: plane)
        var record = DriveRecord()
        var lastFix: UTCTime?
        var blindMetres = 0.0

        func perform(_ effect: Effect, _ utc: UTCTime?) {
            switch effect {
            case .announceMotion(let change):
                let at = elapsed(change.decided ?? utc, since: start)
                record.decisions.append(
                    DriveRecord.Decision(
                        moving: change.moving, at: at, since: change.since.map { elapsed($0, since: start) } ?? at,
                        reason: change.reason.rawValue))
            case .record(let location):
                let time = elapsed(location.time, since: start)
                record.points.append(
                    DriveRecord.Point(
                        time: time, at: utc.map { elapsed($0, since: start) } ?? time,
                        place: plane.point(location.coordinate), moving: location.moving))
            default:
                break
            }
        }
        func take(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            guard at > .zero else { return }
            guard case .fix(let fix) = epoch, let time = fix.time else {
                return run.epochReceived(epoch, at: at, perform)
            }
            let admitted = run.tracker.counters.admitted
            defer {
                if run.tracker.counters.admitted > admitted, fix.speed ?? 0 >= LineScore.speedMin {
                    record.seen.append(
                        DriveRecord.Seen(
                            time: elapsed(time, since: start), place: plane.point(fix.coordinate),
                            accuracy: fix.horizontalAccuracy))
                }
            }
            let gap = lastFix.map { time.milliseconds(since: $0) } ?? .max
            lastFix = time
            plain.observe(fix, time: time, unseen: gap > seen)
            guard gap > seen else { return run.epochReceived(epoch, at: at, perform) }
            let now = elapsed(time, since: start)
            record.blindness.append((gap == .max ? .min : now - Int(gap))..<now)
            let before = run.tracker.snapshot.odometer
            run.epochReceived(epoch, at: at, perform)
            blindMetres += run.tracker.snapshot.odometer - before
        }

        var index = 0
        while let bytes = drive.nextEpoch() {
            if index % max(1, thinning) == 0, !bytes.isEmpty {
                decoder.decode(bytes.span, at: .zero) { epoch, _ in take(epoch) }
            }
            index += 1
        }
        decoder.endOfInput { epoch, _ in take(epoch) }
        run.ended(perform)
        record.odometer = run.tracker.snapshot.odometer - blindMetres
        tracker = record
        baseline = plain.record
        baseline.blindness = record.blindness
        sentences = decoder.counters.sentences
    }
}

/// Milliseconds; 0 for a time that is unknown.
private func elapsed(_ time: UTCTime?, since start: UTCTime) -> Int {
    time.map { Int($0.milliseconds(since: start)) } ?? 0
}

extension Tracker.Settings {
    /// As the daemon is shipped.
    package static var shipped: Tracker.Settings {
        var settings = Tracker.Settings(trackables: [Trackable(id: "asset")])
        settings.keepFewest()
        return settings
    }
}
