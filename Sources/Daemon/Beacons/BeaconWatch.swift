import Configuration
import Places
import Sensors
import WaypostCore
import WaypostHost
import WaypostTracking

/// Watches for beacons: scans while the asset moves, and in windows while it is parked; what is seen becomes ENTER and EXIT.
///
/// Without an adapter, or while bluetoothd is away, nothing else is affected: its state says so.
final class BeaconWatch {
    /// All that happened at once is stored at once, with the presence that follows from it.
    typealias Report = ([TrackerEvent], EventTime) -> Void

    /// Reports of the adapter are read together: each would be a wake-up of its own.
    private static let pause = Duration.milliseconds(250)

    private(set) var config: BeaconConfig
    private var monitor: BeaconMonitor
    private var scanner: BluetoothScanner?
    private let log: AgentLog
    private let loop: EventLoop
    private let report: Report
    /// A window of scanning begins or ends, or the scanner wants to be called.
    private var alarm: EventLoop.Alarm?
    private var watched: Int32?
    /// Not watched before, so that what comes meanwhile is read with it.
    private var resumeAt: EventTime?
    /// Wake-ups by D-Bus without such a pause: some at once, as a start needs them.
    private var wakeUps = TokenBucket(burst: 32, refill: pause)
    private var lines = LineBudget()
    /// When a new beacon was last not recorded, since there were too many.
    private var crowdedAt: EventTime?
    private var crowdLines = TokenBucket(burst: 1, refill: crowdLasts)
    /// A count that has not risen for so long is no problem any more.
    private static let crowdLasts = Duration.seconds(600)
    /// What the journal said last.
    private var loggedState: BluetoothScanner.State?
    private var plan: ScanPlan
    private var isParked = false
    private var isInHours = true
    private var sightings = 0
    /// What an earlier process was in, until `start`.
    private var earlier: [String]
    private var wasStored: Bool

    /// - Parameter stored: the regions that an earlier process was in.
    init(_ config: BeaconConfig, stored: BeaconMemory, log: AgentLog, loop: EventLoop, report: @escaping Report) {
        self.config = config
        self.log = log
        self.loop = loop
        self.report = report
        monitor = BeaconMonitor(config.isEnabled ? config.regions : [])
        plan = ScanPlan(window: config.scan.window, period: config.scan.period)
        (earlier, wasStored) = (stored.inside, !stored.inside.isEmpty)
        alarm = loop.alarm { [unowned self] now in wake(at: now) }
    }

    // MARK: What it is asked

    func start(at now: EventTime) {
        let events = monitor.resumed(earlier, at: now)
        earlier = []
        pass(events, at: now)
        follow(at: now)
    }

    func reload(_ config: BeaconConfig, at now: EventTime) {
        guard config != self.config else { return }
        self.config = config
        plan = ScanPlan(window: config.scan.window, period: config.scan.period)
        plan.parkingChanged(isParked)
        pass(monitor.regionsChanged(config.isEnabled ? config.regions : [], at: now), at: now)
        follow(at: now)
    }

    /// A server gave another list: these are all regions now.
    func regionsChanged(_ regions: [BeaconRegion], at now: EventTime) {
        var config = config
        config.regions = regions
        reload(config, at: now)
    }

    /// Called after each event of tracking.
    func trackingChanged(isParked: Bool, isInHours: Bool, at now: EventTime) {
        guard isParked != self.isParked || isInHours != self.isInHours else { return }
        self.isParked = isParked
        self.isInHours = isInHours
        plan.parkingChanged(isParked)
        // Not at once: tracking is in the middle of an event, and may get another from here.
        if config.isEnabled { alarm?.deadline = now }
    }

    func stop() {
        forget()
        scanner?.stop()
        scanner = nil
        alarm?.deadline = nil
    }

    /// nil where nothing was ever stored and nothing is to be.
    var memory: BeaconMemory? {
        let memory = BeaconMemory(inside: earlier + monitor.stored)
        if memory.inside.isEmpty, !config.isEnabled, !wasStored { return nil }
        wasStored = true
        return memory
    }

    /// nil where no beacon is looked for.
    func status(at now: EventTime) -> Status? {
        guard config.isEnabled else { return nil }
        let reason = monitor.regions.isEmpty ? "there are no regions" : "not started"
        return Status(
            state: scanner?.state ?? .waiting(reason), inside: monitor.inside.map { $0.name ?? $0.id },
            nearest: monitor.nearest(at: now), regions: monitor.regions.count, sightings: sightings,
            unrecorded: monitor.unrecorded,
            problem: crowdedAt.flatMap { now.duration(since: $0) < Self.crowdLasts ? crowdWords : nil })
    }

