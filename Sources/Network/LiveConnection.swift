import CCurl
import Glibc
import Profiles
import Protocols
import WaypostCore

/// A TCP connection that stays open, with TLS or without, over which its owner speaks a protocol of its own: libcurl
/// looks the name up, connects, and carries bytes.
///
/// The loop drives it as it drives `HTTPUplink`, and reports are made only from inside `descriptorReady` and
/// `deadlineReached`; they may call `send`, `open` and `close`. It may be opened again after its end, and then resumes
/// the TLS session.
///
/// It has a multi handle of its own: that of `HTTPUplink` is given up whenever its idle connections are closed.
package final class LiveConnection {
    package enum Event: Hashable, Sendable {
        /// - Parameter peerAddress: numeric; nil when libcurl does not say.
        case opened(peerAddress: String?)
        case received([UInt8])
        /// What the connection did not take at once is written: time for more.
        case written
        case ended(TransportFailure)
    }

    private enum State {
        case closed
        /// `open` was called: leaves to `connecting` or `closed` when a call passes the time.
        case starting
        /// Leaves to `open` when libcurl is done, to `closed` with a failure or at the limit.
        case connecting(until: EventTime)
        /// Leaves to `closed` when either side ends it.
        case open(descriptor: Int32)
    }

    private let url: String
    private let peer: Peer
    private let tls: TLSSettings?
    private let settings: HTTPUplink.Settings
    private let handles: CurlHandles
    private let isClockTrusted: () -> Bool
    private let watch: (Int32, HTTPUplink.Interest?) -> Void
    private let report: (Event) -> Void
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var state = State.closed
    private var easy: UnsafeMutableRawPointer?
    private var multi: CurlMulti?
    /// While it connects: when libcurl wants to be called.
    private var curlDeadline: EventTime?
    private var unsent: ArraySlice<UInt8> = []
    /// The server has said something since the connection is there.
    private var hasHeard = false
    /// Writing has ended; reported after what can still be read.
    private var writeFailure: TransportFailure?
    /// There is more to do at once, of which the descriptor may say nothing: what TLS has decrypted, or a failure.
    private var isTurnWanted = false
    /// Of this link.
    private var memory = ConnectMemory()
    /// By which packets left when links were last looked at; nil = they never were.
    private var routes: [HostRoute?]?
    private var chunk = [UInt8](repeating: 0, count: 16_384)
    /// Chunks that are read in one turn, so that a server in full flow leaves time for others.
    private static let chunksMax = 4

    /// - Parameters:
    ///   - url: `http://host:port` or `https://host:port`; a path means nothing.
    ///   - isClockTrusted, watch: as of `HTTPUplink`.
    /// - Throws: `SetupError` when libcurl does not start or the URL is another.
    package init(
        url: String, tls: TLSSettings? = nil, settings: HTTPUplink.Settings,
        isClockTrusted: @escaping () -> Bool = { true },
        watch: @escaping (Int32, HTTPUplink.Interest?) -> Void, report: @escaping (Event) -> Void
    ) throws(HTTPUplink.SetupError) {
        guard let peer = Peer(url: url) else {
            throw HTTPUplink.SetupError(description: "the URL of the server is not one of http or https with a host")
        }
        self.url = url
        self.peer = peer
        self.tls = tls
        self.settings = settings
        self.isClockTrusted = isClockTrusted
        self.watch = watch
        self.report = report
        handles = try CurlHandles(settings)
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        close()
        handles.close()
        errorText.deallocate()
    }

    package var isOpen: Bool { if case .open = state { true } else { false } }

    /// Bytes that the connection has not taken yet.
    package var unsentBytes: Int { unsent.count }

    /// Boot-clock instant at which `deadlineReached` is wanted; nil = none, `.zero` = at once.
    package var nextDeadline: EventTime? {
        switch state {
        case .closed: nil
        case .starting: .zero
        case .connecting(let limit): min(limit, curlDeadline ?? limit)
        case .open: isTurnWanted ? .zero : nil
        }
    }

    /// Begins to connect, unless it has begun already.
    package func open() {
        guard case .closed = state else { return }
        state = .starting
        hasHeard = false
    }

    /// Writes as much as the connection takes and keeps the rest. Before `opened` the bytes are dropped.
    package func send(_ bytes: [UInt8]) {
        guard case .open(let descriptor) = state, writeFailure == nil, !bytes.isEmpty else { return }
        let wasWaiting = !unsent.isEmpty
        unsent += bytes
        guard !wasWaiting else { return }
        write()
        if !unsent.isEmpty { watch(descriptor, HTTPUplink.Interest(readable: true, writable: true)) }
    }

    /// Links, addresses or routes of this host may have changed: ends a connection that is bound to one which is gone, and begins to
    /// connect again where that has not come to an end.
    package func linksChanged() {
        let found = HostRoute.ofStrangers
        let hasChanged = found != routes
        routes = found
        if hasChanged { memory = memory.overAnotherLink(hasIPv4: found[0] != nil) }
        switch state {
        case .connecting where hasChanged:
            close()
            state = .starting
        case .open(let descriptor) where HostRoute.isGone(descriptor):
            writeFailure = .moved("\(peer): the link changed under the connection")
            unsent = []
            isTurnWanted = true
        case .closed, .starting, .connecting, .open: break
        }
    }

    /// Ends the connection without a report.
    package func close() {
        if case .open(let descriptor) = state { watch(descriptor, nil) }
        state = .closed
        if let easy {
            multi?.remove(easy)
            curl_easy_cleanup(easy)
        }
        multi?.close()
        (easy, multi) = (nil, nil)
        unsent = []
        writeFailure = nil
        isTurnWanted = false
        curlDeadline = nil
    }
}

