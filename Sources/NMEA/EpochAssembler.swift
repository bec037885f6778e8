import WaypostCore

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
    /// An accessory sentence whose time is closer than this to that of an epoch may be of it: milliseconds.
    private static let outputDelay = 1000

    private var live: Bool
    private let allowMissingChecksum: Bool
    /// As in `SentenceAddress.talker`.
    private let talker: UInt16?
    /// The open epoch; empty until its first position.
    private var draft = EpochDraft()
    /// What came since, or before it, with a time that is not its own: the next position shows whether it is of this
    /// epoch, of the next, or of another source on the line.
    private var pending = EpochDraft()
    private var dates: DateKeeper
    private var held = HeldEpochs()
    private var accuracy: AccuracyEstimator
    private var cycleEnd = CycleEnd()
    private var intervals = RecentIntervals()
    private var newestByteAt: EventTime?
    /// Time of day of the last emitted epoch, when it began, the kinds of its sentences, and how often it came again in
    /// itself.
    private var emitted: (timeOfDay: Int, at: EventTime, contents: EpochDraft.Contents, repeats: Int)?
    /// What closed the epoch before, while nothing is open after it.
    private var closed: Closing?
    /// Of a ZDA that shares its time with no position. The next fix takes it; a void epoch drops it, since the receiver's
    /// date may then be anything.
    private var clockAhead: ClockReading?
    private(set) var resumePoint: ResumePoint
    private(set) var satellites: SatelliteSurvey
    private(set) var antenna: AntennaState?
    private var counts = NMEACounters()

    init(settings: NMEADecoder.Settings, resume: ResumePoint) {
        live = settings.live
        allowMissingChecksum = settings.allowMissingChecksum
        talker = settings.talker.map { letters in
            letters.utf8.prefix(2).reversed().reduce(0) { $0 << 8 | UInt16($1) }
        }
        dates = DateKeeper(newest: resume.time, rollover: settings.rollover, known: settings.latestKnownTime)
        accuracy = AccuracyEstimator(rangeErrors: settings.rangeErrors, live: settings.live)
        satellites = SatelliteSurvey(isThorough: settings.readsEverySurvey)
        resumePoint = resume
    }

    var counters: NMEACounters {
        var counters = counts
        counters.datesRefused = dates.refused
        return counters
    }

    var receiverDates: ReceiverDates { dates.state }
    var hostTime: HostTime? {
        get { dates.host }
        set { dates.host = newValue }
    }
    var hasLearnedLastSentence: Bool { cycleEnd.isLearned }
    var measuredInterval: Duration? { intervals.median.map { .milliseconds($0) } }

    var deadline: EventTime? {
        guard live, draft.makesEpoch, let newestByteAt else { return nil }
        return newestByteAt + Self.silence
    }

    mutating func wentLive() {
        live = true
        accuracy.live = true
    }

    mutating func bytesArrived(at now: EventTime) { newestByteAt = now }

    mutating func reset(at now: EventTime, offset: Int64) {
        draft = EpochDraft()
        pending = EpochDraft()
        cycleEnd = CycleEnd()
        intervals = RecentIntervals()
        emitted = nil
        clockAhead = nil
        closed = nil
        satellites.reset(sentences: counts.sentences)
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
                counts.unknownTypes += 1
                return
            }
            if !allowMissingChecksum {
                counts.missingChecksums += 1
                return
            }
        }
        counts.sentences += 1
        if isRead { read(bytes, address, place, emit) } else { report(bytes, address) }
    }

    /// Reports of the receiver that belong to no epoch.
    @inline(__always)
    private mutating func report(_ bytes: Span<UInt8>, _ address: SentenceAddress) {
        if address.type == .gsv {
            guard satellites.isDue(sentences: counts.sentences) else { return }
            satellites.add(bytes, talker: address.talker, fields: address.fields, sentences: counts.sentences)
        } else {
            counts.unknownTypes += 1
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
            let saysNothing = !rmc.isValid || rmc.isNull
            joined = join(position: .rmc, rmc.time, saysNothing, address.talker, place, emit) { $0.add(rmc) }
        case .gga:
            let gga = GGA(bytes, &cursor)
            let saysNothing = gga.worth < 2
            joined = join(position: .gga, gga.time, saysNothing, address.talker, place, emit) { $0.add(gga) }
        case .gns:
            let gns = GNS(bytes, &cursor)
            let saysNothing = gns.quality == nil || gns.isNull
            joined = join(position: .gns, gns.time, saysNothing, address.talker, place, emit) { $0.add(gns) }
        case .gll:
            let gll = GLL(bytes, &cursor)
            let saysNothing = !gll.isValid || gll.coordinate?.isNull ?? false
            joined = join(position: .gll, gll.time, saysNothing, address.talker, place, emit) { $0.add(gll) }
        case .gsa:
            let gsa = GSA(bytes, &cursor)
            joined = join(accessory: nil, place, emit) { $0.add(gsa, talker: address.talker) }
        case .vtg:
            let vtg = VTG(bytes, &cursor)
            joined = join(accessory: nil, place, emit) { $0.add(vtg) }
        case .zda:
            let zda = ZDA(bytes, &cursor)
            joined = join(accessory: zda.time, place, emit) { $0.add(zda) }
        case .gst:
            let gst = ErrorEstimate(gst: bytes, &cursor)
            joined = join(accessory: gst.time, place, emit) { $0.add(gst: gst) }
        case .gbs:
            let gbs = ErrorEstimate(gbs: bytes, &cursor)
            joined = join(accessory: gbs.time, place, emit) { $0.add(gbs: gbs) }
        case .pgrme:
            let pgrme = ErrorEstimate(pgrme: bytes, &cursor)
            joined = join(accessory: nil, place, emit) { $0.add(vendor: pgrme) }
        case .pubx00:
            let pubx = ErrorEstimate(pubx00: bytes, &cursor)
            joined = join(accessory: pubx.time, place, emit) { $0.add(vendor: pubx) }
        case .gsv, .txt, .unknown: break
        }
        counts.badFields += cursor.badFields
        if live, joined, cycleEnd.sentenceAdded(address.packed), draft.makesEpoch {
            newestByteAt = place.arrival
            close(.lastSentence, resumeAt: place.end, emit)
        }
    }

    /// Where a sentence belongs.
    private enum Home { case draft, pending, nowhere }

    /// Adds a sentence that makes no epoch. Its time never closes one.
    ///
    /// - Returns: false when it joins nothing.
    @inline(__always)
    private mutating func join(
        accessory timeOfDay: Int?, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void,
        _ add: (inout Accessories) -> Void
    ) -> Bool {
        var home = Home.draft
        if !pending.isEmpty || (timeOfDay != nil ? draft.timeOfDay != timeOfDay : !draft.makesEpoch || draft.isOver) {
            home = homeOfAccessory(timeOfDay, place, emit)
        }
        switch home {
        case .draft: add(&draft.accessories)
        case .pending:
            pending.contents.insert(.accessory)
            add(&pending.accessories)
        case .nowhere: return false
        }
        return true
    }

    private mutating func homeOfAccessory(
        _ timeOfDay: Int?, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void
    ) -> Home {
        guard let timeOfDay else {
            if !pending.isEmpty { return .pending }
            guard !draft.makesEpoch, leadsAnEpoch(place) else { return .nowhere }
            hold(nil, place)
            return .pending
        }
        if pending.makesEpoch {
            if pending.timeOfDay == timeOfDay { return .pending }
            // The receiver still sends the open epoch, or this is of another.
            if let open = draft.timeOfDay, Self.isNear(timeOfDay, open) { takeBack() } else { promote(emit) }
            if draft.timeOfDay == timeOfDay { return .draft }
        }
        guard pending.isEmpty else {
            if pending.timeOfDay == nil { pending.timeOfDay = timeOfDay }
            return .pending
        }
        if !draft.makesEpoch, isLate(accessory: timeOfDay, place) {
            refuseLate()
            return .nowhere
        }
        hold(timeOfDay, place)
        return .pending
    }

    private func isLate(accessory timeOfDay: Int, _ place: Place) -> Bool {
        guard closed != .nextEpoch, let emitted, place.at < emitted.at + Self.lateWithin else { return false }
        if emitted.timeOfDay == timeOfDay { return true }
        return closed == .lastSentence && !hasPaused(place) && Self.isNear(timeOfDay, emitted.timeOfDay)
    }

    /// Makes the draft the epoch of a position, closing the one before where the sentence shows it complete, and adds the
    /// sentence to it.
    ///
    /// - Parameter saysNothing: it is void, or at 0°/0°: perhaps of another source on the line, between two sentences of a
    ///   position.
    /// - Returns: false when the sentence is not of the receiver's cycle.
    @inline(__always)
    private mutating func join(
        position kind: EpochDraft.Contents, _ timeOfDay: Int?, _ saysNothing: Bool, _ talker: UInt16, _ place: Place,
        _ emit: (Epoch, ResumePoint) -> Void, _ add: (inout EpochDraft) -> Void
    ) -> Bool {
        if timeOfDay != nil && draft.timeOfDay == timeOfDay {
            if !pending.isEmpty { takeBack() }
            draft.isOver = false
        } else {
            switch homeOfPosition(kind, timeOfDay, saysNothing, place, emit) {
            case .draft: break
            case .pending:
                if pending.count(kind, talker: talker) {
                    pending.contents.insert(kind)
                    add(&pending)
                    return false
                }
                promote(emit)
            case .nowhere: return false
            }
        }
        if !draft.count(kind, talker: talker) {
            close(.nextEpoch, resumeAt: place.start, emit)
            open(timeOfDay, place)
            _ = draft.count(kind, talker: talker)
        }
        draft.contents.insert(kind)
        add(&draft)
        return true
    }

    private mutating func homeOfPosition(
        _ kind: EpochDraft.Contents, _ timeOfDay: Int?, _ saysNothing: Bool, _ place: Place,
        _ emit: (Epoch, ResumePoint) -> Void
    ) -> Home {
        guard draft.makesEpoch else {
            if let timeOfDay, isLate(kind, timeOfDay, place) {
                refuseLate()
                return .nowhere
            }
            // It ends the cycle whose ZDA came before it; its V is not that of the position to come.
            if timeOfDay == nil, kind == .rmc, pending.timeOfDay != nil { return .nowhere }
            openWithPending(timeOfDay, place)
            return .draft
        }
        guard let timeOfDay else { return homeOfPositionWithoutTime(kind, saysNothing, place, emit) }
        if pending.makesEpoch {
            if saysNothing, pending.timeOfDay == timeOfDay { return .pending }
        } else if saysNothing, draft.timeOfDay != nil, draft.claimsFix {
            if !pending.isEmpty, pending.timeOfDay != timeOfDay, isOfDraft(pending) { settlePending() }
            if pending.isEmpty { hold(timeOfDay, place) }
            if pending.timeOfDay == timeOfDay { return .pending }
        }
        advance(to: timeOfDay, place, emit)
        return .draft
    }

    private mutating func homeOfPositionWithoutTime(
        _ kind: EpochDraft.Contents, _ saysNothing: Bool, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void
    ) -> Home {
        if pending.makesEpoch {
            if pending.timeOfDay == nil, pending.contents.isDisjoint(with: kind) { return .pending }
            promote(emit)
        } else if !pending.isEmpty {
            if isOfDraft(pending) {
                settlePending()
            } else {
                if kind == .rmc { return .nowhere }
                advance(to: nil, place, emit)
                return .draft
            }
        }
        if draft.contents.isDisjoint(with: kind) {
            // It ends the cycle of receivers that send GNS or GGA with a time before it; its V is not theirs.
            guard kind == .rmc, draft.timeOfDay != nil else { return .draft }
            draft.isOver = true
            return .nowhere
        }
        // A second one of its kind, without a time: a new cycle of a receiver that knows no time now.
        if saysNothing, draft.timeOfDay != nil, draft.claimsFix {
            hold(nil, place)
            return .pending
        }
        close(.nextEpoch, resumeAt: place.start, emit)
        open(nil, place)
        return .draft
    }

    /// Another epoch begins with a position of this time.
    private mutating func advance(to timeOfDay: Int?, _ place: Place, _ emit: (Epoch, ResumePoint) -> Void) {
        if pending.makesEpoch {
            promote(emit)
            if draft.timeOfDay == timeOfDay { return }
        }
        guard !pending.isEmpty else {
            close(.nextEpoch, resumeAt: place.start, emit)
            return open(timeOfDay, place)
        }
        if pending.timeOfDay != timeOfDay, isOfDraft(pending) { settlePending() }
        let lead = pending
        pending = EpochDraft()
        close(.nextEpoch, resumeAt: lead.isEmpty ? place.start : lead.start, emit)
        pending = lead
        openWithPending(timeOfDay, place)
    }

    /// What is pending was no interruption: it is the epoch after the open one.
    private mutating func promote(_ emit: (Epoch, ResumePoint) -> Void) {
        let next = pending
        pending = EpochDraft()
        close(.nextEpoch, resumeAt: next.start, emit)
        draft = next
        (draft.clockAhead, clockAhead) = (clockAhead, nil)
        closed = nil
    }

    /// What is pending came between the sentences of one position.
    private mutating func takeBack() {
        draft.accessories.add(pending.accessories)
        counts.straySentences += pending.positions
        pending = EpochDraft()
    }

    /// What is pending is of the open epoch: it came a little later than what it is about.
    private mutating func settlePending() {
        draft.accessories.add(pending.accessories)
        pending = EpochDraft()
    }

    private func isOfDraft(_ pending: EpochDraft) -> Bool {
        guard let timeOfDay = draft.timeOfDay, let other = pending.timeOfDay else { return false }
        return Self.isNear(other, timeOfDay)
    }

    private static func isNear(_ timeOfDay: Int, _ other: Int) -> Bool {
        let apart = (timeOfDay - other).magnitude
        return min(apart, 86_400_000 - min(apart, 86_400_000)) < outputDelay
    }

    private mutating func hold(_ timeOfDay: Int?, _ place: Place) {
        pending = EpochDraft()
        (pending.timeOfDay, pending.at, pending.start) = (timeOfDay, place.at, place.start)
    }

    @inline(__always)
    private mutating func open(_ timeOfDay: Int?, _ place: Place) {
        // `close` has left an empty draft.
        (draft.timeOfDay, draft.at, draft.start) = (timeOfDay, place.at, place.start)
        (draft.clockAhead, clockAhead) = (clockAhead, nil)
        closed = nil
    }

    /// - Parameter timeOfDay: of the position with which the epoch begins.
    private mutating func openWithPending(_ timeOfDay: Int?, _ place: Place) {
        let lead = pending
        pending = EpochDraft()
        let isOfEpoch = lead.timeOfDay.map { time in timeOfDay.map { Self.isNear(time, $0) } ?? false } ?? true
        if !lead.isEmpty, !isOfEpoch { clockAhead = lead.accessories.clock ?? clockAhead }
        open(timeOfDay, place)
        guard !lead.isEmpty, isOfEpoch else { return }
        (draft.at, draft.start, draft.accessories) = (lead.at, lead.start, lead.accessories)
        draft.contents = .accessory
    }

    /// Some receivers send GSA before RMC: after a pause a sentence without a time is held for the epoch to come. At
    /// the beginning of a stream it is as likely the end of an epoch whose time is not known.
    private mutating func leadsAnEpoch(_ place: Place) -> Bool {
        switch closed {
        case .silence: return true
        case .lastSentence:
            if !hasPaused(place) {
                refuseLate()
                return false
            }
            return true
        case .nextEpoch, .endOfInput, nil: return false
        }
    }

    private func hasPaused(_ place: Place) -> Bool { newestByteAt.map { place.at >= $0 + Self.silence } ?? true }

    /// Of the emitted epoch. After a pause a second sentence of its kind is the same epoch again.
    private func isLate(_ kind: EpochDraft.Contents, _ timeOfDay: Int, _ place: Place) -> Bool {
        guard closed != .nextEpoch, let emitted, emitted.timeOfDay == timeOfDay, place.at < emitted.at + Self.lateWithin
        else { return false }
        return emitted.contents.isDisjoint(with: kind) || !hasPaused(place)
    }

    private mutating func refuseLate() {
        counts.late += 1
        cycleEnd.forget()
    }

    /// Ends the open epoch and emits what it came to.
    mutating func close(_ closing: Closing, resumeAt offset: Int64, _ emit: (Epoch, ResumePoint) -> Void) {
        if draft.makesEpoch { emitDraft(closing, resumeAt: offset, emit) }
        if case .endOfInput = closing { logEnded(emit) }
    }

    private mutating func emitDraft(_ closing: Closing, resumeAt offset: Int64, _ emit: (Epoch, ResumePoint) -> Void) {
        var offset = offset
        if closing != .nextEpoch, !pending.isEmpty {
            if pending.makesEpoch {
                promote(emit)
            } else if isOfDraft(pending) {
                settlePending()
            } else {
                offset = pending.start
            }
        }
        closed = closing
        if live { cycleEnd.epochClosed() }
        let disagreement = draft.resolve()
        if let timeOfDay = draft.timeOfDay { timed(timeOfDay) }
        if var fix = draft.fix {
            if !disagreement.isEmpty { count(disagreement) }
            fix.horizontalAccuracy = accuracy.horizontalAccuracy(
                of: fix, reported: draft.accessories.reportedAccuracy)
            let dating = dates.fixReceived(timeOfDay: fix.timeOfDay, day: draft.day, at: live ? fix.at : nil)
            (fix.time, fix.rollover) = (dating.time, dating.rollover)
            draft = EpochDraft()
            pass(.fix(fix), dating, offset, emit)
        } else {
            var void = draft.void
            if satellites.isThorough { void.satellitesInView = satellites.view?.inView }
            let dating = void.timeOfDay.map { dates.counted(timeOfDay: $0, at: live ? void.at : nil) }
            void.time = dating?.time
            draft = EpochDraft()
            pass(.void(void), dating ?? DateKeeper.Dating(), offset, emit)
        }
    }

    private mutating func timed(_ timeOfDay: Int) {
        var repeats = draft.repeats
        if let emitted {
            if emitted.timeOfDay == timeOfDay, draft.at < emitted.at + Self.lateWithin {
                counts.repeats += emitted.repeats + 1 + repeats
                repeats = 0
            } else {
                let interval = timeOfDay - emitted.timeOfDay
                intervals.add(Int64(interval < 0 ? interval + 86_400_000 : interval))
            }
        }
        emitted = (timeOfDay, draft.at, draft.contents, repeats)
    }

    private mutating func count(_ disagreement: EpochDraft.Disagreement) {
        if disagreement.contains(.nullPosition) { counts.straySentences += 1 }
        if disagreement.contains(.quality) { counts.unknownQualities += 1 }
        if disagreement.contains(.mode) { counts.modeConflicts += 1 }
    }

    /// Emits an epoch, or holds it until its date is certain.
    ///
    /// - Parameter epoch: with the time that is expected.
    @inline(__always)
    private mutating func pass(
        _ epoch: Epoch, _ dating: DateKeeper.Dating, _ offset: Int64, _ emit: (Epoch, ResumePoint) -> Void
    ) {
        if let choice = dating.before { release(choice, emit) }
        guard held.isNeeded(for: dating) else { return finish(epoch, dating.time, offset, emit) }
        held.add(epoch, dating, offset)
        if held.isFull, let choice = dates.confirmTrial() { release(choice, emit) }
    }

    private mutating func release(_ choice: DateKeeper.Choice, _ emit: (Epoch, ResumePoint) -> Void) {
        for item in held.release(choice) { finish(item.epoch, item.time, item.offset, emit) }
    }

    /// Emits what waits for its date.
    mutating func logEnded(_ emit: (Epoch, ResumePoint) -> Void) {
        guard !held.isEmpty else { return }
        release(dates.logEnded() ?? .expected, emit)
    }

    /// - Parameter time: of the epoch.
    @inline(__always)
    private mutating func finish(
        _ epoch: Epoch, _ time: UTCTime?, _ offset: Int64, _ emit: (Epoch, ResumePoint) -> Void
    ) {
        resumePoint.offset = offset
        if case .fix = epoch {
            counts.fixes += 1
            if let time { resumePoint.time = time } else { counts.dateless += 1 }
        } else {
            counts.voidEpochs += 1
        }
        emit(epoch, resumePoint)
    }
}
