import Glibc
import WaypostCore
import WaypostNMEA

/// How datagrams with sentences are received.
package struct UDPSettings: Sendable {
    /// The address to bind, in digits. The default is 127.0.0.1: datagrams have no sender that can be trusted.
    package var host: String
    package var port: UInt16
    /// Accept datagrams from this address only, in digits; nil = from anyone.
    package var from: String?
    /// Time without a sentence after which the line is silent; three intervals of the receiver where that is longer. The
    /// default is 5 s.
    package var staleness: Duration
    package var decoder: NMEADecoder.Settings

    package init(
        host: String = "127.0.0.1", port: UInt16, from: String? = nil, staleness: Duration = .seconds(5),
        decoder: NMEADecoder.Settings = .init()
    ) {
        self.host = host
        self.port = port
        self.from = from
        self.staleness = staleness
        self.decoder = decoder
    }
}

/// A receiver that sends its sentences as datagrams, whole or cut as they came from a serial line.
package final class UDPSource: FixSource {
    package let name: String
    /// Datagrams of other senders than the configured one.
    package private(set) var refused = 0

    /// What the default socket buffer holds of small datagrams at 1400 a second.
    private static let bufferTime = Duration.milliseconds(100)

    private let settings: UDPSettings
    /// The configured sender in the form in which senders are compared.
    private let sender: String?
    private var live: LiveStream
    private var joiner = DatagramJoiner()
    private var fd: Int32?
    private var retry = RetryDelay(from: .seconds(1), to: .seconds(10))
    private var retryAt: EventTime?

    package init(settings: UDPSettings) {
        self.settings = settings
        sender = settings.from.map { SocketAddress(numericHost: $0, port: 0)?.host ?? $0 }
        name = "udp \(settings.host.contains(":") ? "[\(settings.host)]" : settings.host):\(settings.port)"
        live = LiveStream(settings: settings.decoder, staleness: settings.staleness, strayCause: StrayCause.udp)
    }

    deinit { close() }

    package var descriptor: Int32? { live.isResting ? nil : fd }

    package var nextDeadline: EventTime? {
        fd == nil ? retryAt : [live.nextDeadline, joiner.nextDeadline].compactMap { $0 }.min()
    }

    package var stray: String? { live.strayWords }
    package var strayCause: String { StrayCause.udp }

    package var silenceCause: String? {
        if refused > 0 { return "datagrams come, but from other addresses than \(settings.from ?? "")" }
        guard settings.host == "127.0.0.1" || settings.host == "::1" else { return nil }
        return
            "only programs on this machine can send there: for a sender elsewhere set host = \"0.0.0.0\", and from to its address"
    }

    package var counters: NMEACounters { live.counters }
    package var satellites: SatelliteView? { live.satellites }
    package var antenna: AntennaState? { live.antenna }
    package var dates: ReceiverDates { live.dates }
    package func hostTimeRead(_ time: HostTime?) { live.hostTimeRead(time) }

    /// The port in use, which the system chooses where 0 is configured; nil while not bound.
    package var boundPort: UInt16? {
        fd.flatMap { SocketAddress(ofSocket: $0)?.port }
    }

    package func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            live.opening(&events)
            bind(at: now, &events)
        }
    }

    package func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { read(at: now, &$0) }
    }

    package func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            if fd == nil {
                if let retryAt, now >= retryAt { bind(at: now, &events) }
                return
            }
            live.restEnded(at: now)
            read(at: now, &events)
            joiner.deadlineReached(at: now) { take($0, at: now, &events) }
            live.deadlineReached(at: now, &events)
        }
    }

    package func setAsleep(
        _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
    ) -> Bool {
        act(deliver) { events in
            if asleep { joiner.end { take($0, at: now, &events) } }
            switch live.setAsleep(asleep, at: now, &events) {
            case .close: close()
            case .open:
                retry.reset()
                bind(at: now, &events)
            case nil: break
            }
        }
        return true
    }

    package func close() {
        if let fd { Glibc.close(fd) }
        fd = nil
        retryAt = nil
    }

    private func bind(at now: EventTime, _ events: inout [SourceEvent]) {
        retryAt = nil
        do throws(SourceProblem) {
            fd = try Self.boundSocket(settings)
            retry.reset()
            live.opened(at: now, &events)
        } catch {
            retryAt = now + retry.next()
            live.lost(error.description, at: now, &events)
        }
    }

    private static func boundSocket(_ settings: UDPSettings) throws(SourceProblem) -> Int32 {
        let what = "cannot listen on UDP port \(settings.port) of \(settings.host)"
        guard let address = SocketAddress(numericHost: settings.host, port: settings.port) else {
            throw SourceProblem("\(what): the address to bind must be in digits, such as 127.0.0.1 or 0.0.0.0")
        }
        let flags = Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let fd = socket(address.family, flags, 0)
        guard fd >= 0 else { throw SourceProblem(what, errno: errno) }
        if address.withPointer({ Glibc.bind(fd, $0, $1) }) == 0 { return fd }
        let code = errno
        Glibc.close(fd)
        let hint: String? =
            switch code {
            case EADDRINUSE: "another program listens there; `ss -lup` shows which"
            case EADDRNOTAVAIL: "this host has no such address (yet)"
            case EACCES: "ports below 1024 are for root; choose another"
            default: nil
            }
        throw SourceProblem(what, errno: code, hint: hint)
    }

    private func read(at now: EventTime, _ events: inout [SourceEvent]) {
        guard let fd else { return }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 65_536) { buffer in
            // The rest stays in the socket for the next turn of the loop.
            for _ in 0..<64 {
                var storage = sockaddr_storage()
                var length = socklen_t(MemoryLayout.size(ofValue: storage))
                let (count, origin) = withUnsafeMutablePointer(to: &storage) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                        let count = recvfrom(fd, buffer.baseAddress, buffer.count, 0, pointer, &length)
                        return (count, count >= 0 ? SocketAddress(copying: pointer, length: length) : nil)
                    }
                }
                guard count >= 0, let origin else {
                    // Anything but "no more" is about one datagram or an ICMP reply: the socket is still good.
                    if errno == EAGAIN { return }
                    continue
                }
                guard sender == nil || origin.host == sender else {
                    refused += 1
                    continue
                }
                let bytes = Span(_unsafeElements: UnsafeBufferPointer(rebasing: buffer[..<count]))
                joiner.received(bytes, from: origin, at: now) { take($0, at: now, &events) }
            }
        }
    }

    /// - Parameter bytes: whole lines, or what nothing continues.
    private func take(_ bytes: Span<UInt8>, at now: EventTime, _ events: inout [SourceEvent]) {
        live.received(bytes, at: now, bufferTime: Self.bufferTime, &events)
        live.sentenceBroken()
    }
}
