import Glibc
import NMEA
import Positioning

/// How a serial line is read.
public struct SerialSettings: Sendable {
    /// How the speed is chosen.
    public enum Speed: Hashable, Sendable {
        case fixed(LineSpeed)
        /// Try one after another until three sentences with good checksums arrive.
        case auto
    }

    /// A stable name, such as one under /dev/serial/by-id: kernel numbers change with each plug.
    public var path: String
    /// The default is `auto`.
    public var speed: Speed
    /// What ``SerialSource/foundSpeed`` was at the last run: tried first.
    public var rememberedSpeed: LineSpeed?
    /// Without a sentence for so long, or for three intervals of the receiver where that is longer, the line counts as
    /// silent. The default is 5 s.
    public var staleness: Duration
    public var decoder: NMEADecoder.Settings

    public init(
        path: String, speed: Speed = .auto, rememberedSpeed: LineSpeed? = nil, staleness: Duration = .seconds(5),
        decoder: NMEADecoder.Settings = .init()
    ) {
        self.path = path
        self.speed = speed
        self.rememberedSpeed = rememberedSpeed
        self.staleness = staleness
        self.decoder = decoder
    }
}

/// A receiver on a serial line or a USB port that looks like one.
///
/// End of file is how an unplugged adapter shows itself. The line is then closed at once and opened again after 1 s,
/// doubling to 10 s, without regard to hotplug events: on a host without udevd there are none.
public final class SerialSource: FixSource {
    public let name: String
    /// The speed at which sentences with good checksums have arrived; nil until then. Worth remembering.
    public private(set) var foundSpeed: LineSpeed?

    private let settings: SerialSettings
    private var live: LiveStream
    private var port: SerialPort?
    private var hunt: BaudHunt?
    private var bufferTime: Duration?
    private var retry = RetryDelay(from: .seconds(1), to: .seconds(10))
    private var retryAt: EventTime?
    /// Since when an open is refused for want of permission, after a time without the device.
    private var deniedSince: EventTime?
    private var wasAbsent = false
    private var isAsleep = false

    public init(settings: SerialSettings) {
        self.settings = settings
        name = "serial \(settings.path)"
        live = LiveStream(settings: settings.decoder, staleness: settings.staleness)
    }

    public var descriptor: Int32? {
        guard !live.isResting else { return nil }
        return fd
    }

    public var awaitsWritability: Bool { false }

    public var nextDeadline: EventTime? {
        fd == nil ? retryAt : [live.nextDeadline, hunt?.nextDeadline].compactMap { $0 }.min()
    }

    public var counters: NMEACounters { live.counters }

    public func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            live.opening(&events)
            open(at: now, &events)
        }
    }

    public func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { read(at: now, &$0) }
    }

    public func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            if fd == nil {
                if let retryAt, now >= retryAt { open(at: now, &events) }
                return
            }
            live.restEnded(at: now)
            read(at: now, &events)
            live.deadlineReached(at: now, &events)
            if settings.speed == .auto, hunt == nil, live.state == .unreadable { beginHunt(at: now) }
            if let speed = hunt?.deadlineReached(at: now) { set(speed, at: now, &events) }
        }
    }

    /// A live line is read on: what nobody reads is lost.
    public func setPaused(_ paused: Bool, at now: EventTime) {}

    public func setAsleep(_ asleep: Bool, at now: EventTime, _ deliver: (SourceEvent) -> Void) -> Bool {
        guard asleep != isAsleep else { return true }
        isAsleep = asleep
        act(deliver) { events in
            if asleep {
                close()
                live.fellAsleep(at: now, &events)
            } else {
                retry.reset()
                live.opening(&events)
                open(at: now, &events)
            }
        }
        return true
    }

    /// The device may be there now (a hotplug event): do not wait for the timer.
    public func hurry(at now: EventTime) {
        if retryAt != nil { retryAt = now }
    }

    public func close() {
        port = nil
        retryAt = nil
        hunt = nil
    }

    private var fd: Int32? { port?.fd }

    private func act(_ deliver: (SourceEvent) -> Void, _ body: (inout [SourceEvent]) -> Void) {
        var events: [SourceEvent] = []
        body(&events)
        for event in events { deliver(event) }
    }

    private func open(at now: EventTime, _ events: inout [SourceEvent]) {
        retryAt = nil
        do throws(SourceProblem) {
            let port = try SerialPort(path: settings.path)
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
            live.opened(at: now, &events)
        } catch {
            failed(error, at: now, &events)
        }
    }

    private func failed(_ problem: SourceProblem, at now: EventTime, _ events: inout [SourceEvent]) {
        port = nil
        hunt = nil
        retryAt = now + retry.take()
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
        live.lost(problem.description, at: now, &events)
    }

    private func read(at now: EventTime, _ events: inout [SourceEvent]) {
        guard let fd else { return }
        var failure: String?
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: SerialPort.bufferBytes) { buffer in
            // A line at full speed cannot keep us here: it gives less in the time that reading takes.
            for _ in 0..<16 {
                let count = Glibc.read(fd, buffer.baseAddress, buffer.count)
                if count > 0 {
                    received(Span(_unsafeElements: UnsafeBufferPointer(rebasing: buffer[..<count])), at: now, &events)
                    continue
                }
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                failure = count == 0 ? "end of file" : String(cString: strerror(errno))
                return
            }
        }
        // A descriptor whose device is gone stays readable for ever: close it at once.
        if let failure {
            port = nil
            hunt = nil
            wasAbsent = true
            live.lost("\(settings.path) is unplugged (\(failure))", at: now, &events)
            retryAt = now + retry.take()
        }
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