// What the loop calls.
extension LiveConnection {
    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool, at now: EventTime) {
        switch state {
        case .connecting:
            drive(descriptor, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0), at: now)
        case .open(descriptor):
            if writable { continueWriting(descriptor) }
            if readable || writeFailure != nil { read() }
            settle()
        case .closed, .starting, .open: break
        }
    }

    package func deadlineReached(at now: EventTime) {
        switch state {
        case .closed: break
        case .starting: start(at: now)
        case .connecting(let limit) where limit <= now: end(connectionMissed())
        case .connecting:
            if let curlDeadline, curlDeadline <= now { drive(CURL_SOCKET_TIMEOUT, 0, at: now) }
        case .open:
            guard isTurnWanted else { return }
            isTurnWanted = false
            read()
            settle()
        }
    }

    private func start(at now: EventTime) {
        errorText.pointee = 0
        multi = CurlMulti(watch: watch)
        guard let multi, let easy = handles.prepareConnection(url: url, tls, memory, errorText: errorText) else {
            return end(.broken("\(peer): no memory for a connection"))
        }
        self.easy = easy
        var limit = settings.lookupLimit + memory.limit(settings.connectLimit)
        if peer.isSecure { limit += memory.limit(settings.handshakeLimit) }
        state = .connecting(until: now + limit)
        if let problem = multi.add(easy) { return end(.broken("\(peer): \(problem)")) }
        drive(CURL_SOCKET_TIMEOUT, 0, at: now)
    }

    private func drive(_ descriptor: Int32, _ events: Int32, at now: EventTime) {
        guard let multi else { return }
        multi.drive(descriptor, events)
        // There is no other handle.
        switch multi.nextFinished()?.1 {
        case nil: curlDeadline = multi.timer.map { now + $0 }
        case CURLE_OK:
            if let lookup { memory.lookedUp(in: lookup, hasIPv4: HostRoute.hasIPv4) }
            connected()
        case let code?:
            // How long it took is not known: it may be asked for all addresses again.
            if code == CURLE_COULDNT_RESOLVE_HOST { memory.failedToLookUp(in: .zero) }
            end(ending(code))
        }
    }

    /// The handle stays in its multi handle: libcurl finds the connection by it.
    private func connected() {
        curlDeadline = nil
        var descriptor: curl_socket_t = -1
        guard let easy, waypost_curl_get_socket(easy, CURLINFO_ACTIVESOCKET, &descriptor) == CURLE_OK, descriptor >= 0
        else { return end(.broken("\(peer): the connection was closed as soon as it was made")) }
        state = .open(descriptor: descriptor)
        watch(descriptor, HTTPUplink.Interest(readable: true, writable: false))
        report(.opened(peerAddress: peerAddress))
        guard case .open(descriptor) = state else { return }
        // The first bytes may have come with the end of the handshake.
        read()
        settle()
    }

    private var peerAddress: String? {
        var text: UnsafeMutablePointer<CChar>?
        guard let easy, waypost_curl_get_text(easy, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text else {
            return nil
        }
        return text.pointee == 0 ? nil : String(cString: text)
    }
}

