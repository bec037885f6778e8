import WaypostCore

/// Silence of the receiver: when it counts as a gap, whether that is recorded, and why it fell silent.
struct GapWatch: Sendable {
    /// While parked without heartbeats, gaps are recorded at least this far apart.
    private static let parkedPause = Duration.seconds(600)

    /// Seconds.
    private var gapAfter: Double
    /// The time between two recorded gaps while parked.
    private var pause: Duration

    /// The silence longer than `gapAfter` that is going on: the last fix before it, and why.
    private(set) var current: (since: UTCTime, reason: RecordReason)?
    private var recordedAt: EventTime?
    private(set) var recordedTime: UTCTime?
    /// Epochs without a believed fix since the last one.
    private var voidEpochs = 0
    /// The newest of them: while they arrive there is a receiver, but no sky.
    private(set) var lastVoid: EventTime?
    /// When the tracking hours last began; nil = they did not in this run.
    private(set) var openedAt: EventTime?

    /// - Parameter heartbeat: while parked.
    init(gapAfter: Duration, heartbeat: Duration, recorded: UTCTime?) {
        (self.gapAfter, pause, recordedTime) = (0, .zero, recorded)
        reload(gapAfter: gapAfter, heartbeat: heartbeat)
    }

    mutating func reload(gapAfter: Duration, heartbeat: Duration) {
        self.gapAfter = gapAfter.inSeconds
        pause = heartbeat > .zero ? heartbeat : Self.parkedPause
    }

    var isOpen: Bool { current != nil }
    var hasVoidEpochs: Bool { voidEpochs > 0 }

    mutating func voidEpoch(at: EventTime) {
        voidEpochs += 1
        lastVoid = at
    }

    mutating func fixReceived() {
        current = nil
        voidEpochs = 0
        lastVoid = nil
    }

    mutating func hoursBegan(at: EventTime) { openedAt = at }

    /// Whether a fix after this many seconds of silence ends a gap. A receiver that reports a fix a minute is not silent for a minute.
    func isGap(_ silence: Double?, interval: Double) -> Bool {
        isOpen || (silence ?? 0) > span(interval: interval)
    }

    /// Seconds; a longer silence is a gap.
    func span(interval: Double) -> Double { max(gapAfter, 3 * interval) }

    /// When silence becomes a gap; nil while one is going on.
    /// - Parameter woken: when the receiver was last woken.
    func due(lastFix: EventTime, woken: EventTime?, interval: Double) -> EventTime? {
        if isOpen { return nil }
        return max(lastFix, woken ?? lastFix, openedAt ?? lastFix) + Nanoseconds(seconds: span(interval: interval))
    }

    mutating func began(since: UTCTime, reason: RecordReason) { current = (since, reason) }

    /// While parked at most one per heartbeat, so that a loose plug does not fill the disk.
    /// - Parameter time: of the fix that ends the gap; nil when it begins.
    func mayRecord(_ time: UTCTime?, at: EventTime) -> Bool {
        if let recordedAt { return at.duration(since: recordedAt) >= pause }
        guard let recordedTime, let time else { return true }
        let elapsed = time.milliseconds(since: recordedTime)
        return elapsed < 0 || elapsed >= pause.milliseconds
    }

    mutating func recorded(_ time: UTCTime?, at: EventTime) {
        recordedAt = at
        recordedTime = time
    }
}

extension GapWatch {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(gapAfter.isFinite, "a gap after \(gapAfter) s")
        invariant(pause >= .zero, "\(pause) between records of a gap")
        invariant(voidEpochs >= 0, "\(voidEpochs) epochs without a fix")
    }
}
