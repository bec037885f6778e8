import Glibc
import WaypostCore
import WaypostNMEA

/// How a stream of sentences is fetched from a server.
package struct TCPSettings: Sendable {
    /// A name or an address in digits.
    package var host: String
    package var port: UInt16
    /// Time without a sentence after which the line is silent; three intervals of the receiver where that is longer. The
    /// default is 5 s.
    package var staleness: Duration
    /// For the lookup, and again for each address that it gives. The default is 10 s.
    package var connectTimeout: Duration
    package var decoder: NMEADecoder.Settings

    package init(
        host: String, port: UInt16, staleness: Duration = .seconds(5), connectTimeout: Duration = .seconds(10),
        decoder: NMEADecoder.Settings = .init()
    ) {
        self.host = host
        self.port = port
        self.staleness = staleness
        self.connectTimeout = connectTimeout
        self.decoder = decoder
    }
}

/// A receiver behind a TCP server (a serial server, a multiplexer, a phone).
///
/// A connection that ends is made again after 1 s, doubling to 60 s until sentences arrive, and so is one over which nothing
/// has come for a minute, or for six intervals of the receiver where that is longer: many serial servers forget a client, or keep
/// the line for one that is gone. Keepalive finds a host that is gone within a minute.
package final class TCPSource: FixSource {
    package let name: String

    private enum Phase {
        case waiting(until: EventTime)
        case lookingUp(HostLookup, until: EventTime)
        case connecting(Int32, to: SocketAddress, rest: ArraySlice<SocketAddress>, until: EventTime)
        case connected(Int32)
        case closed
    }

    private let settings: TCPSettings
    private let jitter: () -> Double
    private let resolver: HostLookup.Resolver
    private var live: LiveStream
    private var phase = Phase.closed
    private var retry = RetryDelay(from: .seconds(1), to: .seconds(60))
    /// The connection is made again because nothing came over the last one.
    private var wasQuiet = false
    /// A lookup that still runs after its timeout.
    private var overdueLookup: HostLookup?

    /// - Parameter jitter: a number in 0…1, asked for at each retry; it shortens the pause by up to a fifth.
    package convenience init(settings: TCPSettings, jitter: @escaping () -> Double) {
        self.init(settings: settings, jitter: jitter, resolver: SocketAddress.resolve)
    }

    init(settings: TCPSettings, jitter: @escaping () -> Double, resolver: @escaping HostLookup.Resolver) {
        self.settings = settings
        self.jitter = jitter
        self.resolver = resolver
        name = "tcp \(settings.host):\(settings.port)"
        live = LiveStream(settings: settings.decoder, staleness: settings.staleness, strayCause: StrayCause.tcp)
    }

    deinit { close() }

    package var descriptor: Int32? {
        switch phase {
        case .lookingUp(let lookup, _): lookup.descriptor
        case .connecting(let fd, _, _, _): fd
        case .connected(let fd): live.isResting ? nil : fd
        case .waiting, .closed: nil
        }
    }

    package var awaitsWritability: Bool {
        if case .connecting = phase { true } else { false }
    }

    package var nextDeadline: EventTime? {
        switch phase {
        case .waiting(let until), .lookingUp(_, let until), .connecting(_, _, _, let until): until
        case .connected: [live.nextDeadline, live.quietEnd].compactMap { $0 }.min()
        case .closed: nil
        }
    }

    package var counters: NMEACounters { live.counters }
    package var satellites: SatelliteView? { live.satellites }
    package var antenna: AntennaState? { live.antenna }
    package var stray: String? { live.strayWords }
    package var strayCause: String { StrayCause.tcp }
    package var dates: ReceiverDates { live.dates }
    package func hostTimeRead(_ time: HostTime?) { live.hostTimeRead(time) }

    package func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            live.opening(&events)
            begin(at: now, &events)
        }
    }

    package func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            switch phase {
            case .lookingUp(let lookup, _): lookUpAnswered(lookup, at: now, &events)
            case .connecting(let fd, let address, let rest, _):
                connectAnswered(fd, to: address, rest: rest, at: now, &events)
            case .connected(let fd): read(fd, at: now, &events)
            case .waiting, .closed: break
            }
        }
    }

    package func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            switch phase {
            case .waiting(let until):
                if now >= until { begin(at: now, &events) }
            case .lookingUp(let lookup, let until):
                guard now >= until else { return }
                overdueLookup = lookup
                failed("no answer about the address of \(settings.host); is there a network?", at: now, &events)
            case .connecting(let fd, let address, let rest, let until):
                guard now >= until else { return }
                Glibc.close(fd)
                phase = .closed
                tryNext(of: rest, after: SourceProblem("no answer from \(address)"), at: now, &events)
            case .connected(let fd):
                live.restEnded(at: now)
                read(fd, at: now, &events)
                live.deadlineReached(at: now, &events)
                giveUpQuiet(at: now, &events)
            case .closed: break
            }
        }
    }

    package func setAsleep(
        _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
    ) -> Bool {
        act(deliver) { events in
            switch live.setAsleep(asleep, at: now, &events) {
            case .close: close()
            case .open:
                retry.reset()
                begin(at: now, &events)
            case nil: break
            }
        }
        return true
    }

    /// The network may be back: do not wait for the timer.
    package func retryNow(at now: EventTime) {
        if case .waiting = phase { phase = .waiting(until: now) }
    }

    package func close() {
        switch phase {
        case .connecting(let fd, _, _, _), .connected(let fd): Glibc.close(fd)
        case .waiting, .lookingUp, .closed: break
        }
        phase = .closed
    }

    private func begin(at now: EventTime, _ events: inout [SourceEvent]) {
        if let address = SocketAddress(numericHost: settings.host, port: settings.port) {
            return tryNext(of: [address], after: nil, at: now, &events)
        }
        do throws(SourceProblem) {
            let lookup: HostLookup
            if let overdueLookup {
                lookup = overdueLookup
            } else {
                lookup = try HostLookup(host: settings.host, port: settings.port, resolver: resolver)
            }
            overdueLookup = nil
            phase = .lookingUp(lookup, until: now + settings.connectTimeout)
        } catch {
            failed(error.description, at: now, &events)
        }
    }

    private func lookUpAnswered(_ lookup: HostLookup, at now: EventTime, _ events: inout [SourceEvent]) {
        switch lookup.answer {
        case nil: return
        case .success(let addresses): tryNext(of: addresses[...], after: nil, at: now, &events)
        case .failure(let problem): failed(problem.description, at: now, &events)
        }
    }

    /// Connects to the first address that does not fail at once.
    private func tryNext(
        of addresses: ArraySlice<SocketAddress>, after problem: SourceProblem?, at now: EventTime,
        _ events: inout [SourceEvent]
    ) {
        var rest = addresses
        var problem = problem
        while let address = rest.popFirst() {
            let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            let fd = socket(address.family, flags, 0)
            guard fd >= 0 else {
                problem = SourceProblem("cannot connect to \(address)", errno: errno)
                continue
            }
            if address.withPointer({ connect(fd, $0, $1) }) == 0 {
                return connected(fd, at: now, &events)
            }
            if errno == EINPROGRESS {
                phase = .connecting(fd, to: address, rest: rest, until: now + settings.connectTimeout)
                return
            }
            problem = Self.connectProblem(address, errno)
            Glibc.close(fd)
        }
        failed(problem?.description ?? "\(settings.host) has no address", at: now, &events)
    }

    private func connectAnswered(
        _ fd: Int32, to address: SocketAddress, rest: ArraySlice<SocketAddress>, at now: EventTime,
        _ events: inout [SourceEvent]
    ) {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout.size(ofValue: code))
        if getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) != 0 { code = errno }
        if code == 0 { return connected(fd, at: now, &events) }
        Glibc.close(fd)
        phase = .closed
        tryNext(of: rest, after: Self.connectProblem(address, code), at: now, &events)
    }

    private func connected(_ fd: Int32, at now: EventTime, _ events: inout [SourceEvent]) {
        keepAlive(fd)
        phase = .connected(fd)
        live.opened(at: now, isAgain: wasQuiet, &events)
    }

    private func giveUpQuiet(at now: EventTime, _ events: inout [SourceEvent]) {
        guard case .connected(let fd) = phase, let end = live.quietEnd, now >= end else { return }
        Glibc.close(fd)
        if !wasQuiet {
            events.append(
                .notice(
                    "\(settings.host):\(settings.port) is connected, and nothing comes: connecting again, now and each time "
                        + "that nothing comes; is the receiver on, and does another client hold it?"))
        }
        wasQuiet = true
        phase = .waiting(until: now + retry.next(spread: jitter()))
        live.gaveUpQuiet(at: now, &events)
    }

    private func read(_ fd: Int32, at now: EventTime, _ events: inout [SourceEvent]) {
        var failure: String?
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16_384) { buffer in
            // The rest stays in the socket for the next turn of the loop.
            for _ in 0..<8 {
                let count = recv(fd, buffer.baseAddress, buffer.count, 0)
                if count > 0 {
                    let bytes = Span(_unsafeElements: UnsafeBufferPointer(rebasing: buffer[..<count]))
                    if live.received(bytes, at: now, bufferTime: nil, &events) > 0 {
                        retry.reset()
                        wasQuiet = false
                    }
                    if count < buffer.count { return }
                    continue
                }
                if count < 0, errno == EINTR { continue }
                if count < 0, errno == EAGAIN { return }
                failure = count == 0 ? "the server closed the connection" : String(cString: strerror(errno))
                return
            }
        }
        if let failure {
            Glibc.close(fd)
            phase = .closed
            failed("\(settings.host):\(settings.port): \(failure)", at: now, &events)
        }
    }

    private func failed(_ reason: String, at now: EventTime, _ events: inout [SourceEvent]) {
        phase = .waiting(until: now + retry.next(spread: jitter()))
        wasQuiet = false
        live.lost(reason, at: now, &events)
    }

    private static func connectProblem(_ address: SocketAddress, _ code: Int32) -> SourceProblem {
        let hint: String? =
            switch code {
            case ECONNREFUSED: "the host is there, but nothing listens on that port"
            case ENETUNREACH, EHOSTUNREACH: "is there a network?"
            case EACCES, EPERM: "a firewall or the unit's RestrictAddressFamilies= forbids it"
            default: nil
            }
        return SourceProblem("cannot connect to \(address)", errno: code, hint: hint)
    }
}
