import Glibc
import WaypostCore
import WaypostNMEA

/// How a receiver is read through gpsd.
package struct GPSDSettings: Sendable {
    /// A name or an address in digits. The default is `localhost`.
    package var host: String
    /// The default is 2947.
    package var port: UInt16
    /// The receiver, as gpsd calls it: `/dev/ttyACM0`. nil = the first that gives a fix, until it falls silent.
    package var device: String?
    /// Time without a report after which the receiver is lost; three intervals of the receiver where that is longer. The
    /// default is 5 s.
    package var staleness: Duration
    /// For connecting, after which it is reported; the attempt continues as long as the system makes it. The default is 10 s.
    package var connectTimeout: Duration
    /// Range errors and rollover count; gpsd reads the sentences.
    package var decoder: NMEADecoder.Settings
    /// `.gpsdCycle`: gpsd is asked for the rate that is wanted. The default is `.none`.
    package var receiver: ReceiverProfile

    package init(
        host: String = "localhost", port: UInt16 = 2947, device: String? = nil, staleness: Duration = .seconds(5),
        connectTimeout: Duration = .seconds(10), decoder: NMEADecoder.Settings = .init(live: true),
        receiver: ReceiverProfile = .none
    ) {
        self.host = host
        self.port = port
        self.device = device
        self.staleness = staleness
        self.connectTimeout = connectTimeout
        self.decoder = decoder
        self.receiver = receiver
    }

    /// gpsd is on this host: what it calls /dev/ttyACM0 is ours too.
    var isLocal: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    /// `localhost:2947`
    var address: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// Whether a device of gpsd's is gone; false where that cannot be known.
    func isUnplugged(_ path: String) -> Bool {
        isLocal && path.hasPrefix("/dev/") && access(path, F_OK) != 0 && errno == ENOENT
    }
}

