import ControlProtocol
import Delivery
import EventLoop
import Outbox
import Positioning
import Sensors
import Systemd
import Tracking

/// From the receiver to the recorder: feeds epochs and deadlines to the tracker and performs what it says.
final class Pipeline {
    /// What tracking's deadlines run on.
    private enum TrackingClock {
        /// A live receiver: the boot clock.
        case boot
        /// A file: the log's own time, which passes with its epochs only.
        case log
        /// The end of a followed file: the boot clock from the last log time on, shifted by so many nanoseconds.
        case following(shift: Int64)
    }

    let source: any FixSource
    private let recorder: Recorder
    private let deliveries: [EndpointDelivery]
    private let log: AgentLog
    private let loop: EventLoop
    private var run: TrackerRun
    private var clock = TrackingClock.boot
    private var sourceAlarm: EventLoop.Alarm?
    private var trackerAlarm: EventLoop.Alarm?
    private var watched: (descriptor: Int32, writable: Bool)?
    private var paused = false
    private var closed = false
    private var flushWanted = false
    private var commitWanted = false
    /// Not told yet: whose they are is not known in the middle of handing over.
    private var motionChanges: [MotionChange] = []
    /// Empty; see `advance`.
    private var roomForEffects: [Effect] = []
    /// What the tracker last said of the receiver, and what was done about it.
    private var sleepWanted = false
    private var sleepUntil: EventTime?
    private var isAsleep = false
    /// The interval between fixes that the tracker last asked of the receiver, until it is passed on.
    private var intervalWanted: Duration?
    private var lines = LineBudget()
    var budget = RequestBudget()
    /// The receiver was woken to look: that it opens and tells sentences again is no news.
    private var isProbing = false
    private var wasInHours = true
    private var toldPowerAt: EventTime?
    private var position: FilePosition?
    private(set) var sourceState = SourceState.opening
    private(set) var lastEpochAt: EventTime?
    private(set) var lastFixAt: EventTime?
    /// Fixes in a row that were not believed, and why the last of them was not; nil = the last fix was.
    private(set) var unbelieved: (fixes: Int, reason: FixFilter.Rejection)?
    /// The newest time that the receiver told, and when it came.
    private var told: (time: UTCTime, at: EventTime)?
    /// What the age of rows of earlier processes is measured against.
    private(set) var trustedTime = TrustedTime()
    /// A location is kept.
    var recorded: (Location, EventTime) -> Void = { _, _ in }
    /// Motion or receiver changed: the status line is out of date.
    var changed: () -> Void = {}
    /// A file was read to its end, and everything that it gave was handed to the recorder.
    var ended: (EventTime) -> Void = { _ in }

    init(
        source: any FixSource, memory: SourceMemory?, run: TrackerRun, recorder: Recorder,
        deliveries: [EndpointDelivery], log: AgentLog, loop: EventLoop
    ) {
        self.source = source
        position = memory?.position
        self.recorder = recorder
        self.deliveries = deliveries
        self.log = log
        self.loop = loop
        self.run = run
        sourceAlarm = loop.alarm { [unowned self] now in
            source.deadlineReached(at: now) { [unowned self] event in take(event, at: now) }
            settle(at: now)
        }
        trackerAlarm = loop.alarm { [unowned self] now in
            // Late by a stall: each deadline still fires at its own time, in order.
            let reached = trackingTime(now)
            advance(now: now) { $0.passDeadlines(through: reached, $1) }
            settle(at: now)
        }
    }

    var tracker: Tracker { run.tracker }
    /// See `TrackerRun.schedule`.
    var schedule: (isOpen: Bool, until: UTCTime?)? { run.schedule }

    /// What the next start should know about the source.
    var memory: SourceMemory {
        SourceMemory(position: position, baud: (source as? SerialSource)?.foundSpeed?.baud)
    }

    func start(at now: EventTime) {
        source.start(at: now) { [unowned self] event in take(event, at: now) }
        settle(at: now)
    }

    /// Something other than the receiver happened.
    /// - Parameter stored: what it changes is to be on disk soon, though it may give no record.
    func handle(_ event: TrackerEvent, at now: EventTime, stored: Bool = false) {
        feed(event, trackingAt: trackingTime(now), now: now)
        if stored { commitWanted = true }
        settle(at: now)
    }

    /// Does what is asked, all of it or nothing. It costs where it changes something that is recorded, announced or asked of the
    /// receiver; what is so already costs nothing.
    /// - Throws: `busy`, and then nothing has happened.
    func carryOut(_ events: [TrackerEvent], at now: EventTime) throws(ControlError) {
        let at = trackingTime(now)
        // On a copy, which takes the place of the tracker unless the budget is spent.
        var tried = run
        var effects: [Effect] = []
        for event in events { tried.handle(event, at: at) { effect, _ in effects.append(effect) } }
        // Power is recorded a little later; that it comes back in time is not.
        let awaited = tried.tracker.awaitedPower
        let isNews =
            (awaited != nil && awaited != run.tracker.awaitedPower)
            || effects.contains { if case .count = $0 { false } else { true } }
        defer { settle(at: now) }
        if isNews { try budget.spend(at: now) }
        run = tried
        for effect in effects { perform(effect, now: now) }
    }

