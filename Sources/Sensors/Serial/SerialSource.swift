import Glibc
import WaypostCore
import WaypostNMEA

/// A receiver on a serial line or a USB port that looks like one.
///
/// End of file is how an unplugged adapter shows itself. The line is then closed at once and opened again after 1 s,
/// doubling to 10 s, without regard to hotplug events: on a host without udevd there are none. An event only shortens
/// the wait.
package final class SerialSource: FixSource {
    package let name: String
    /// The speed at which sentences with good checksums have arrived; nil until then. Worth remembering.
    package private(set) var foundSpeed: LineSpeed?

    private let settings: SerialSettings
    /// What is plugged in.
    private let devices: () -> [SerialDevice]
    private var live: LiveStream
    private var control: ReceiverControl
    private var port: SerialPort?
    private var hunt: BaudHunt?
    private var bufferTime: Duration?
    private var retry = RetryDelay(from: .seconds(1), to: .seconds(10))
    private var retryAt: EventTime?
    /// Since when an open is refused for lack of permission, after a time without the device.
    private var deniedSince: EventTime?
    private var wasAbsent = false
    private var owner = LineOwner()
    /// What the last attempt tried to open.
    private var node: String?

    package convenience init(settings: SerialSettings) {
        self.init(settings: settings, devices: SerialDevice.all)
    }

    init(settings: SerialSettings, devices: @escaping () -> [SerialDevice]) {
        self.settings = settings
        self.devices = devices
        name = "serial \(settings.device)"
        live = LiveStream(settings: settings.decoder, staleness: settings.staleness, strayCause: StrayCause.serial)
        control = ReceiverControl(profile: settings.receiver)
    }

    /// While gpsd is asked about the line, which takes a moment, only its answer is awaited: the bytes of the line stay
    /// in the kernel's buffer.
    package var descriptor: Int32? {
        if let inquiry = owner.inquiry { return inquiry.descriptor }
        guard !live.isResting else { return nil }
        return fd
    }

    package var awaitsWritability: Bool { owner.inquiry?.isConnecting ?? false }

    package var nextDeadline: EventTime? {
        let line = fd == nil ? [retryAt] : [live.nextDeadline, hunt?.nextDeadline, control.nextDeadline]
        return (line + [owner.inquiry?.deadline]).compactMap { $0 }.min()
    }

    package var counters: NMEACounters { live.counters }
    package var satellites: SatelliteView? { live.satellites }
    package var antenna: AntennaState? { live.antenna }
    package var dates: ReceiverDates { live.dates }
    package func hostTimeRead(_ time: HostTime?) { live.hostTimeRead(time) }

    package var rate: ReceiverRate? { control.rate }

    package var remark: String? { owner.remark }
    package var stray: String? { live.strayWords }
    package var strayCause: String { StrayCause.serial }
    package var unreadableWords: String { StrayCause.unreadable(at: settings.speed) }

    package func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            live.opening(&events)
            open(at: now, &events)
        }
    }

    package func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            if let answer = owner.inquiry?.answer() { ownerAnswered(answer, at: now, &events) }
            if !read(at: now, &events), let port, port.isHungUp { unplugged("hung up", at: now, &events) }
        }
    }

    package func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            if let inquiry = owner.inquiry, now >= inquiry.deadline { ownerAnswered(false, at: now, &events) }
            if fd == nil {
                if let retryAt, now >= retryAt { open(at: now, &events) }
                return
            }
            live.restEnded(at: now)
            read(at: now, &events)
            live.deadlineReached(at: now, &events)
            if settings.speed == .auto, hunt == nil, live.state == .unreadable { beginHunt(at: now) }
            if let speed = hunt?.deadlineReached(at: now) { set(speed, at: now, &events) }
            carryOut(control.deadlineReached(at: now), &events)
        }
    }

    package func setAsleep(
        _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
    ) -> Bool {
        act(at: now, deliver) { events in
            switch live.setAsleep(asleep, at: now, &events) {
            case .close:
                for command in control.standby(for: until.map { $0.duration(since: now) }) { port?.write(command) }
                close()
            case .open:
                retry.reset()
                open(at: now, &events)
            case nil: break
            }
        }
        return true
    }

    package func setInterval(_ interval: Duration, at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { carryOut(control.intervalWanted(interval, at: now), &$0) }
    }

    package func retryNow(at now: EventTime) {
        if retryAt != nil { retryAt = now }
    }

    package func deviceChanged(_ event: DeviceEvent?, at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            if let event, event.action == "remove" {
                if let port, port.isNamed(by: event) { unplugged("removed", at: now, &events) }
            } else if port == nil, retryAt != nil {
                // A node that has just appeared may not be open to us yet.
                wasAbsent = true
                deniedSince = nil
                retry.reset()
                open(at: now, &events)
            }
        }
    }

    package func close() {
        release()
        retryAt = nil
        owner = LineOwner()
    }

    private var fd: Int32? { port?.fd }

    private func act(at now: EventTime, _ deliver: (SourceEvent) -> Void, _ body: (inout [SourceEvent]) -> Void) {
        var events: [SourceEvent] = []
        body(&events)
        judge(at: now, &events)
        for event in events { deliver(event) }
    }

    private func release() {
        port = nil
        hunt = nil
        control.disconnected()
        live.expectedInterval = nil
    }
}

