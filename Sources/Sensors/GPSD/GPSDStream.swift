import WaypostCore
import WaypostNMEA

/// Lines of gpsd as they come: decodes them, and knows when the receiver behind it has gone.
///
/// gpsd does not report to its clients that a receiver was unplugged: its reports stop. So silence is timed here, and gpsd
/// is asked for its devices before a loss is reported, to give the reason.
///
/// Events are appended to `events`, to be delivered at the end of the call.
struct GPSDStream {
    /// How long gpsd may take to list its devices.
    private static let answerTime = Duration.seconds(1)

    private(set) var state = SourceState.opening
    private(set) var decoder: GPSDDecoder
    private let configuredDevice: String?
    private let stalenessMin: Duration
    /// Whether a device is gone from the host that gpsd runs on; false where that cannot be known.
    private let isUnplugged: (String) -> Bool
    private var arrivals = ArrivalInterval()
    private var stray = StrayBytes()
    private var isOpen = false
    private var isAnnounced = false
    private var restEnd: EventTime?
    /// When the receiver counts as lost unless a report comes before; nil = closed, or known to be lost.
    private var staleAt: EventTime?
    /// gpsd was asked for its devices because of silence: until then it may answer.
    private var answerDue: EventTime?
    /// How far apart epochs may be by what the receiver was asked for.
    var expectedInterval: Duration? {
        didSet {
            guard expectedInterval != oldValue, staleAt != nil, let lastReport else { return }
            staleAt = lastReport + staleness
        }
    }
    private var lastReport: EventTime?
    private var isProtocolNoted = false
    private var lastError: String?
    /// Set when there is something to ask gpsd.
    private(set) var wantsDevices = false

    init(
        settings: NMEADecoder.Settings, device: String?, staleness: Duration, isUnplugged: @escaping (String) -> Bool
    ) {
        decoder = GPSDDecoder(settings: settings, device: device)
        configuredDevice = device
        stalenessMin = max(staleness, .milliseconds(1))
        self.isUnplugged = isUnplugged
    }

    var isResting: Bool { restEnd != nil }
    var strayWords: String? { stray.words(StrayCause.gpsd) }

    /// The next of: end of the rest, end of an epoch by silence, staleness, an answer that does not come.
    var nextDeadline: EventTime? {
        guard isOpen else { return nil }
        return [restEnd, decoder.nextDeadline, staleAt, answerDue].compactMap { $0 }.min()
    }

    /// Reports that the first attempt is being made.
    mutating func opening(_ events: inout [SourceEvent]) { announce(.opening, &events) }

    mutating func opened(at now: EventTime, _ events: inout [SourceEvent]) {
        isOpen = true
        lastError = nil
        lastReport = nil
        staleAt = now + staleness
        announce(.opening, &events)
    }

    /// - Parameter reason: for people.
    mutating func lost(_ reason: String, at now: EventTime, _ events: inout [SourceEvent]) {
        closed(&events)
        announce(.lost(reason: reason), &events)
    }

    /// Nothing is expected until the connection is made again.
    mutating func fellAsleep(_ events: inout [SourceEvent]) { closed(&events) }

    private mutating func closed(_ events: inout [SourceEvent]) {
        guard isOpen else { return }
        isOpen = false
        var epochs: [Epoch] = []
        decoder.endOfInput { epochs.append($0) }
        hand(over: epochs, &events)
        decoder.reset()
        arrivals = ArrivalInterval()
        restEnd = nil
        staleAt = nil
        answerDue = nil
        wantsDevices = false
    }

    mutating func received(_ line: [UInt8], at now: EventTime, _ events: inout [SourceEvent]) {
        var epochs: [Epoch] = []
        let used = decoder.device
        let kind = decoder.decode(line, at: now) { epochs.append($0) }
        hand(over: epochs, &events)
        if stray.received(decoder.counters, at: now), let strayWords { events.append(.notice(strayWords)) }
        if let used, let device = decoder.device, device != used {
            arrivals = ArrivalInterval()
            events.append(.notice("\(device) is used: \(used) gives no fix"))
        }
        switch kind {
        case .report:
            lastReport = now
            staleAt = now + staleness
            answerDue = nil
            announce(.receiving, &events)
            rest(at: now)
        case .deviceList: devicesListed(at: now, &events)
        case .device(let path): deviceChanged(path, at: now, &events)
        case .error(let message): lastError = message
        case .other: noteProtocol(&events)
        case .unreadable: break
        }
    }

    /// The rest is over; read before anything else is done.
    mutating func restEnded(at now: EventTime) {
        if let restEnd, now >= restEnd { self.restEnd = nil }
    }

    mutating func hostTimeRead(_ time: HostTime?) { decoder.hostTime = time }