    private var crowdWords: String {
        let region = monitor.crowdedRegion.map { $0.name ?? $0.id } ?? ""
        return "\(InWords.count(monitor.unrecorded, "new beacon")) in region \(region) not recorded, since only "
            + "\(BeaconMonitor.newBeaconsMax) an hour are: look for a transmitter that changes its number"
    }

    struct Status {
        var state: BluetoothScanner.State
        /// Names of regions, or their ids.
        var inside: [String]
        var nearest: Beacon?
        var regions: Int
        /// Of any beacon, since the start.
        var sightings: Int
        /// Beacons that were too many to be recorded, since the start.
        var unrecorded: Int
        /// What is wrong, for people; nil = nothing.
        var problem: String?
    }

    // MARK: Scanning

    private var isWanted: Bool { config.isEnabled && !monitor.regions.isEmpty && isInHours }

    /// Scans, or does not, as it is wanted now, and waits for what comes next.
    private func follow(at now: EventTime) {
        guard isWanted else {
            guard scanner != nil else { return }
            stop()
            return pass(monitor.scanStopped(at: now), at: now)
        }
        let scanner = self.scanner ?? BluetoothScanner()
        self.scanner = scanner
        plan.reached(now)
        let events = scanner.setScanning(plan.isScanning, at: now)
        forgetClosed()
        handle(events, at: now)
        watch(at: now)
    }

    private func wake(at now: EventTime) {
        if let resumeAt, resumeAt <= now { self.resumeAt = nil }
        process(at: now)
    }

    private func process(at now: EventTime) {
        guard let scanner else { return follow(at: now) }
        // Outside of the hours what waits is not looked at.
        guard isWanted else { return follow(at: now) }
        let events = scanner.process(at: now)
        forgetClosed()
        // Also where none of them was a beacon: in a crowd every telephone reports itself.
        if scanner.state == .scanning || wakeUps.take(at: now) != nil { resumeAt = now + Self.pause }
        handle(events, at: now)
        pass(monitor.deadlineReached(at: now), at: now)
        follow(at: now)
    }

    private func handle(_ events: [BluetoothScanner.Event], at now: EventTime) {
        for event in events {
            switch event {
            case .stateChanged(.scanning):
                monitor.scanStarted(at: now)
                logState(.scanning, nil, at: now)
            case .stateChanged(let state):
                pass(monitor.scanStopped(at: now), at: now)
                switch state {
                case .impossible(let reason), .waiting(let reason): logState(state, reason, at: now)
                case .ready, .scanning: break
                }
            case .sighted(let advertisement, let rssi):
                sightings += 1
                let unrecorded = monitor.unrecorded
                pass(monitor.sighted(advertisement, rssi: rssi, at: now), at: now)
                if monitor.unrecorded > unrecorded { crowded(at: now) }
            }
        }
    }

    private func crowded(at now: EventTime) {
        crowdedAt = now
        if crowdLines.take(at: now) == nil { log.warning("beacons: \(crowdWords)") }
    }

    /// Windows of scanning open and close without a line, and an adapter that comes and goes does not fill the journal.
    private func logState(_ state: BluetoothScanner.State, _ problem: String?, at now: EventTime) {
        guard state != loggedState else { return }
        loggedState = state
        log.beaconsChanged(problem, lines: &lines, at: now)
    }

    private func watch(at now: EventTime) {
        let deadlines = [
            scanner?.nextDeadline(at: now), resumeAt, plan.nextDeadline, monitor.nextDeadline,
        ]
        alarm?.deadline = deadlines.compactMap(\.self).min()
        guard resumeAt == nil, let scanner, let descriptor = scanner.descriptor else { return forget() }
        if let watched, watched != descriptor { forget() }
        do throws(SystemError) {
            try loop.watch(descriptor, writable: scanner.wantsToWrite) { [unowned self] _, now in process(at: now) }
            watched = descriptor
        } catch {
            log.warning("D-Bus cannot be watched: \(error)")
        }
    }

    /// A connection that is gone has closed its descriptor, whose number another part may get at once.
    private func forgetClosed() {
        if watched != scanner?.descriptor { forget() }
    }

    private func forget() {
        if let watched { loop.forget(watched) }
        watched = nil
    }

    // MARK: Reports

    private func pass(_ events: [BeaconMonitor.Event], at now: EventTime) {
        guard !events.isEmpty else { return }
        report(events.map(\.trackerEvent), now)
    }
}
