import WaypostCore

/// Bytes of an NMEA 0183 stream in, epochs out: each exactly once, in arrival order.
///
/// The result does not depend on how the bytes are cut into chunks. Bad input is counted and skipped. Nothing is
/// allocated per sentence. Time comes in as an argument: live the boot clock at the arrival of the bytes, for a file
/// anything (see `LogClock` for the event time of its epochs).
public struct NMEADecoder: Sendable {
    private let settings: Settings
    private var framer: SentenceFramer
    private var assembler: EpochAssembler
    /// Bytes of the stream before the next chunk.
    private var offset: Int64
    /// Offset and arrival of the `$` of an unfinished sentence.
    private var carriedStart: (offset: Int64, at: EventTime)
    private var bytes = 0

    /// - Parameter resume: what the decoder of an earlier run gave with its last epoch. The first byte decoded is then
    ///   the one at `resume.offset` of the stream, and times of day continue from `resume.time`.
    public init(settings: Settings = .init(), resume: ResumePoint = .start) {
        self.settings = settings
        framer = SentenceFramer(maximumLength: settings.maximumLength)
        assembler = EpochAssembler(settings: settings, resume: resume)
        offset = resume.offset
        carriedStart = (resume.offset, .zero)
    }

    /// Decodes the next bytes of the stream. `emit` gets each epoch that they close, and where decoding can continue after
    /// it. Never fails and never traps: what is unreadable is counted.
    ///
    /// - Parameter at: arrival of the bytes; not before that of earlier ones.
    public mutating func decode(_ bytes: Span<UInt8>, at: EventTime, _ emit: (Epoch, ResumePoint) -> Void) {
        var position = 0
        while let frame = framer.next(in: bytes, from: &position) {
            let end = offset + Int64(frame.chunkEnd)
            switch frame.holding {
            case .chunk:
                let place = EpochAssembler.Place(start: offset + Int64(frame.start), end: end, at: at, arrival: at)
                assembler.add(
                    bytes.extracting(frame.start..<frame.contentEnd), hasChecksum: frame.hasChecksum, place, emit)
            case .carried:
                let place = EpochAssembler.Place(start: carriedStart.offset, end: end, at: carriedStart.at, arrival: at)
                assembler.add(
                    framer.carried.span.extracting(0..<frame.contentEnd), hasChecksum: frame.hasChecksum, place, emit)
            case .raised:
                let place = EpochAssembler.Place(start: offset + Int64(frame.start), end: end, at: at, arrival: at)
                let length = frame.contentEnd - frame.start
                assembler.add(
                    framer.carried.span.extracting(0..<length), hasChecksum: frame.hasChecksum, place, emit)
            }
        }
        self.bytes += bytes.count
        offset += Int64(bytes.count)
        if framer.carriedCount > 0, framer.carriedCount <= bytes.count {
            carriedStart = (offset - Int64(framer.carriedCount), at)
        }
        if !bytes.isEmpty { assembler.bytesArrived(at: at) }
    }

    /// The bytes to come do not continue a sentence that the last ones began: it is counted as cut off.
    public mutating func datagramEnded() {
        framer.abandon()
    }

    /// Whether the sentence that starts at `start`, with `$` or `!`, is whole, has a good checksum, and ends the bytes.
    package static func endsWithSentence(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        SentenceFramer.endsWithSentence(bytes, from: start)
    }

    /// Live: closes the open epoch when the line has been silent since `nextDeadline`. Earlier calls do nothing.
    public mutating func deadlineReached(at now: EventTime, _ emit: (Epoch, ResumePoint) -> Void) {
        guard let deadline = nextDeadline, now >= deadline else { return }
        assembler.close(.silence, resumeAt: consumed, emit)
    }

    /// The stream ended (end of file, unplugged, connection closed): emits the last epoch.
    public mutating func endOfInput(_ emit: (Epoch, ResumePoint) -> Void) {
        assembler.close(.endOfInput, resumeAt: consumed, emit)
    }

    /// The stream starts again, as after an unplug: forgets the unfinished sentence, an open epoch (call `endOfInput`
    /// before, to get it) and what was learnt of the receiver's cycle. The date known so far is kept only when the last
    /// byte is less than 12 h old, because after that a time of day alone may be of another day.
    public mutating func reset(at now: EventTime) {
        framer.abandon()
        assembler.reset(at: now, offset: offset)
    }

    /// The log is over for now: emits epochs whose date was not certain yet, and leaves an open one open.
    public mutating func logEnded(_ emit: (Epoch, ResumePoint) -> Void) {
        assembler.logEnded(emit)
    }

    /// The end of a log was reached that grows from now on: as with `Settings.live` from the start. The bytes before
    /// must have been decoded with times of the same clock as those to come. Call ``logEnded(_:)`` before.
    public mutating func wentLive() {
        assembler.wentLive()
    }

    /// Live with an open epoch: 300 ms after the last byte, when its silence closes it. nil otherwise.
    public var nextDeadline: EventTime? { assembler.deadline }

    /// Running totals since the decoder was made.
    public var counters: NMEACounters {
        var counters = assembler.counters
        counters.bytes = bytes
        counters.checksumErrors = framer.defects.checksum
        counters.tooLong = framer.defects.tooLong
        counters.badBytes += framer.defects.badBytes
        counters.strayBytes = framer.defects.strayBytes
        return counters
    }

    /// The satellites of a complete list of the receiver, at 1 Hz at most a minute old; nil before the first.
    public var satellites: SatelliteView? { assembler.satellites.view }

    /// The host's clock, with which dates are compared where `Settings.rollover` repairs them; nil = it is not synchronised.
    public var hostTime: HostTime? {
        get { assembler.hostTime }
        set { assembler.hostTime = newValue }
    }

    /// What is known of the receiver's dates.
    public var receiverDates: ReceiverDates { assembler.receiverDates }

    /// The antenna as the receiver reported it last; nil when it never did, as most do not.
    public var antenna: AntennaState? { assembler.antenna }

    /// Where decoding can continue after the newest emitted epoch.
    public var resumePoint: ResumePoint { assembler.resumePoint }

    /// Median of the last intervals between timed epochs, by the receiver's time; nil before the second one.
    public var measuredInterval: Duration? { assembler.measuredInterval }

    /// The receiver's last sentence of a cycle is known, so that its epochs close without waiting for silence.
    public var hasLearnedLastSentence: Bool { assembler.hasLearnedLastSentence }

    /// Offset after everything decoded; an unfinished sentence is still to come.
    private var consumed: Int64 { framer.carriedCount > 0 ? carriedStart.offset : offset }
}
