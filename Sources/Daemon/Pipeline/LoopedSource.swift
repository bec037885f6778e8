import Sensors
import WaypostCore
import WaypostHost
import WaypostNMEA

/// The source of fixes on the event loop: watches its descriptor, keeps its deadline armed, logs its state, and passes on what
/// tracking asks of the receiver.
final class LoopedSource {
    /// What was read of the host's clock is good for as long.
    private static let hostTimeLife = Duration.seconds(60)

    let source: any FixSource
    private(set) var state = SourceState.opening
    private(set) var isAsleep = false
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var watched: Int32?
    private var isPaused = false
    private var isClosed = false
    private var lines = LineBudget()
    /// When the host's clock is read again for the source.
    private var hostTimeDue: EventTime?
    private var noticeLines = LineBudget()
    /// What tracking last asked of the receiver.
    private var sleepWanted = false
    private var sleepUntil: EventTime?
    /// The interval between fixes that was asked for, until it is passed on.
    private var intervalWanted: Duration?
    /// The receiver was woken to see whether it moves: that it opens and sends sentences again is no news.
    private var isProbing = false
    var received: (SourceEvent, EventTime) -> Void = { _, _ in }
    /// The source has done what was due: see `passOn(at:)`.
    var served: (EventTime) -> Void = { _ in }

    init(_ source: any FixSource, log: AgentLog, loop: EventLoop) {
        self.source = source
        self.log = log
        self.loop = loop
        alarm = loop.alarm { [unowned self] now in serve(at: now) { source.deadlineReached(at: now, $0) } }
    }

    func start(at now: EventTime) { serve(at: now) { source.start(at: now, $0) } }

    /// The source decides whether the device is its own.
    func deviceChanged(_ event: DeviceEvent?, at now: EventTime) {
        guard !isClosed else { return }
        serve(at: now) { source.deviceChanged(event, at: now, $0) }
    }

    /// The source need not wait for its next attempt.
    func retryNow(at now: EventTime) {
        guard !isClosed else { return }
        serve(at: now) { _ in source.retryNow(at: now) }
    }

    /// A file is not read while paused.
    /// - Returns: whether that is a change.
    func setPaused(_ isPaused: Bool, at now: EventTime) -> Bool {
        guard isPaused != self.isPaused, !isClosed else { return false }
        self.isPaused = isPaused
        source.setPaused(isPaused, at: now)
        return true
    }

    // Not passed on at once: the source may be in the middle of handing over.

    func sleepRequested(until: EventTime?) { (sleepWanted, sleepUntil) = (true, until) }

    func wakeRequested() { sleepWanted = false }

    func intervalRequested(_ interval: Duration) { intervalWanted = interval }

    /// Passes on what was asked of the receiver, and waits for what the source waits for now.
    /// - Returns: whether the receiver fell asleep or was woken.
    func passOn(at now: EventTime) -> Bool {
        let hasTurned = passOnSleep(at: now)
        if let interval = intervalWanted, !isClosed {
            intervalWanted = nil
            source.setInterval(interval, at: now) { [unowned self] event in deliver(event, at: now) }
        }
        watch()
        if !isClosed { alarm?.deadline = source.nextDeadline }
        return hasTurned
    }

    func close() {
        isClosed = true
        if let watched { loop.forget(watched) }
        watched = nil
        alarm?.deadline = nil
        source.close()
    }

    /// Something about the receiver, for the journal.
    func notice(_ text: String, at now: EventTime) {
        log.receiverNotice("receiver \(source.name): \(text)", lines: &noticeLines, at: now)
    }

    private func readHostTime(at now: EventTime) {
        guard hostTimeDue.map({ now >= $0 }) ?? true else { return }
        hostTimeDue = now + Self.hostTimeLife
        let host = loop.host
        source.hostTimeRead(
            host.isClockSynchronised ? HostTime(time: UTCTime(milliseconds: host.wallClockMs), at: now) : nil)
    }

    private func serve(at now: EventTime, _ work: ((SourceEvent) -> Void) -> Void) {
        readHostTime(at: now)
        work { [unowned self] event in deliver(event, at: now) }
        served(now)
    }

    private func deliver(_ event: SourceEvent, at now: EventTime) {
        switch event {
        case .stateChanged(let state):
            self.state = state
            log.sourceChanged(
                source.name, state, unreadable: source.unreadableWords, silenceCause: source.silenceCause,
                expected: isProbing, lines: &lines, at: now)
            if state != .opening { isProbing = false }
        case .notice(let text):
            notice(text, at: now)
        case .epoch, .caughtUp: break
        }
        received(event, now)
    }

    private func passOnSleep(at now: EventTime) -> Bool {
        var hasTurned = false
        // Opening may fail at once and reach the tracker, which does not change its request for that.
        while sleepWanted != isAsleep, !isClosed {
            let wanted = sleepWanted
            isProbing = !wanted
            let can = source.setAsleep(wanted, until: wanted ? sleepUntil : nil, at: now) {
                [unowned self] event in deliver(event, at: now)
            }
            guard can else {
                sleepWanted = false
                break
            }
            isAsleep = wanted
            hasTurned = true
        }
        return hasTurned
    }

    /// The number of a descriptor that the source has closed may soon belong to another one.
    private func watch() {
        let wanted = source.descriptor
        if let watched, watched != wanted { loop.forget(watched) }
        watched = nil
        // Also where nothing seems to have changed: a source that closes and opens may get the same number again.
        guard let wanted else { return }
        let isWritable = source.awaitsWritability
        do throws(SystemError) {
            try loop.watch(wanted, readable: !isWritable, writable: isWritable) { [unowned self] _, now in
                serve(at: now) { source.descriptorReady(at: now, $0) }
            }
            watched = wanted
        } catch {
            log.receiverNotice("receiver \(source.name): \(error)", lines: &noticeLines, at: loop.now)
        }
    }
}
