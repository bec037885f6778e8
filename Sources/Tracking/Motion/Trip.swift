import WaypostCore

/// An asset on a trip, and what the halts so far say of the next one.
struct Trip: Sendable {
    /// A halt that was thought to have ended.
    struct FormerHalt: Sendable {
        let since: MotionDetector.Moment
        let place: StoredState.Anchor
        let creep: CreepLog
        /// When it was thought to have ended.
        let resumed: EventTime
    }

    /// The departure, where it was reported and not seen: silence before it is not part of the trip.
    let reported: MotionDetector.Moment?
    /// Where the asset stood when the process ended in a halt.
    private(set) var restoredPlace: StoredState.Anchor?
    /// When external power went off, if nothing has moved since.
    private(set) var powerOff: EventTime?
    private(set) var former: FormerHalt?
    private(set) var chain = HaltChain()
    /// Halts in a row that are a few metres apart.
    private(set) var queueing = 0

    init(reported: MotionDetector.Moment? = nil, restoredPlace: StoredState.Anchor? = nil) {
        self.reported = reported
        self.restoredPlace = restoredPlace
    }

    /// - Returns: the halt that has begun; nil = the asset moves.
    mutating func observe(_ sighting: Sighting, _ signals: inout MotionSignals) -> Boxed<Halt>? {
        note(sighting)
        let settings = signals.settings
        // Power lost in a halt and then driven without says nothing about the next halt.
        if signals.window.evidence >= settings.resumeEvidence { powerOff = nil }
        guard !settings.disableStopDetection, let speed = signals.window.vectorSpeed, speed < settings.stillSpeed else {
            return nil
        }
        let run = signals.window.quietRun(below: Tuning.quietSpeed, back: Tuning.quietSeconds)
        guard let first = run.first else { return nil }
        signals.forget(before: first.at)
        return Boxed(Halt(run, from: first, seen: sighting.at, within: self, signals))
    }

    mutating func note(_ sighting: Sighting) { chain.note(sighting.fix.coordinate, at: sighting.at) }
    mutating func powerWentOff(at: EventTime) { powerOff = at }
    mutating func powerCame() { powerOff = nil }

    /// Notes whether the new halt continues a queue, and a chain.
    mutating func haltBegan(since: MotionDetector.Moment, at place: StoredState.Anchor, timeout: Double) {
        restoredPlace = nil
        chain.halted(since: since, timeout: timeout)
        guard let former, since.at.seconds(since: former.resumed) <= Tuning.queueSeconds,
            former.resumed.seconds(since: former.since.at) <= Tuning.queueHalt,
            former.place.coordinate.distance(to: place.coordinate) <= Tuning.queueMetres
        else {
            queueing = 0
            return
        }
        queueing += 1
    }

    mutating func haltEnded(_ halt: FormerHalt) {
        former = halt
        chain.ended(at: halt.resumed)
        powerOff = nil
    }

    /// The former halt has not ended: the one since is part of it.
    mutating func formerGoesOn() {
        former = nil
        queueing = max(0, queueing - 1)
    }

    /// What follows is another halt, whatever came before.
    mutating func forgetHalts() {
        former = nil
        chain.clear()
    }
}