    /// - Parameter settings: nil = the same as before.
    func reload(_ settings: Tracker.Settings?, _ timetable: Timetable, at now: EventTime) {
        let at = trackingTime(now)
        advance(now: now) { $0.reloaded(settings, timetable, at: at, $1) }
        settle(at: now)
    }

    /// The supplies of this host were looked at.
    func powerRead(_ reading: PowerWatch.Reading, at now: EventTime) {
        let (at, state) = (trackingTime(now), reading.state)
        if reading.tellsBattery {
            feed(.batteryChanged(percent: state.batteryPercent, charging: state.charging), trackingAt: at, now: now)
        }
        feed(.externalPowerChanged(state.externalPower), trackingAt: at, now: now)
        // What is in memory goes to disk before it is certain that this is no dip.
        if reading.isLoss { commitWanted = true }
        settle(at: now)
    }

    /// The source knows what to make of it.
    func deviceChanged(_ event: DeviceEvent?, at now: EventTime) {
        guard !closed else { return }
        source.deviceChanged(event, at: now) { [unowned self] event in take(event, at: now) }
        settle(at: now)
    }

    /// The source need not wait for its next attempt.
    func hurry(at now: EventTime) {
        guard !closed else { return }
        source.hurry(at: now)
        settle(at: now)
    }

    /// Until when the receiver sleeps; nil = it is awake, or cannot sleep.
    var receiverSleep: TrackerSnapshot.ReceiverSleep? { isAsleep ? tracker.snapshot.receiverSleep : nil }

    /// Rows went to disk: a file that waited for that is read on.
    func recorderAdvanced(at now: EventTime) {
        guard paused, !closed, recorder.held <= recorder.rowsMax else { return }
        paused = false
        source.setPaused(false, at: now)
        settle(at: now)
    }

    func close() {
        closed = true
        if let watched { loop.forget(watched.descriptor) }
        watched = nil
        sourceAlarm?.deadline = nil
        trackerAlarm?.deadline = nil
        source.close()
    }

    /// What the receiver's clock shows now; nil before it told a date.
    func receiverTime(at now: EventTime) -> UTCTime? {
        told.map { $0.time + now.duration(since: $0.at) }
    }

    private func trackingTime(_ now: EventTime) -> EventTime {
        switch clock {
        case .boot: now
        case .log: run.reached
        case .following(let shift): now + .nanoseconds(shift)
        }
    }

    private func take(_ event: SourceEvent, at now: EventTime) {
        switch event {
        case .epoch(let epoch, let stamp, let position):
            let at: EventTime
            lastEpochAt = now
            switch stamp {
            case .log(let time):
                clock = .log
                // Before its first date a log has no time that anything could run on: the tracker does not hear of these.
                guard time > .zero else {
                    if case .fix = epoch { isNotBelieved(.dateless) }
                    return
                }
                at = time
            case .arrival(let time):
                if case .following(let shift) = clock { at = time + .nanoseconds(shift) } else { at = time }
            }
            if case .fix(let fix) = epoch {
                lastFixAt = now
                if let time = fix.time {
                    told = (time, now)
                    trustedTime.fixReceived(time: time, at: now)
                }
            }
            let admitted = run.tracker.counters.admitted
            advance(now: now) { $0.epochReceived(epoch, at: at, $1) }
            if run.tracker.counters.admitted > admitted { unbelieved = nil }
            if let position { self.position = position }
        case .stateChanged(let state):
            sourceState = state
            log.sourceChanged(source.name, state, expected: isProbing, lines: &lines, at: now)
            if state != .opening { isProbing = false }
            feed(.sourceStateChanged(state), trackingAt: trackingTime(now), now: now)
            changed()
            if state == .ended {
                // No fix will come that what waits for the next one could wait for.
                feed(.shutdown, trackingAt: trackingTime(now), now: now)
                ended(now)
            }
        case .notice(let text):
            log.receiverNotice("receiver \(source.name): \(text)")
            changed()
        case .caughtUp:
            clock = .following(shift: run.reached.nanoseconds - now.nanoseconds)
        }
        // A file waits for the disk. It goes on before less is left than makes a commit by itself, which would wait for its
        // window.
        if recorder.held > 2 * recorder.rowsMax, !paused {
            paused = true
            source.setPaused(true, at: now)
        }
    }

    private func feed(_ event: TrackerEvent, trackingAt at: EventTime, now: EventTime) {
        advance(now: now) { $0.handle(event, at: at, $1) }
    }

