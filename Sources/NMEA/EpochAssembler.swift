import Positioning

/// Assembles sentences into epochs by their time of day, and emits each once.
///
/// It never waits for a particular sentence: receivers send GGA before RMC or after it, RMC in each epoch and GGA in
/// every fourth, and the last sentence of a cycle may change. The learnt last sentence only closes a live epoch early.
struct EpochAssembler: Sendable {
    /// Where a sentence is in the stream.
    struct Place {
        /// Stream offset of `$`.
        var start: Int64
        /// Stream offset after the last byte.
        var end: Int64
        /// Arrival of `$`.
        var at: EventTime
        /// Arrival of the last byte.
        var arrival: EventTime
    }

    enum Closing {
        case nextEpoch, silence, lastSentence, endOfInput
    }

    /// A repeat of the emitted time of day is late only this soon after: a day later it is another epoch.
    private static let lateWithin = Duration.seconds(60)
    private static let silence = Duration.milliseconds(300)
    private static let longestKeptDate = Duration.seconds(12 * 3600)

    private var live: Bool
    private let allowMissingChecksum: Bool
    /// As in `SentenceAddress.talker`.
    private let talker: UInt16?
    private var draft = EpochDraft()
    private var dates: DateKeeper
    private var accuracy: AccuracyEstimator
    private var cycleEnd = CycleEnd()
    private var intervals = RecentIntervals()
    private var newestByteAt: EventTime?
    /// Time of day of the last emitted epoch, and when it began.
    private var emitted: (timeOfDay: Int, at: EventTime)?
    /// What closed the epoch before, while nothing is open after it.
    private var closed: Closing?
    /// Days since 1970-01-01 and time of day of a ZDA that shares its time with no position. The next fix takes it; a
    /// void epoch drops it, since the receiver's date may then be anything.
    private var dateAhead: (day: Int, timeOfDay: Int)?
    private(set) var resumePoint: ResumePoint
    private(set) var counters = NMEACounters()
    private(set) var satellites: SatelliteSurvey
    private(set) var antenna: AntennaState?

    init(settings: NMEADecoder.Settings, resume: ResumePoint) {
        live = settings.live
        allowMissingChecksum = settings.allowMissingChecksum
        talker = settings.talker.map { letters in
            letters.utf8.prefix(2).reversed().reduce(0) { $0 << 8 | UInt16($1) }
        }
        dates = DateKeeper(newest: resume.time, rollover: settings.rollover)
        accuracy = AccuracyEstimator(rangeErrors: settings.rangeErrors, live: settings.live)
        satellites = SatelliteSurvey(isThorough: settings.readsEverySurvey)
        resumePoint = resume
    }

    var hasLearnedLastSentence: Bool { cycleEnd.isLearned }
    var measuredInterval: Duration? { intervals.median.map { .milliseconds($0) } }

    var deadline: EventTime? {
        guard live, draft.makesEpoch || draft.timeOfDay != nil, let newestByteAt else { return nil }
        return newestByteAt + Self.silence
    }

    mutating func wentLive() {
        live = true
        accuracy.live = true
    }

    mutating func bytesArrived(at now: EventTime) { newestByteAt = now }

    mutating func reset(at now: EventTime, offset: Int64) {
        draft = EpochDraft()
        cycleEnd = CycleEnd()
        intervals = RecentIntervals()
        emitted = nil
        dateAhead = nil
        closed = nil
        satellites.reset(sentences: counters.sentences)
        antenna = nil
        if let newestByteAt, now.duration(since: newestByteAt) >= Self.longestKeptDate { dates.forget() }
        resumePoint = ResumePoint(offset: offset, time: dates.newest)
    }

    /// - Parameter bytes: from `$` to the byte before `*`.
    @inline(__always)
    mutating func add(
        _ bytes: Span<UInt8>, hasChecksum: Bool, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void
    ) {
        let address = SentenceAddress(bytes)
        let isRead = address.type.isRead
        if !hasChecksum {
            if !isRead {
                counters.unknownTypes += 1
                return
            }
            if !allowMissingChecksum {
                counters.missingChecksums += 1
                return
            }
        }
        counters.sentences += 1
        if isRead { read(bytes, address, place, emit) } else { report(bytes, address) }
    }

    /// Reports of the receiver that belong to no epoch.
    @inline(__always)
    private mutating func report(_ bytes: Span<UInt8>, _ address: SentenceAddress) {
        if address.type == .gsv {
            guard satellites.isDue(sentences: counters.sentences) else { return }
            satellites.add(bytes, talker: address.talker, fields: address.fields, sentences: counters.sentences)
        } else {
            counters.unknownTypes += 1
            if address.type == .txt, let state = AntennaState(text: bytes, fields: address.fields) { antenna = state }
        }
    }

