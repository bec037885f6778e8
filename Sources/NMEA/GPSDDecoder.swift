import WaypostCore

/// Lines of gpsd in, epochs out: each exactly once, in arrival order.
///
/// gpsd reports an epoch of a receiver several times, each time with more of it (up to 32 times in recorded logs). They
/// are merged by device and time; another time, 300 ms without a line of the receiver and the end close an epoch. Bad
/// input is counted and skipped.
public struct GPSDDecoder: Sendable {
    /// What a line was about.
    public enum Line: Hashable, Sendable {
        /// A report of the receiver in use.
        case report
        /// The list of devices, in full.
        case deviceList
        /// gpsd opened or closed the device, or found out what it is.
        case device(path: String)
        /// What gpsd says about a request of ours.
        case error(String)
        /// Of another receiver, or of no use here.
        case other
        /// No JSON of gpsd's.
        case unreadable
    }

    private static let silence = Duration.milliseconds(300)
    /// Without a fix of the receiver in use for this long, or for three of its intervals where that is longer, another one
    /// that has a fix is used.
    private static let fixPatience = Duration.seconds(10)
    /// Without a time an epoch could go on for ever at a few reports a second.
    private static let longestEpoch = Duration.seconds(2)
    /// The same time again after this long is another epoch, of a receiver whose clock stands.
    private static let repeatAfter = Duration.milliseconds(900)
    /// HDOP and satellites of an older SKY object say nothing about a fix.
    private static let skyLife = Duration.seconds(10)
    /// Metres that gpsd multiplies HDOP with where the receiver reports no error of its own, and calls 95 %.
    private static let errorFactors = [19.0, 4.75]
    private static let productTolerance = 0.02
    /// R95 / R68 of a round error.
    private static let errorToAccuracy = 1.62

    /// Set = only this device counts; nil = the first that gives a fix, until ``deviceWentStale()``.
    private let configuredDevice: String?
    private let readsEverySurvey: Bool
    /// false = lines of a log.
    private let live: Bool
    private var dates: DateKeeper
    private var held = HeldEpochs()
    private var accuracy: AccuracyEstimator
    private var intervals = RecentIntervals()
    private var draft: GPSDDraft?
    /// Newest line of the receiver in use.
    private var newestLineAt: EventTime?
    /// What came last, by gpsd's own time, and when; nil = before a reconnect, after which gpsd may repeat it.
    private var emitted: (device: String?, time: UTCTime, at: EventTime?)?
    private var hdop: (device: String?, value: Double, at: EventTime)?
    private var satellitesUsed: (device: String?, value: Int, at: EventTime)?
    /// Their count alone, since the list is not read; nil = gpsd has not sent it.
    public private(set) var satellites: SatelliteView?
    private var estimate: (device: String?, time: UTCTime, accuracy: Double)?
    /// Arrival of the newest fix of the receiver in use; nil = it has given none.
    private var lastFixAt: EventTime?
    /// The receiver in use; nil until one reports.
    public private(set) var device: String?
    /// Newest report of a receiver that is not in use.
    public private(set) var othersHeardAt: EventTime?
    /// The time in that report; nil where it has none.
    package private(set) var othersTime: UTCTime?
    public private(set) var version: GPSDVersion?
    /// As gpsd listed them last, with what it said of each since.
    public private(set) var devices: [GPSDDevice] = []
    private var counts = NMEACounters()

    /// Lines count as sentences.
    public var counters: NMEACounters {
        var counters = counts
        counters.datesRefused = dates.refused
        return counters
    }

    /// As in ``NMEADecoder``.
    public var hostTime: HostTime? {
        get { dates.host }
        set { dates.host = newValue }
    }

    /// What is known of the receiver's dates.
    public var receiverDates: ReceiverDates { dates.state }

    /// - Parameter settings: range errors and rollover count; gpsd has read the sentences.
    public init(settings: NMEADecoder.Settings = .init(live: true), device: String? = nil) {
        configuredDevice = device
        self.device = device
        readsEverySurvey = settings.readsEverySurvey
        live = settings.live
        dates = DateKeeper(newest: nil, rollover: settings.rollover, known: settings.latestKnownTime)
        accuracy = AccuracyEstimator(rangeErrors: settings.rangeErrors, live: true)
    }

    /// While an epoch is open: when silence closes it.
    public var nextDeadline: EventTime? {
        guard let draft, let newestLineAt else { return nil }
        return min(newestLineAt + Self.silence, draft.at + Self.longestEpoch)
    }