    /// What the tracker decides is done once it has come to rest, for whoever hears of it may look at it.
    private func advance(now: EventTime, _ step: (inout TrackerRun, (Effect, UTCTime?) -> Void) -> Void) {
        // Room for them is made once. Whoever is called below may come here again and finds none, which is as good.
        var effects = roomForEffects
        roomForEffects = []
        step(&run) { effect, _ in effects.append(effect) }
        for effect in effects { perform(effect, now: now) }
        // After a long stall there were many.
        guard effects.capacity <= 64 else { return }
        effects.removeAll(keepingCapacity: true)
        roomForEffects = effects
    }

    private func perform(_ effect: Effect, now: EventTime) {
        switch effect {
        case .record(let location):
            recorded(location, now)
            recorder.record(NewRow(location, receivedMs: loop.host.wallClockMs, recordedAt: now), at: now)
            for delivery in deliveries { delivery.recorded(location, at: now) }
            switch location.event {
            case .none, .heartbeat: break
            case .gap: commitWanted = true
            case .power:
                tellPower(location)
                flushWanted = true
            case .motionchange, .geofence, .trip, .panic: flushWanted = true
            }
        case .announceMotion(let change):
            motionChanges.append(change)
            changed()
        case .announceLowBattery(let power): log.batteryLow(power)
        // Not at once: the source may be in the middle of handing over.
        case .sleepReceiver(let until):
            sleepWanted = true
            sleepUntil = until
        case .wakeReceiver: sleepWanted = false
        case .setReceiver(let resolution): intervalWanted = .milliseconds(resolution.intervalMs)
        case .count(.rejected(let reason)): isNotBelieved(reason)
        case .announceResolution, .count: break
        }
    }

    private func isNotBelieved(_ reason: FixFilter.Rejection) {
        unbelieved = ((unbelieved?.fixes ?? 0) + 1, reason)
    }

    /// Once for all trackables. That the battery runs low has been said when it did.
    private func tellPower(_ location: Location) {
        guard location.reason != "battery-low", toldPowerAt.map({ $0 != location.at }) ?? true else { return }
        toldPowerAt = location.at
        log.powerChanged(location.reason, location.power)
    }

    /// After each event: commit and send what is urgent, and watch what the source and the tracker wait for now.
    private func settle(at now: EventTime) {
        if !motionChanges.isEmpty {
            let trackables = run.tracker.snapshot.trackables.map(\.id)
            for change in motionChanges { log.motionChanged(change, of: trackables) }
            motionChanges.removeAll()
        }
        followSleep(at: now)
        if let interval = intervalWanted, !closed {
            intervalWanted = nil
            source.setInterval(interval, at: now) { [unowned self] event in take(event, at: now) }
        }
        // First: the number of a descriptor that the source has closed may soon belong to somebody else.
        watchSource()
        // The batches that a flush forms are in the commit of the rows that asked for it.
        if flushWanted { for delivery in deliveries { delivery.flush(at: now) } }
        if commitWanted || flushWanted { recorder.commit(at: now) }
        commitWanted = false
        flushWanted = false
        if run.tracker.inHours != wasInHours {
            wasInHours.toggle()
            log.hoursChanged(open: wasInHours, until: run.schedule?.until)
            changed()
        }
        for delivery in deliveries { delivery.step(at: now) }
        sourceAlarm?.deadline = source.nextDeadline
        switch clock {
        case .boot: trackerAlarm?.deadline = run.nextDeadline
        case .log: trackerAlarm?.deadline = nil
        case .following(let shift): trackerAlarm?.deadline = run.nextDeadline.map { $0 - .nanoseconds(shift) }
        }
    }

    private func followSleep(at now: EventTime) {
        // Opening may fail at once, which the tracker is told of; it does not change its mind for that.
        while sleepWanted != isAsleep, !closed {
            let wanted = sleepWanted
            isProbing = !wanted
            let can = source.setAsleep(wanted, until: wanted ? sleepUntil : nil, at: now) {
                [unowned self] event in take(event, at: now)
            }
            guard can else { return sleepWanted = false }
            isAsleep = wanted
            changed()
        }
    }

    private func watchSource() {
        let wanted = source.descriptor.map { (descriptor: $0, writable: source.awaitsWritability) }
        if let watched, watched.descriptor != wanted?.descriptor { loop.forget(watched.descriptor) }
        // Also where nothing seems to have changed: a source that closes and opens may get the same number again.
        guard let wanted else { return watched = nil }
        do throws(SystemError) {
            try loop.watch(wanted.descriptor, readable: !wanted.writable, writable: wanted.writable) {
                [unowned self] _, now in
                source.descriptorReady(at: now) { [unowned self] event in take(event, at: now) }
                settle(at: now)
            }
            watched = wanted
        } catch {
            watched = nil
            log.receiverNotice("receiver \(source.name): \(error)")
        }
    }
}
