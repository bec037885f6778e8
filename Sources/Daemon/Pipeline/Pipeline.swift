import Queue
import Sensors
import WaypostControl
import WaypostCore
import WaypostHost
import WaypostTracking

/// From the receiver to the recorder: feeds epochs and deadlines to the tracker and performs its effects.
final class Pipeline {
    /// What came from the receiver last.
    struct Reception {
        fileprivate(set) var lastEpochAt: EventTime?
        /// Of the last fix that was believed.
        fileprivate(set) var lastFixAt: EventTime?
        /// In the newest epoch, with or without a fix; nil = it does not say.
        fileprivate(set) var satellitesUsed: Int?
        /// nil = the last fix was believed.
        fileprivate(set) var unbelieved: Unbelieved?
        /// Where to go on reading a file.
        fileprivate(set) var position: FilePosition?

        fileprivate mutating func rejected(_ reason: FixFilter.Rejection, at now: EventTime) {
            unbelieved = Unbelieved(
                fixes: (unbelieved?.fixes ?? 0) + 1, reason: reason, since: unbelieved?.since ?? now, until: now)
        }
    }

    /// Fixes in a row that were not believed.
    struct Unbelieved {
        /// Tunnels and cold starts pass sooner, at any rate of fixes.
        private static let lasting = Duration.seconds(60)
        private static let fixesMin = 5
        /// A minute at 10 Hz; a file gives them in an instant.
        private static let fixesOfAMinute = 600

        let fixes: Int
        /// Why the last of them was not.
        let reason: FixFilter.Rejection
        let since: EventTime
        let until: EventTime

        /// It will not pass by itself.
        var isLasting: Bool {
            fixes >= Self.fixesOfAMinute || (fixes >= Self.fixesMin && until.duration(since: since) >= Self.lasting)
        }
    }

    private let looped: LoopedSource
    private let receiverClock: ReceiverClock
    let recorder: Recorder
    private let deliveries: [EndpointDelivery]
    private let log: AgentLog
    private let loop: EventLoop
    private var run: TrackerRun
    private var clock = TrackingClock.boot
    private var alarm: EventLoop.Alarm?
    private(set) var reception: Reception
    private(set) var decisions = DecisionLog()
    private(set) var trouble = ReceiverTrouble()
    /// As the process before left it.
    private let remembered: SourceMemory
    /// See `SourceConfig.receiver`.
    private let receiver: String
    var budget = RequestBudget()
    private var flushWanted = false
    /// The same for what happens to all devices with the same hours at once.
    private var sharedFlushWanted = false
    private var commitWanted = false
    private var areResolutionsNew = false
    /// Logged at the end of the turn, with the trackables of then.
    private var motionChanges: [MotionChange] = []
    /// Empty; see `fire`.
    private var effectsBuffer: [Effect] = []
    private var wasInHours = true
    private var powerLoggedAt: EventTime?
    private var ruleLines = LineBudget()
    /// For those who watch: a location is kept, before anything is done with it.
    var recorded: [(Location, EventTime) -> Void] = []
    /// The networks around, for each location.
    var network: () -> NetworkContext? = { nil }
    /// The receiver gave a fix, believed or not.
    var heard: (Fix, UTCTime, EventTime) -> Void = { _, _, _ in }
    /// What is published of a trackable may have changed.
    var resolutionsChanged: (EventTime) -> Void = { _ in }
    /// Motion or receiver changed: the status line is out of date.
    var changed: () -> Void = {}
    /// A file was read to its end, and everything that it gave was handed to the recorder.
    var ended: (EventTime) -> Void = { _ in }