    /// Arrival of the first line of the open epoch; nil while none is open.
    public var openEpochAt: EventTime? { draft?.at }

    /// Median of the last intervals between timed epochs, by the receiver's time; nil before the second one.
    public var measuredInterval: Duration? { intervals.median.map { .milliseconds($0) } }

    /// Decodes one line, with or without its end. `emit` gets the epoch that it closes. Never fails and never traps.
    ///
    /// - Parameter at: arrival of the line; not before that of earlier ones.
    public mutating func decode(_ line: [UInt8], at now: EventTime, _ emit: (Epoch) -> Void) -> Line {
        let read = decodeIfReadable(line, at: now, emit)
        if read == .unreadable {
            counts.bytes += line.count + 1
            counts.badBytes += 1
            counts.strayBytes += line.count
        }
        return read
    }

    /// As `decode`, for what may be no line of gpsd: that is not counted.
    package mutating func decodeIfReadable(_ line: [UInt8], at now: EventTime, _ emit: (Epoch) -> Void) -> Line {
        guard let report = GPSDReport(line: line, badFields: &counts.badFields) else { return .unreadable }
        counts.bytes += line.count + 1
        counts.sentences += 1
        return take(report, at: now, emit)
    }

    private mutating func take(_ report: GPSDReport, at now: EventTime, _ emit: (Epoch) -> Void) -> Line {
        switch report {
        case .poll(let reports):
            var line = Line.other
            for report in reports where take(report, at: now, emit) == .report { line = .report }
            return line
        case .version(let version):
            self.version = version
            return .other
        case .devices(let list):
            devices = list
            return .deviceList
        case .device(let device):
            update(device)
            return .device(path: device.path)
        case .tpv(let position): return received(position, at: now, emit)
        case .sky(let device, let hdop, let used, let inView):
            if let hdop, isUsed(device) { self.hdop = (device, hdop, now) }
            if let used, isUsed(device) { satellitesUsed = (device, used, now) }
            if let inView, isUsed(device) { satellites = SatelliteView(inView: inView) }
            return heard(device, at: now)
        case .gst(let device, let time, let accuracy):
            if isUsed(device) { estimate = (device, time, accuracy) }
            return heard(device, at: now)
        case .error(let message): return .error(message)
        case .other:
            counts.unknownTypes += 1
            return .other
        }
    }

    /// Closes the open epoch when the receiver has been silent since ``nextDeadline``. Earlier calls do nothing.
    public mutating func deadlineReached(at now: EventTime, _ emit: (Epoch) -> Void) {
        if let nextDeadline, now >= nextDeadline { close(emit) }
    }

    /// The connection ended: emits the last epoch.
    public mutating func endOfInput(_ emit: (Epoch) -> Void) {
        close(emit)
        guard !held.isEmpty else { return }
        release(dates.logEnded() ?? .expected, emit)
    }

    /// What was true of the gpsd before need not be true of the next: forgets its devices and what was learnt of the
    /// receiver. Call ``endOfInput(_:)`` before, to get an open epoch.
    public mutating func reset() {
        draft = nil
        emitted?.at = nil
        version = nil
        devices = []
        forgetReceiver()
    }

    /// A log has no time before its first dated fix: what came then came when that did.
    package mutating func clockStarted(at now: EventTime) {
        draft?.at = now
        hdop?.at = now
        satellitesUsed?.at = now
        newestLineAt = newestLineAt.map { _ in now }
        lastFixAt = lastFixAt.map { _ in now }
    }

    /// The receiver in use has sent nothing for too long: without a configured device another may replace it.
    public mutating func deviceWentStale() { forgetReceiver() }

    private mutating func forgetReceiver() {
        device = configuredDevice
        lastFixAt = nil
        othersHeardAt = nil
        othersTime = nil
        intervals = RecentIntervals()
        hdop = nil
        satellitesUsed = nil
        satellites = nil
        estimate = nil
    }

    private mutating func update(_ new: GPSDDevice) {
        guard let index = devices.firstIndex(where: { $0.path == new.path }) else {
            if devices.count < 32 { devices.append(new) }
            return
        }
        devices[index].driver = new.driver ?? devices[index].driver
        devices[index].isActive = new.isActive ?? devices[index].isActive
        devices[index].isNative = new.isNative
    }

    /// A report that names no device is of the only one that there is.
    private func isUsed(_ name: String?) -> Bool { device == nil || name == nil || name == device }

    private mutating func heard(_ name: String?, at now: EventTime) -> Line {
        guard isUsed(name) else {
            othersHeardAt = now
            return .other
        }
        newestLineAt = now
        return .report
    }