/// A receiver that gpsd reads.
///
/// A connection that ends is made again after 1 s, doubling to 60 s (to 10 s on this host). One behind which a receiver
/// has gone silent is kept: gpsd opens the receiver when it is back.
package final class GPSDSource: FixSource {
    package let name: String

    private enum Phase {
        case waiting(until: EventTime)
        /// After `until` it is reported, and continues.
        case opening(Opening, until: EventTime?)
        case connected(GPSDConnection)
        case closed
    }

    private typealias Opening = BackgroundCall<Result<GPSDConnection, SourceProblem>>

    /// Lines for one turn of the loop; the rest is taken at once in the next.
    private static let linesPerTurn = 500

    private let settings: GPSDSettings
    private let jitter: () -> Double
    private var stream: GPSDStream
    private var control: ReceiverControl
    private var phase = Phase.closed
    private var retry: RetryDelay
    /// There may be more lines than a turn takes, which the descriptor does not show.
    private var hasMore: EventTime?
    private var isAsleep = false

    /// - Parameter jitter: a number in 0…1, asked for at each retry; it shortens the pause by up to a fifth.
    package init(settings: GPSDSettings, jitter: @escaping () -> Double) {
        self.settings = settings
        self.jitter = jitter
        control = ReceiverControl(profile: settings.receiver)
        name = "gpsd \(settings.address)\(settings.device.map { " \($0)" } ?? "")"
        retry = RetryDelay(from: .seconds(1), to: settings.isLocal ? .seconds(10) : .seconds(60))
        stream = GPSDStream(
            settings: settings.decoder, device: settings.device, staleness: settings.staleness,
            isUnplugged: settings.isUnplugged)
    }

    package var descriptor: Int32? {
        switch phase {
        case .opening(let opening, _): opening.descriptor
        case .connected(let connection): stream.isResting || hasMore != nil ? nil : connection.descriptor
        case .waiting, .closed: nil
        }
    }

    package var nextDeadline: EventTime? {
        switch phase {
        case .waiting(let until): until
        case .opening(_, let until): until
        case .connected: [hasMore, stream.nextDeadline, control.nextDeadline].compactMap { $0 }.min()
        case .closed: nil
        }
    }

    package var counters: NMEACounters { stream.decoder.counters }
    package var satellites: SatelliteView? { stream.decoder.satellites }
    package var stray: String? { stream.strayWords }
    package var strayCause: String { StrayCause.gpsd }
    package var dates: ReceiverDates { stream.decoder.receiverDates }
    package func hostTimeRead(_ time: HostTime?) { stream.hostTimeRead(time) }

    /// The gpsd at the other end; nil while not connected.
    package var version: GPSDVersion? { stream.decoder.version }

    /// The devices that gpsd has.
    package var devices: [GPSDDevice] { stream.decoder.devices }

    /// The device whose reports are taken; nil until one reports, unless it is configured.
    package var device: String? { stream.decoder.device }

    package func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            stream.opening(&events)
            begin(at: now, &events)
        }
    }

    package func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            switch phase {
            case .opening(let opening, _): openingAnswered(opening, at: now, &events)
            case .connected(let connection): read(connection, at: now, &events)
            case .waiting, .closed: break
            }
        }
    }

    package func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { events in
            switch phase {
            case .waiting(let until):
                if now >= until { begin(at: now, &events) }
            case .opening(let opening, let until?):
                guard now >= until else { return }
                phase = .opening(opening, until: nil)
                stream.lost("no answer from \(settings.host):\(settings.port); is there a network?", at: now, &events)
            case .connected(let connection):
                stream.restEnded(at: now)
                read(connection, at: now, &events)
                // What is still to be read is older than the silence.
                if hasMore == nil { stream.deadlineReached(at: now, &events) }
                askForDevices(at: now, &events)
                carryOut(control.deadlineReached(at: now), &events)
            case .opening(_, nil), .closed: break
            }
        }
    }

    /// gpsd closes a receiver without clients, unless it runs with -n.
    package func setAsleep(
        _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
    ) -> Bool {
        guard asleep != isAsleep else { return true }
        isAsleep = asleep
        act(at: now, deliver) { events in
            if asleep {
                close()
                stream.fellAsleep(&events)
            } else {
                retry.reset()
                stream.opening(&events)
                begin(at: now, &events)
            }
        }
        return true
    }

    /// The network may be back: do not wait for the timer.
    package func retryNow(at now: EventTime) {
        if case .waiting = phase { phase = .waiting(until: now) }
    }

    package var rate: ReceiverRate? { control.rate }

    package func setInterval(_ interval: Duration, at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(at: now, deliver) { carryOut(control.intervalWanted(interval, at: now), &$0) }
    }

    /// The reply of gpsd means nothing (it confirms for a receiver that ignores the command): the interval is measured.
    private func carryOut(_ orders: [ReceiverControl.Order], _ events: inout [SourceEvent]) {
        for order in orders {
            switch order {
            case .cycle(let milliseconds):
                guard case .connected(let connection) = phase, let path = device ?? onlyDevice,
                    let request = GPSDRequest.cycle(of: path, interval: .milliseconds(milliseconds))
                else { continue }
                // A broken connection shows at the next read.
                _ = connection.send(request)
            // Only for a line of our own.
            case .write: break
            case .rateNotHonoured(let rate): events.append(.notice(rate.complaint))
            }
        }
        stream.expectedInterval = control.expectedInterval
    }

    package func close() {
        phase = .closed
        hasMore = nil
        control.disconnected()
    }

    private var onlyDevice: String? { devices.count == 1 ? devices[0].path : nil }

    private func act(
        at now: EventTime, _ deliver: (SourceEvent) -> Void, _ body: (inout [SourceEvent]) -> Void
    ) {
        var events: [SourceEvent] = []
        body(&events)
        if case .connected = phase {
            for case .epoch(let epoch, _, _) in events {
                carryOut(control.epochReceived(timeOfDay: epoch.timeOfDay, at: now), &events)
            }
        }
        for event in events { deliver(event) }
    }

    private func begin(at now: EventTime, _ events: inout [SourceEvent]) {
        let (host, port) = (settings.host, settings.port)
        do throws(SourceProblem) {
            let opening = try Opening("cannot connect to gpsd at \(host):\(port)") {
                GPSDConnection.open(host: host, port: port)
            }
            phase = .opening(opening, until: now + settings.connectTimeout)
        } catch {
            failed(error.description, at: now, &events)
        }
    }

    private func openingAnswered(_ opening: Opening, at now: EventTime, _ events: inout [SourceEvent]) {
        switch opening.answer {
        case nil: return
        case .failure(let problem): failed(problem.description, at: now, &events)
        case .success(let connection):
            guard connection.watch(device: settings.device) else {
                return failed("gpsd at \(settings.host):\(settings.port) accepts no request", at: now, &events)
            }
            phase = .connected(connection)
            stream.opened(at: now, &events)
        }
    }

    private func read(_ connection: GPSDConnection, at now: EventTime, _ events: inout [SourceEvent]) {
        hasMore = nil
        for _ in 0..<Self.linesPerTurn {
            switch connection.read() {
            case .line(let line): stream.received(line, at: now, &events)
            case .nothing: return
            case .ended(let reason):
                let isGPSD = version != nil
                let place = "\(settings.host):\(settings.port)"
                return failed(
                    isGPSD
                        ? "\(place): \(reason)" : "what answers at \(place) is not gpsd, or closes at once (\(reason))",
                    at: now, &events)
            }
            if case .receiving = stream.state { retry.reset() }
        }
        hasMore = now
    }

    private func askForDevices(at now: EventTime, _ events: inout [SourceEvent]) {
        guard stream.wantsDevices, case .connected(let connection) = phase else { return }
        stream.askedForDevices()
        if !connection.send(GPSDRequest.devices) {
            failed("\(settings.host):\(settings.port): gpsd accepts no more requests", at: now, &events)
        }
    }

    private func failed(_ reason: String, at now: EventTime, _ events: inout [SourceEvent]) {
        hasMore = nil
        control.disconnected()
        phase = .waiting(until: now + retry.next(spread: jitter()))
        stream.lost(reason, at: now, &events)
    }
}

/// What is asked of gpsd, as it goes over the wire.
enum GPSDRequest {
    static let devices = "?DEVICES;\n"

    /// nil for a path that gpsd cannot have meant, with control characters in it.
    static func cycle(of path: String, interval: Duration) -> String? {
        guard !path.isEmpty, path.unicodeScalars.allSatisfy({ $0.value >= 0x20 }) else { return nil }
        let escaped = path.reduce(into: "") { text, character in
            if character == "\"" || character == "\\" { text.append("\\") }
            text.append(character)
        }
        let milliseconds = max(10, min(interval.milliseconds, 3_600_000))
        let fraction = String(1000 + milliseconds % 1000).dropFirst()
        return "?DEVICE={\"path\":\"\(escaped)\",\"cycle\":\(milliseconds / 1000).\(fraction)};\n"
    }
}