    init(
        source: any FixSource, receiver: String = "", memory: SourceMemory?,
        clock receiverClock: ReceiverClock = ReceiverClock(),
        run: TrackerRun, recorder: Recorder, deliveries: [EndpointDelivery], log: AgentLog, loop: EventLoop
    ) {
        looped = LoopedSource(source, log: log, loop: loop)
        reception = Reception(position: memory?.position)
        remembered = memory ?? SourceMemory()
        self.receiver = receiver
        self.receiverClock = receiverClock
        self.recorder = recorder
        self.deliveries = deliveries
        self.log = log
        self.loop = loop
        self.run = run
        looped.received = { [unowned self] event, now in received(event, at: now) }
        looped.served = { [unowned self] now in finishTurn(at: now) }
        alarm = loop.alarm { [unowned self] now in
            // Late by a stall: each deadline still fires at its own time, in order.
            let reached = trackingTime(now)
            fire(now: now) { $0.passDeadlines(through: reached, $1) }
            finishTurn(at: now)
        }
    }

    var source: any FixSource { looped.source }
    var sourceState: SourceState { looped.state }
    var tracker: Tracker { run.tracker }
    /// See `TrackerRun.schedule`.
    var schedule: (isOpen: Bool, until: UTCTime?)? { run.schedule }
    /// Until when the receiver sleeps; nil = it is awake, or cannot sleep.
    var receiverSleep: TrackerSnapshot.ReceiverSleep? { looped.isAsleep ? tracker.snapshot.receiverSleep : nil }

    /// What the next start should know about the source.
    var memory: SourceMemory {
        let hostMs = loop.host.isClockSynchronised ? loop.host.wallClockMs : nil
        let trusted = receiverClock.trustedTime(at: loop.now, hostMs: hostMs)?.lowerBound
        return SourceMemory(
            position: reception.position, baud: (source as? SerialSource)?.foundSpeed?.baud,
            trusted: [remembered.trusted, trusted].compactMap(\.self).max(), receiver: receiver,
            repaired: source.dates.confirmedRepair ?? (remembered.receiver == receiver ? remembered.repaired : nil))
    }

    func start(at now: EventTime) { looped.start(at: now) }

    /// Something other than the receiver happened.
    /// - Parameter stored: what it changes is to be on disk soon, though it may give no record.
    func handle(_ event: TrackerEvent, at now: EventTime, stored: Bool = false) {
        handle([event], at: now, stored: stored)
    }

    /// Several things at once: what is recorded of them is in one commit.
    func handle(_ events: [TrackerEvent], at now: EventTime, stored: Bool = false) {
        for event in events { fire(event, now: now) }
        if stored { commitWanted = true }
        finishTurn(at: now)
    }

    /// Carries out all of the events or none. They use the budget if they change something that is recorded, announced
    /// or asked of the receiver; a request for what is so already is free.
    /// - Throws: `busy`, and then nothing has happened.
    func carryOut(_ events: [TrackerEvent], at now: EventTime) throws(ControlError) {
        let at = trackingTime(now)
        // On a copy, which replaces the tracker unless the budget is spent.
        var tried = run
        var effects: [Effect] = []
        for event in events { tried.handle(event, at: at) { effect, _ in effects.append(effect) } }
        // Power is recorded a little later; that it comes back in time is not.
        let awaited = tried.tracker.awaitedPower
        let isNews =
            (awaited != nil && awaited != run.tracker.awaitedPower)
            || effects.contains { if case .count = $0 { false } else { true } }
        defer { finishTurn(at: now) }
        if isNews { try budget.spend(at: now) }
        run = tried
        for effect in effects { perform(effect, now: now) }
    }

    /// - Parameter settings: nil = the same as before.
    func reload(_ settings: Tracker.Settings?, _ timetable: Timetable, at now: EventTime) {
        let at = trackingTime(now)
        fire(now: now) { $0.reloaded(settings, timetable, at: at, $1) }
        finishTurn(at: now)
    }

    /// The supplies of this host were read.
    func powerRead(_ reading: PowerWatch.Reading, at now: EventTime) {
        let state = reading.state
        if reading.hasBattery {
            fire(.batteryChanged(percent: state.batteryPercent, charging: state.charging), now: now)
        }
        fire(.externalPowerChanged(state.externalPower), now: now)
        // What is in memory goes to disk before it is certain that this is no dip.
        if reading.isLoss {
            fire(.flushRequested, now: now)
            commitWanted = true
        }
        finishTurn(at: now)
    }