// Bytes.
extension LiveConnection {
    private func write() {
        while !unsent.isEmpty, let easy {
            var count = 0
            let code = unsent.withUnsafeBytes { curl_easy_send(easy, $0.baseAddress, $0.count, &count) }
            if code == CURLE_AGAIN { return }
            guard code == CURLE_OK else {
                writeFailure = ending(code)
                isTurnWanted = true
                unsent = []
                return
            }
            unsent = unsent.dropFirst(count)
        }
        unsent = []
    }

    private func continueWriting(_ descriptor: Int32) {
        guard !unsent.isEmpty else { return }
        write()
        guard unsent.isEmpty else { return }
        watch(descriptor, HTTPUplink.Interest(readable: true, writable: false))
        if writeFailure == nil { report(.written) }
    }

    /// TLS keeps what it has decrypted, so that it reads until libcurl has nothing more.
    private func read() {
        for _ in 0..<Self.chunksMax {
            guard isOpen, let easy else { return }
            var count = 0
            let code = curl_easy_recv(easy, &chunk, chunk.count, &count)
            if code == CURLE_AGAIN { return }
            guard code == CURLE_OK, count > 0 else {
                return end(code == CURLE_OK ? .broken("\(peer) closed the connection") : ending(code))
            }
            hasHeard = true
            report(.received(Array(chunk[..<count])))
        }
        isTurnWanted = true
    }

    /// A failure to write comes after all that the server has said before it.
    private func settle() {
        if isOpen, !isTurnWanted, let writeFailure { end(writeFailure) }
    }

    private func end(_ failure: TransportFailure) {
        close()
        report(.ended(failure))
    }

    private func ending(_ code: CURLcode) -> TransportFailure {
        let failure = CurlEnding(
            code, easy: easy, peer: peer, errorText: errorText, isClockTrusted: isClockTrusted
        ).failure
        // By TLS 1.3 a server refuses after the handshake, and over a fast link its reset discards the alert before it.
        guard case .broken = failure, isOpen, !hasHeard, peer.isSecure, tls?.certificate == nil else { return failure }
        return failure.adding("right after the TLS handshake: \(ServerWords.mayWantCertificate)")
    }

    /// The limit for the connection has passed.
    private func connectionMissed() -> TransportFailure {
        guard lookup != nil else {
            memory.lookedUp(in: settings.lookupLimit, hasIPv4: HostRoute.hasIPv4)
            return .resolve("\(peer): no answer from the name server")
        }
        memory.missed()
        if peer.isSecure { memory.tookNothing() }
        return .unreachable("\(peer): no \(peer.isSecure ? "TLS " : "")connection in time")
    }

    /// How long the lookup of the name took; nil = it has not ended.
    private var lookup: Duration? {
        var microseconds: curl_off_t = 0
        guard let easy, waypost_curl_get_offset(easy, CURLINFO_NAMELOOKUP_TIME_T, &microseconds) == CURLE_OK,
            microseconds > 0
        else { return nil }
        return .microseconds(microseconds)
    }
}