    mutating func askedForDevices() { wantsDevices = false }

    /// What time alone causes. Call it after everything that had arrived was read.
    mutating func deadlineReached(at now: EventTime, _ events: inout [SourceEvent]) {
        guard isOpen else { return }
        var epochs: [Epoch] = []
        decoder.deadlineReached(at: now) { epochs.append($0) }
        hand(over: epochs, &events)
        if let answerDue, now >= answerDue {
            self.answerDue = nil
            receiverLost(answered: false, &events)
        }
        if let staleAt, now >= staleAt {
            if configuredDevice == nil, let others = decoder.othersHeardAt, now < others + staleness {
                // Another receiver takes over with its next fix.
                decoder.deviceWentStale()
                self.staleAt = now + staleness
            } else {
                self.staleAt = nil
                answerDue = now + Self.answerTime
                wantsDevices = true
            }
        }
    }

    /// max(5 s, 3 × interval) with the default setting.
    private var staleness: Duration {
        let interval = max(arrivals.median ?? .zero, decoder.measuredInterval ?? .zero, expectedInterval ?? .zero)
        return max(stalenessMin, interval * 3)
    }

    private mutating func devicesListed(at now: EventTime, _ events: inout [SourceEvent]) {
        if answerDue != nil {
            answerDue = nil
            return receiverLost(answered: true, &events)
        }
        // On connecting: what is not there need not be waited for.
        let isThere = configuredDevice.map { path in decoder.devices.contains { $0.path == path } }
        guard isThere ?? !decoder.devices.isEmpty else { return receiverLost(answered: true, &events) }
    }

    private mutating func deviceChanged(_ path: String, at now: EventTime, _ events: inout [SourceEvent]) {
        guard path == configuredDevice ?? decoder.device ?? path,
            let device = decoder.devices.first(where: { $0.path == path })
        else { return }
        if device.isActive == false {
            receiverLost(answered: true, &events)
        } else if case .lost = state {
            staleAt = now + staleness
            announce(.opening, &events)
        }
    }

    /// - Parameter answered: gpsd's list of devices is new.
    private mutating func receiverLost(answered: Bool, _ events: inout [SourceEvent]) {
        let reason = answered ? lossReason : "gpsd no longer reports anything, not even its devices"
        var epochs: [Epoch] = []
        decoder.endOfInput { epochs.append($0) }
        hand(over: epochs, &events)
        decoder.deviceWentStale()
        arrivals = ArrivalInterval()
        staleAt = nil
        restEnd = nil
        announce(.lost(reason: reason), &events)
    }

    private var lossReason: String {
        let devices = decoder.devices
        let path = configuredDevice ?? decoder.device ?? (devices.count == 1 ? devices[0].path : nil)
        if let defect = devices.defect(of: path, isUnplugged: isUnplugged) { return defect }
        guard let path, let device = devices.first(where: { $0.path == path }) else {
            return "none of gpsd's devices (\(devices.map(\.path).joined(separator: ", "))) reports anything"
        }
        if device.isActive == false { return "gpsd has closed \(path): it was removed, or it ended" }
        if device.isActive == nil {
            return "gpsd cannot open \(path)\(lastError.map { ": \($0)" } ?? ": is it plugged in?")"
        }
        return "\(path) no longer sends anything to gpsd: is it unplugged?"
    }

    private mutating func noteProtocol(_ events: inout [SourceEvent]) {
        guard !isProtocolNoted, let version = decoder.version, version.major != GPSDVersion.knownMajor else { return }
        isProtocolNoted = true
        events.append(.notice(version.unknownProtocol))
    }

    private mutating func announce(_ new: SourceState, _ events: inout [SourceEvent]) {
        guard new != state || !isAnnounced else { return }
        state = new
        isAnnounced = true
        events.append(.stateChanged(new))
    }

    private mutating func hand(over epochs: [Epoch], _ events: inout [SourceEvent]) {
        for epoch in epochs {
            arrivals.add(epoch.at)
            events.append(.epoch(epoch, clock: .arrival(epoch.at), position: nil))
        }
    }

    /// gpsd reports an epoch in many lines; left alone for a moment it costs two or three wake-ups.
    private mutating func rest(at now: EventTime) {
        guard restEnd == nil, let deadline = decoder.nextDeadline, let began = decoder.openEpochAt else { return }
        // Without a measured interval the pause might run into the next epoch.
        guard let measured = decoder.measuredInterval, let arrived = arrivals.median else { return }
        let longest = began == now ? LiveStream.restMax : deadline.duration(since: now)
        let pause = min(longest, min(measured, arrived) / 2)
        if pause >= .milliseconds(5) { restEnd = now + pause }
    }
}
