import WaypostCore
import WaypostNMEA

/// Bytes that arrive as they happen: decodes them, knows when the line has gone silent, and when reading can rest.
///
/// Events are appended to `events`, to be delivered at the end of the call: the loop may call back into the
/// source from there.
package struct LiveStream {
    /// The longest pause in reading after the first bytes of an epoch.
    static let restMax = Duration.milliseconds(150)
    private static let quietMax = Duration.seconds(60)

    package private(set) var state = SourceState.opening
    private var decoder: NMEADecoder
    private let stalenessMin: Duration
    private var arrivals = ArrivalInterval()
    private var isOpen = false
    private var isAnnounced = false
    private var restEnd: EventTime?
    /// When the line counts as silent or unreadable unless a sentence comes before; nil = closed, or known to be silent.
    private var staleAt: EventTime?
    private var lastByte: EventTime?
    /// Set where epochs have a position in a file.
    private var file: FileStream?
    private(set) var isAsleep = false
    private var stray = StrayBytes()
    /// Of bytes that are part of no sentence, for people.
    private let strayCause: String
    /// Since when no byte has come; nil = closed.
    private var quietSince: EventTime?
    /// How far apart epochs may be though they were closer so far; nil = as they were.
    var expectedInterval: Duration? {
        didSet {
            guard expectedInterval != oldValue, isOpen, staleAt != nil, let lastByte else { return }
            staleAt = lastByte + staleness
        }
    }

    /// - Parameter staleness: the shortest time without a sentence that counts as silence.
    package init(settings: NMEADecoder.Settings, staleness: Duration, strayCause: String) {
        var settings = settings
        settings.live = true
        decoder = NMEADecoder(settings: settings)
        stalenessMin = max(staleness, .milliseconds(1))
        self.strayCause = strayCause
    }

    /// Continues a log whose end was reached and that grows from now on.
    init(
        continuing decoder: NMEADecoder, file: FileStream?, state: SourceState, staleness: Duration, at now: EventTime
    ) {
        self.decoder = decoder
        self.decoder.wentLive()
        self.file = file
        self.state = state
        isOpen = true
        isAnnounced = true
        stalenessMin = max(staleness, .milliseconds(1))
        strayCause = StrayCause.file
        staleAt = now + self.staleness
    }

    package var counters: NMEACounters { decoder.counters }
    var satellites: SatelliteView? { decoder.satellites }
    var antenna: AntennaState? { decoder.antenna }
    package var dates: ReceiverDates { decoder.receiverDates }
    package mutating func hostTimeRead(_ time: HostTime?) { decoder.hostTime = time }

    var isResting: Bool { restEnd != nil }

    /// That much of what arrives is no sentence, and why; nil = little.
    var strayWords: String? { stray.words(strayCause) }

    /// When a connection over which nothing comes is worth less than a new one.
    var quietEnd: EventTime? { quietSince.map { $0 + max(Self.quietMax, staleness * 2) } }

    /// The next of: end of the rest, end of an epoch by silence, staleness.
    package var nextDeadline: EventTime? {
        guard isOpen else { return nil }
        return [restEnd, decoder.nextDeadline, staleAt].compactMap { $0 }.min()
    }

    /// Reports that the first attempt is being made.
    mutating func opening(_ events: inout [SourceEvent]) {
        announce(.opening, &events)
    }

    /// - Parameter isAgain: after a connection that was silent; that it is silent stays true until something comes.
    package mutating func opened(at now: EventTime, isAgain: Bool = false, _ events: inout [SourceEvent]) {
        isOpen = true
        lastByte = nil
        quietSince = now
        if isAgain, state == .silent { return }
        staleAt = now + staleness
        announce(.opening, &events)
    }

    /// The connection is given up because nothing comes over it.
    mutating func gaveUpQuiet(at now: EventTime, _ events: inout [SourceEvent]) {
        if isOpen { streamBroken(continuesAs: nil, at: now, &events) }
        isOpen = false
        quietSince = nil
    }

    /// Nothing can arrive any more. An open epoch is emitted as it is.
    ///
    /// - Parameter reason: for people.
    package mutating func lost(_ reason: String, at now: EventTime, _ events: inout [SourceEvent]) {
        if isOpen { streamBroken(continuesAs: nil, at: now, &events) }
        isOpen = false
        quietSince = nil
        announce(.lost(reason: reason), &events)
    }

    /// What the owner of the line has to do when it falls asleep or wakes.
    enum SleepTurn { case close, open }

    /// While asleep nothing is expected. An open epoch is emitted as it is.
    ///
    /// - Returns: nil when nothing changes.
    mutating func setAsleep(_ asleep: Bool, at now: EventTime, _ events: inout [SourceEvent]) -> SleepTurn? {
        guard asleep != isAsleep else { return nil }
        isAsleep = asleep
        guard asleep else {
            opening(&events)
            return .open
        }
        if isOpen { streamBroken(continuesAs: nil, at: now, &events) }
        isOpen = false
        quietSince = nil
        return .close
    }

    /// Nothing will ever arrive any more.
    mutating func ended(at now: EventTime, _ events: inout [SourceEvent]) {
        streamBroken(continuesAs: nil, at: now, &events)
        isOpen = false
        announce(.ended, &events)
    }

    /// The next bytes belong to another stream.
    mutating func streamBroken(continuesAs file: FileStream?, at now: EventTime, _ events: inout [SourceEvent]) {
        var epochs: [(Epoch, ResumePoint)] = []
        decoder.endOfInput { epochs.append(($0, $1)) }
        hand(over: epochs, &events)
        decoder.reset(at: now)
        stray = StrayBytes()
        arrivals = ArrivalInterval()
        restEnd = nil
        staleAt = nil
        self.file = file
    }

    /// - Parameter bufferTime: how long the kernel's buffer for the line takes to fill; nil = longer than any rest.
    /// - Returns: complete sentences among the bytes.
    @discardableResult
    package mutating func received(
        _ bytes: Span<UInt8>, at now: EventTime, bufferTime: Duration?, _ events: inout [SourceEvent]
    ) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let sentencesBefore = decoder.counters.sentences
        var epochs: [(Epoch, ResumePoint)] = []
        decoder.decode(bytes, at: now) { epochs.append(($0, $1)) }
        let sentences = decoder.counters.sentences - sentencesBefore
        lastByte = now
        quietSince = now
        if sentences > 0 { announce(.receiving, &events) }
        if stray.received(decoder.counters, at: now), let strayWords { events.append(.notice(strayWords)) }
        hand(over: epochs, &events)
        if sentences > 0 || staleAt == nil { staleAt = now + staleness }
        rest(at: now, bufferTime: bufferTime, epochEnded: !epochs.isEmpty)
        return sentences
    }

    /// The next bytes do not continue a sentence that the last ones began.
    mutating func sentenceBroken() { decoder.datagramEnded() }

    /// The rest is over; read before anything else is done.
    package mutating func restEnded(at now: EventTime) {
        if let restEnd, now >= restEnd { self.restEnd = nil }
    }

    /// What time alone causes. Call it after everything that had arrived was read: after a stall bytes may
    /// have been waiting for longer than a deadline.
    package mutating func deadlineReached(at now: EventTime, _ events: inout [SourceEvent]) {
        guard isOpen else { return }
        if let silence = decoder.nextDeadline, now >= silence {
            var epochs: [(Epoch, ResumePoint)] = []
            decoder.deadlineReached(at: now) { epochs.append(($0, $1)) }
            hand(over: epochs, &events)
        }
        if let staleAt, now >= staleAt {
            if let lastByte, now < lastByte + staleness {
                announce(.unreadable, &events)
                self.staleAt = lastByte + staleness
            } else {
                announce(.silent, &events)
                self.staleAt = nil
            }
        }
    }

    /// max(5 s, 3 × interval) with the default setting.
    private var staleness: Duration {
        let interval = max(arrivals.median ?? .zero, decoder.measuredInterval ?? .zero, expectedInterval ?? .zero)
        return max(stalenessMin, interval * 3)
    }

    mutating func announce(_ new: SourceState, _ events: inout [SourceEvent]) {
        guard new != state || !isAnnounced else { return }
        state = new
        isAnnounced = true
        events.append(.stateChanged(new))
    }

    private mutating func hand(over epochs: [(Epoch, ResumePoint)], _ events: inout [SourceEvent]) {
        for (epoch, resume) in epochs {
            arrivals.add(epoch.at)
            events.append(.epoch(epoch, clock: .arrival(epoch.at), position: file?.position(resume)))
        }
    }

    /// An epoch that is open costs a wake-up for each of its sentences, or for each few bytes on a USB adapter; so do
    /// the sentences after its last one. Left alone for a moment it costs one or two.
    private mutating func rest(at now: EventTime, bufferTime: Duration?, epochEnded: Bool) {
        restEnd = nil
        guard decoder.nextDeadline != nil || !epochEnded else { return }
        // Without a measured interval the pause might run into the next epoch.
        guard let measured = decoder.measuredInterval, let arrived = arrivals.median else { return }
        let pause = min(Self.restMax, min(measured, arrived) / 2, (bufferTime ?? Self.restMax * 2) / 2)
        if pause >= .milliseconds(5) { restEnd = now + pause }
    }
}