    func deviceChanged(_ event: DeviceEvent?, at now: EventTime) { looped.deviceChanged(event, at: now) }

    /// The source need not wait for its next attempt.
    func retryNow(at now: EventTime) { looped.retryNow(at: now) }

    /// Rows went to disk: resumes a file that waited for that.
    func rowsStored(at now: EventTime) {
        guard recorder.held <= recorder.rowsMax, looped.setPaused(false, at: now) else { return }
        finishTurn(at: now)
    }

    func close() {
        looped.close()
        alarm?.deadline = nil
    }

    /// Where each trackable is on its way, as a record would say; see `Tracker.positions`.
    var positions: [Location] {
        var positions = tracker.positions
        if let network = network() { for index in positions.indices { positions[index].network = network } }
        return positions
    }

    func trackingTime(_ now: EventTime) -> EventTime { clock.time(at: now, reached: run.reached) }

    private func received(_ event: SourceEvent, at now: EventTime) {
        switch event {
        case .epoch(let epoch, let stamp, let position): received(epoch, stamp, position, at: now)
        case .stateChanged(let state):
            fire(.sourceStateChanged(state), now: now)
            changed()
            if state == .ended {
                // What waits for the next fix would wait in vain.
                fire(.shutdown, now: now)
                ended(now)
            }
        case .notice: changed()
        case .caughtUp: clock = .following(shift: run.reached.nanoseconds - now.nanoseconds)
        }
        // A file waits for the disk. It resumes while enough rows for a commit are left: fewer would wait for the
        // window.
        if recorder.held > 2 * recorder.rowsMax { _ = looped.setPaused(true, at: now) }
    }

    private func received(_ epoch: Epoch, _ stamp: SourceClock, _ position: FilePosition?, at now: EventTime) {
        reception.lastEpochAt = now
        let fix: Fix?
        switch epoch {
        case .fix(let found): (fix, reception.satellitesUsed) = (found, found.satellitesUsed)
        case .void(let void): (fix, reception.satellitesUsed) = (nil, void.satellitesUsed)
        }
        watch(fix, stamp, at: now)
        if case .log(let time) = stamp {
            clock = .log
            // Before its first date a log has no time that anything could run on: the tracker does not get these.
            guard time > .zero else {
                if fix != nil { reception.rejected(.dateless, at: now) }
                return
            }
        }
        let at = clock.time(of: stamp)
        if let fix, let time = fix.time {
            receiverClock.received(time, at: now)
            heard(fix, time, now)
        }
        let admitted = run.tracker.counters.admitted
        fire(now: now) { $0.epochReceived(epoch, at: at, $1) }
        if run.tracker.counters.admitted > admitted {
            reception.lastFixAt = now
            reception.unbelieved = nil
        }
        if let position { reception.position = position }
    }

    private func watch(_ fix: Fix?, _ stamp: SourceClock, at now: EventTime) {
        let at: EventTime
        switch stamp {
        case .arrival(let time), .log(let time): at = time
        }
        guard
            let news = trouble.received(fix, at: at, dates: source.dates, counters: { source.counters }, now: now)
        else { return }
        for words in news.lines { looped.notice(words, at: now) }
        if !news.lines.isEmpty || news.isFaultNew { changed() }
    }

    private func fire(_ event: TrackerEvent, now: EventTime) {
        let at = trackingTime(now)
        fire(now: now) { $0.handle(event, at: at, $1) }
    }

    /// Effects are performed once the tracker has returned, since their handlers may look at it.
    private func fire(now: EventTime, _ step: (inout TrackerRun, (Effect, UTCTime?) -> Void) -> Void) {
        // The buffer is reused. A nested call from `perform` starts with an empty one.
        var effects = effectsBuffer
        effectsBuffer = []
        step(&run) { effect, _ in effects.append(effect) }
        for effect in effects { perform(effect, now: now) }
        // After a long stall there were many.
        guard effects.capacity <= 64 else { return }
        effects.removeAll(keepingCapacity: true)
        effectsBuffer = effects
    }