    @inline(__always)
    private mutating func read(
        _ bytes: Span<UInt8>, _ address: SentenceAddress, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void
    ) {
        if let talker, address.type.role == .position, address.talker != talker { return }
        var cursor = FieldCursor(position: address.fields)
        var joined = false
        switch address.type {
        case .rmc:
            let rmc = RMC(bytes, &cursor)
            joined = join(rmc.time, .rmc, place, emit) { $0.add(rmc) }
        case .gga:
            let gga = GGA(bytes, &cursor)
            joined = join(gga.time, .gga, place, emit) { $0.add(gga) }
        case .gns:
            let gns = GNS(bytes, &cursor)
            joined = join(gns.time, .gns, place, emit) { $0.add(gns) }
        case .gll:
            let gll = GLL(bytes, &cursor)
            joined = join(gll.time, .gll, place, emit) { $0.add(gll) }
        case .gsa:
            let gsa = GSA(bytes, &cursor)
            joined = join(nil, .accessory, place, emit) { $0.add(gsa) }
        case .vtg:
            let vtg = VTG(bytes, &cursor)
            joined = join(nil, .accessory, place, emit) { $0.add(vtg) }
        case .zda:
            let zda = ZDA(bytes, &cursor)
            joined = join(zda.time, .accessory, place, emit) { $0.add(zda) }
        case .gst:
            let gst = ErrorEstimate(gst: bytes, &cursor)
            joined = join(gst.time, .accessory, place, emit) { $0.add(gst: gst) }
        case .gbs:
            let gbs = ErrorEstimate(gbs: bytes, &cursor)
            joined = join(gbs.time, .accessory, place, emit) { $0.add(gbs: gbs) }
        case .pgrme:
            let pgrme = ErrorEstimate(pgrme: bytes, &cursor)
            joined = join(nil, .accessory, place, emit) { $0.add(vendor: pgrme) }
        case .pubx00:
            let pubx = ErrorEstimate(pubx00: bytes, &cursor)
            joined = join(pubx.time, .accessory, place, emit) { $0.add(vendor: pubx) }
        case .gsv, .txt, .unknown: break
        }
        counters.badFields += cursor.badFields
        if live, joined, cycleEnd.sentenceAdded(address.packed), draft.makesEpoch {
            newestByteAt = place.arrival
            close(.lastSentence, resumeAt: place.end, emit)
        }
    }

    /// Makes the draft the epoch of a sentence, closing the one before where the sentence shows it complete, and adds the
    /// sentence to it.
    ///
    /// - Returns: false when the sentence joins nothing.
    @inline(__always)
    private mutating func join(
        _ timeOfDay: Int?, _ kind: EpochDraft.Contents, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void,
        _ add: (inout EpochDraft) -> Void
    ) -> Bool {
        guard timeOfDay != nil && draft.timeOfDay == timeOfDay || beginOther(timeOfDay, kind, place, emit) else {
            return false
        }
        draft.contents.insert(kind)
        add(&draft)
        return true
    }

    private mutating func beginOther(
        _ timeOfDay: Int?, _ kind: EpochDraft.Contents, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void
    ) -> Bool {
        if let timeOfDay {
            if draft.timeOfDay != nil || draft.makesEpoch {
                close(.nextEpoch, resumeAt: place.start, emit)
            } else if closed != .nextEpoch, let emitted, emitted.timeOfDay == timeOfDay,
                place.at < emitted.at + Self.lateWithin
            {
                return refuseLate()
            }
            open(at: place)
            draft.timeOfDay = timeOfDay
            return true
        }
        if kind == .accessory {
            if draft.isEmpty, !leadsAnEpoch(place) { return false }
        } else if !draft.contents.isDisjoint(with: kind) {
            // A second one of its kind, without a time: a new cycle of a receiver that knows no time now.
            close(.nextEpoch, resumeAt: place.start, emit)
        } else if kind == .rmc, draft.timeOfDay != nil {
            // It ends the cycle of receivers that send GNS or GGA with a time before it; its V is not theirs.
            close(.nextEpoch, resumeAt: place.end, emit)
            return false
        }
        open(at: place)
        return true
    }

    /// Some receivers send GSA before RMC: after a pause a sentence without a time is held for the epoch to come. At
    /// the beginning of a stream it is as likely the end of an epoch whose time is not known.
    private mutating func leadsAnEpoch(_ place: Place) -> Bool {
        switch closed {
        case .silence: return true
        case .lastSentence:
            if let newestByteAt, place.at < newestByteAt + Self.silence { return refuseLate() }
            return true
        case .nextEpoch, .endOfInput, nil: return false
        }
    }

    private mutating func refuseLate() -> Bool {
        counters.late += 1
        cycleEnd.forget()
        return false
    }

    @inline(__always)
    private mutating func open(at place: Place) {
        if draft.isEmpty {
            draft.at = place.at
            closed = nil
        }
    }

    /// Ends the open epoch and emits what it came to.
    mutating func close(_ closing: Closing, resumeAt offset: Int64, _ emit: (Epoch, ResumePoint) -> Void) {
        guard !draft.isEmpty else { return }
        let done = draft
        draft = EpochDraft()
        closed = closing
        if live { cycleEnd.epochClosed() }
        guard done.makesEpoch else {
            if let day = done.day, let timeOfDay = done.timeOfDay { dateAhead = (day, timeOfDay) }
            return
        }
        if let timeOfDay = done.timeOfDay {
            if let emitted {
                let interval = timeOfDay - emitted.timeOfDay
                intervals.add(Int64(interval < 0 ? interval + 86_400_000 : interval))
            }
            emitted = (timeOfDay, done.at)
        }
        var epoch = done.solution
        switch epoch {
        case .fix(var fix):
            if let dateAhead { _ = dates.fixReceived(timeOfDay: dateAhead.timeOfDay, day: dateAhead.day) }
            let dating = dates.fixReceived(timeOfDay: fix.timeOfDay, day: done.day)
            fix.time = dating.time
            fix.rollover = dating.rollover
            fix.horizontalAccuracy = accuracy.horizontalAccuracy(of: fix, reported: done.reportedAccuracy)
            counters.fixes += 1
            if fix.time == nil { counters.dateless += 1 }
            epoch = .fix(fix)
        case .void(var void):
            if satellites.isThorough { void.satellitesInView = satellites.view?.inView }
            void.time = void.timeOfDay.flatMap { dates.counted(timeOfDay: $0) }
            counters.voidEpochs += 1
            epoch = .void(void)
        }
        dateAhead = nil
        resumePoint = ResumePoint(offset: offset, time: dates.newest)
        emit(epoch, resumePoint)
    }
}