    private mutating func received(_ position: GPSDPosition, at now: EventTime, _ emit: (Epoch) -> Void) -> Line {
        let hasFix = position.mode ?? 0 >= 2
        if hasFix, !isUsed(position.device), configuredDevice == nil, isWithoutFix(at: now) {
            draft = nil
            forgetReceiver()
        }
        let line = heard(position.device, at: now)
        guard line == .report else {
            othersTime = position.time ?? othersTime
            return line
        }
        device = device ?? position.device
        if hasFix { lastFixAt = now }
        if let draft, draft.isContinued(by: position), now < draft.at + Self.longestEpoch {
            self.draft?.add(position)
            return line
        }
        if let emitted, position.time == emitted.time, position.device == emitted.device {
            guard let at = emitted.at, now >= at + Self.repeatAfter else {
                counts.late += 1
                return line
            }
            counts.repeats += 1
        }
        close(emit)
        draft = GPSDDraft(position, at: now)
        return line
    }

    /// The receiver in use has given no fix, or none for so long that another one is better.
    private func isWithoutFix(at now: EventTime) -> Bool {
        guard let lastFixAt else { return true }
        return now >= lastFixAt + max(Self.fixPatience, (measuredInterval ?? .zero) * 3)
    }

    private mutating func close(_ emit: (Epoch) -> Void) {
        guard let done = draft else { return }
        draft = nil
        if let time = done.time {
            if let emitted { intervals.add(time.milliseconds(since: emitted.time)) }
            emitted = (done.device, time, done.at)
        }
        var epoch = done.solution(
            hdop: hdop.flatMap { isFresh($0.device, $0.at, done) ? $0.value : nil },
            satellitesUsed: satellitesUsed.flatMap { isFresh($0.device, $0.at, done) ? $0.value : nil })
        let at = live ? done.at : nil
        var dating = DateKeeper.Dating()
        switch epoch {
        case .fix(var fix):
            if let time = done.time, ReceiverRange.days.contains(time.daysSince1970) {
                dating = dates.fixReceived(timeOfDay: fix.timeOfDay, day: time.daysSince1970, at: at)
            }
            fix.horizontalAccuracy = horizontalAccuracy(of: fix, done)
            epoch = .fix(fix)
        case .void(var void):
            if readsEverySurvey { void.satellitesInView = satellites?.inView }
            if let timeOfDay = void.timeOfDay { dating = dates.counted(timeOfDay: timeOfDay, at: at) }
            epoch = .void(void)
        }
        if let choice = dating.before { release(choice, emit) }
        guard held.isNeeded(for: dating) else { return finish(dating.dated(epoch), emit) }
        held.add(epoch, dating)
        if held.isFull, let choice = dates.confirmTrial() { release(choice, emit) }
    }

    private mutating func release(_ choice: DateKeeper.Choice, _ emit: (Epoch) -> Void) {
        for item in held.release(choice) { finish(item.epoch, emit) }
    }

    private mutating func finish(_ epoch: Epoch, _ emit: (Epoch) -> Void) {
        switch epoch {
        case .fix(let fix):
            counts.fixes += 1
            if fix.time == nil { counts.dateless += 1 }
        case .void: counts.voidEpochs += 1
        }
        emit(epoch)
    }

    private func isFresh(_ name: String?, _ at: EventTime, _ done: GPSDDraft) -> Bool {
        (name == nil || done.device == nil || name == done.device) && at + Self.skyLife >= done.at
    }

    /// GST of the epoch, the receiver's own estimate, HDOP times the range error, gpsd's guess: the first of them.
    private mutating func horizontalAccuracy(of fix: Fix, _ done: GPSDDraft) -> Double? {
        var reported: Double?
        if let estimate, estimate.time == done.time, estimate.device == done.device { reported = estimate.accuracy }
        let isNative = devices.first { $0.path == done.device }?.isNative ?? false
        if reported == nil, isNative, let error = done.horizontalError, !isProduct(error, fix.hdop) { reported = error }
        if let metres = accuracy.horizontalAccuracy(of: fix, reported: reported) { return metres }
        guard fix.hdop == nil, fix.quality != .manual, fix.quality != .simulated else { return nil }
        return done.horizontalError.map { $0 / Self.errorToAccuracy }
    }

    private func isProduct(_ error: Double, _ hdop: Double?) -> Bool {
        guard let hdop else { return false }
        return Self.errorFactors.contains { abs(error - $0 * hdop) <= Self.productTolerance * $0 * hdop }
    }
}