    private func perform(_ effect: Effect, now: EventTime) {
        decisions.note(effect, decided: run.tracker.utc(at: trackingTime(now)), at: now)
        switch effect {
        case .record(let location): record(location, at: now)
        case .announceMotion(let change):
            motionChanges.append(change)
            changed()
        case .announceLowBattery(let power): log.batteryLow(power)
        case .sleepReceiver(let until): looped.sleepRequested(until: until)
        case .wakeReceiver: looped.wakeRequested()
        case .setReceiver(let resolution): looped.intervalRequested(.milliseconds(resolution.intervalMs))
        case .count(.rejected(let reason)): reception.rejected(reason, at: now)
        case .announceResolution: areResolutionsNew = true
        case .announceRule(let rule, let reason): log.ruleChanged(to: rule, because: reason, lines: &ruleLines, at: now)
        case .announceHalt, .announceGap, .announceMove, .count: break
        }
    }

    private func record(_ location: consuming Location, at now: EventTime) {
        if let network = network() { location.network = network }
        for tell in recorded { tell(location, now) }
        for delivery in deliveries { delivery.recorded(location, at: now) }
        switch location.event {
        case .none, .heartbeat: break
        case .gap: commitWanted = true
        case .power:
            logPower(location)
            flushWanted = true
        case .motionchange where location.reason == MotionReason.schedule.rawValue,
            .trip where location.reason == MotionReason.schedule.rawValue:
            sharedFlushWanted = true
        case .motionchange, .geofence, .trip, .panic, .requested, .settings, .beacon: flushWanted = true
        }
        // At last, when nothing else needs it: before that it would be copied.
        recorder.record(NewRow(location, receivedMs: loop.host.wallClockMs, recordedAt: now), at: now)
    }

    /// Settings were changed from afar, which has nothing to do with a place.
    /// - Parameter change: a JSON object.
    func recordSettings(_ change: String, at now: EventTime) {
        let snapshot = tracker.snapshot
        var location = Location(
            trackable: snapshot.trackables.first?.id, time: UTCTime(milliseconds: 0), at: trackingTime(now),
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), moving: snapshot.motion == .moving,
            event: .settings, odometer: snapshot.odometer, settings: change)
        location.removePlace()
        record(location, at: now)
        finishTurn(at: now)
    }

    /// Once for all trackables. That the battery runs low was logged when it did.
    private func logPower(_ location: Location) {
        guard location.reason != RecordReason.batteryLow.rawValue, powerLoggedAt != location.at else { return }
        powerLoggedAt = location.at
        log.powerChanged(location.reason, location.power)
    }

    /// After each event: commits and sends what is urgent, and waits for what the source and the tracker wait for now.
    private func finishTurn(at now: EventTime) {
        if !motionChanges.isEmpty {
            let trackables = run.tracker.snapshot.trackables.map(\.id)
            for change in motionChanges { log.motionChanged(change, of: trackables) }
            motionChanges.removeAll()
        }
        if looped.passOn(at: now) { changed() }
        // The batches that a flush forms are in the commit of the rows that asked for it.
        if flushWanted { for delivery in deliveries { delivery.flush(at: now) } }
        let hoursChanged = run.tracker.inHours != wasInHours
        if sharedFlushWanted || hoursChanged && !wasInHours {
            for delivery in deliveries { delivery.flushWithFleet(at: now) }
        }
        if commitWanted || flushWanted || sharedFlushWanted { recorder.commit(at: now) }
        commitWanted = false
        flushWanted = false
        sharedFlushWanted = false
        if hoursChanged {
            wasInHours.toggle()
            log.hoursChanged(open: wasInHours, until: run.schedule?.until)
            changed()
        }
        for delivery in deliveries { delivery.step(at: now) }
        if areResolutionsNew {
            areResolutionsNew = false
            resolutionsChanged(now)
        }
        alarm?.deadline = clock.bootDeadline(run.nextDeadline)
    }
}