// Opening and losing the line.
extension SerialSource {
    private func open(at now: EventTime, _ events: inout [SourceEvent]) {
        retryAt = nil
        do throws(SourceProblem) {
            node = nil
            let node = try settings.device.node(among: devices)
            self.node = node
            let port = try SerialPort(path: node)
            let speed: LineSpeed?
            switch settings.speed {
            case .fixed(let fixed): speed = fixed
            case .auto:
                hunt = BaudHunt(remembered: foundSpeed ?? settings.rememberedSpeed, current: port.speed, at: now)
                speed = hunt?.speed
            }
            try configure(port, speed)
            self.port = port
            deniedSince = nil
            wasAbsent = false
            owner = LineOwner()
            live.opened(at: now, &events)
            for command in control.waking { port.write(command) }
        } catch {
            failed(error, at: now, &events)
        }
    }

    private func failed(_ problem: SourceProblem, at now: EventTime, _ events: inout [SourceEvent]) {
        release()
        retryAt = now + retry.next()
        if problem.code == EACCES, wasAbsent {
            // A node that has just appeared belongs to root until udev has run its rules.
            let since = deniedSince ?? now
            deniedSince = since
            if now < since + .seconds(5) {
                retryAt = now + .seconds(1)
                return
            }
        }
        if problem.code != EACCES { wasAbsent = true }
        if problem.code == EBUSY {
            if let known = owner.problem { return live.lost(known, at: now, &events) }
            if let node, owner.ask([node], settings.gpsd, at: now) {
                owner.pending = problem.description
                return
            }
        }
        live.lost(problem.description, at: now, &events)
    }

    private func unplugged(_ how: String, at now: EventTime, _ events: inout [SourceEvent]) {
        // A descriptor whose device is gone stays readable for ever: close it at once.
        release()
        owner = LineOwner()
        wasAbsent = true
        live.lost("\(settings.device) is unplugged (\(how))", at: now, &events)
        retryAt = now + retry.next()
    }

    private func ownerAnswered(_ isGPSD: Bool, at now: EventTime, _ events: inout [SourceEvent]) {
        owner.answered(isGPSD, line: settings.device.description, isOpen: port != nil)
        if let problem = owner.problem { live.lost(problem, at: now, &events) }
        if let remark = owner.remark { events.append(.notice(remark)) }
    }

    /// While hunting, a speed that the adapter cannot do is one more that is not the receiver's.
    private func configure(_ port: SerialPort, _ speed: LineSpeed?) throws(SourceProblem) {
        do throws(SourceProblem) {
            try port.configure(speed)
        } catch {
            guard settings.speed == .auto else { throw error }
            try port.configure(nil)
        }
        bufferTime = speed.map { .nanoseconds(Int64(SerialPort.bufferBytes) * 10_000_000_000 / Int64($0.baud)) }
    }
}

// Reading, and asking of the receiver.
extension SerialSource {
    /// - Returns: whether there was anything to read, the end included.
    @discardableResult
    private func read(at now: EventTime, _ events: inout [SourceEvent]) -> Bool {
        guard let fd else { return false }
        var failure: String?
        var hasRead = false
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: SerialPort.bufferBytes) { buffer in
            // A line at full speed cannot block the loop: it gives less in the time that reading takes.
            for _ in 0..<16 {
                let count = Glibc.read(fd, buffer.baseAddress, buffer.count)
                if count > 0 {
                    hasRead = true
                    received(Span(_unsafeElements: UnsafeBufferPointer(rebasing: buffer[..<count])), at: now, &events)
                    continue
                }
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                failure = count == 0 ? "end of file" : String(cString: strerror(errno))
                return
            }
        }
        if let failure { unplugged(failure, at: now, &events) }
        return hasRead || failure != nil
    }

    private func received(_ bytes: Span<UInt8>, at now: EventTime, _ events: inout [SourceEvent]) {
        retry.reset()
        let sentences = live.received(bytes, at: now, bufferTime: bufferTime, &events)
        if hunt == nil {
            if sentences > 0, foundSpeed == nil, case .fixed(let speed) = settings.speed { foundSpeed = speed }
        } else if hunt?.received(sentences: sentences, at: now) == true {
            foundSpeed = hunt?.speed
            hunt = nil
        }
    }

    private func beginHunt(at now: EventTime) {
        guard let port else { return }
        control.disconnected()
        hunt = BaudHunt(remembered: nil, current: port.speed, at: now)
    }

    private func set(_ speed: LineSpeed, at now: EventTime, _ events: inout [SourceEvent]) {
        guard let port else { return }
        do throws(SourceProblem) {
            try configure(port, speed)
            live.sentenceBroken()
        } catch {
            failed(error, at: now, &events)
        }
    }

    /// Checks the receiver's rate by the new epochs, and whether another program reads the line.
    private func judge(at now: EventTime, _ events: inout [SourceEvent]) {
        // An opening line, or one at a speed that is still tried, has nothing to judge.
        guard port != nil else { return }
        if hunt == nil {
            for event in events {
                guard case .epoch(let epoch, _, _) = event else { continue }
                carryOut(control.epochReceived(timeOfDay: epoch.timeOfDay, at: now), &events)
            }
        }
        if let node, owner.isSuspect(live.state, live.counters) { _ = owner.ask([node], settings.gpsd, at: now) }
    }

    private func carryOut(_ orders: [ReceiverControl.Order], _ events: inout [SourceEvent]) {
        for order in orders {
            switch order {
            case .write(let bytes): port?.write(bytes)
            // Only for gpsd.
            case .cycle: break
            case .rateNotHonoured(let rate): events.append(.notice(rate.complaint))
            }
        }
        live.expectedInterval = control.expectedInterval
    }
}
