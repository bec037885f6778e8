import CCurl
import Glibc
import Protocols
import WaypostCore

/// Sends requests over HTTP(S): libcurl's multi interface inside a loop that it does not own.
///
/// The loop watches the descriptors that `watch` names, calls `descriptorReady` when one is ready and `deadlineReached`
/// at `nextDeadline`, which it reads again after every call into the uplink. Nothing here blocks, and all limits run on
/// the `at` that the loop hands in. Completions are called from inside `descriptorReady` and `deadlineReached` and may
/// call `send` and `close`.
///
/// The process must ignore SIGPIPE: libcurl leaves it alone without signals (CURLOPT_NOSIGNAL), and OpenSSL writes to a
/// connection that the server has reset.
///
/// HTTP/1.1 with kept connections; no redirects, no cookies, no proxy, no compressed replies, no `Expect`.
package final class HTTPUplink {
    package let settings: Settings
    /// What went over the wire since the start.
    package var counters: Counters {
        var all = ended
        all.unaskedAnswers = connections.unaskedAnswers
        return all
    }
    /// Of requests that have ended.
    private var ended = Counters()

    private let watch: (Int32, Interest?) -> Void
    private let isClockTrusted: () -> Bool
    private let instant = CurrentInstant()
    private let connections = KeptConnections()
    private let handles: CurlHandles
    private var multi: CurlMulti?
    /// Sent, but not yet given to libcurl: that waits for a call that passes the time.
    private var arrivals: [Arrival] = []
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
    /// Ended, to be reported.
    private var outcomes: [Ending] = []
    private var curlDeadline: EventTime?
    /// When to close the kept connections; nil when there are none or something is in flight.
    private var idleDeadline: EventTime?
    /// The latest of the idle limits of all connections that may be kept.
    private var keptUntil = EventTime.zero
    /// Until then no connection is kept, and none opened before is reused; nil = as usual.
    private var keepsNoneUntil: EventTime?
    private static let sleepLimit = Duration.seconds(10)
    private static let lookupLook = Duration.seconds(5)
    private var isClosed = false
    private var lastNumber = 0
    /// By host and port; of this link.
    private var memory: [String: ConnectMemory] = [:]
    private static let peersMax = 64
    /// By which packets left when links were last looked at; nil = they never were.
    private var routes: [HostRoute?]?

    private struct Arrival {
        var id: UplinkTransfer
        var request: UplinkRequest
        var completion: (UplinkOutcome) -> Void
    }

    private struct Ending {
        var id: UplinkTransfer
        var outcome: UplinkOutcome
        var completion: (UplinkOutcome) -> Void
    }

    /// - Parameters:
    ///   - isClockTrusted: whether the wall clock is known to be right: a certificate that is out of date is then the
    ///     server's fault, else perhaps ours.
    ///   - watch: called with what to wait for on a descriptor, nil to forget it. It must not call back.
    /// - Throws: `SetupError` when libcurl does not start or the file of authorities cannot be read.
    package init(
        settings: Settings, isClockTrusted: @escaping () -> Bool = { true }, watch: @escaping (Int32, Interest?) -> Void
    ) throws(SetupError) {
        if let file = settings.caFile, access(file, R_OK) != 0 {
            let cause = String(cString: strerror(errno))
            throw SetupError(description: "\(file): \(cause); it must contain the trusted CA certificates, in PEM")
        }
        self.settings = settings
        self.watch = watch
        self.isClockTrusted = isClockTrusted
        handles = try CurlHandles(settings, connections: connections)
    }

    deinit { close() }

    /// Boot-clock instant at which `deadlineReached` is wanted; nil = none. After `send` it is `.zero`: at once.
    package var nextDeadline: EventTime? {
        if isClosed { return nil }
        if !arrivals.isEmpty || !outcomes.isEmpty { return .zero }
        let limits = transfers.values.map { $0.limit(settings).at }
        return ([curlDeadline, idleDeadline].compactMap { $0 } + limits).min()
    }

    /// Requests that have not ended.
    package var requestsInFlight: Int { arrivals.count + transfers.count }

    /// Bytes of answers that have not come to an end.
    var bytesArrivedInFlight: Int { transfers.values.reduce(0) { $0 + $1.progress.bytesReceived } }

    /// After `close` a request is dropped silently.
    @discardableResult
    package func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer {
        lastNumber += 1
        let id = UplinkTransfer(lastNumber)
        if !isClosed { arrivals.append(Arrival(id: id, request: request, completion: completion)) }
        return id
    }

    /// Closes its connection, unless it has ended. Not to be called from inside `watch`.
    package func cancel(_ transfer: UplinkTransfer) {
        arrivals.removeAll { $0.id == transfer }
        outcomes.removeAll { $0.id == transfer }
        guard let easy = transfers.first(where: { $0.value.id == transfer })?.key, let given = release(easy) else {
            return
        }
        count(given)
        readTimer()
    }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool, at now: EventTime) {
        guard !isClosed else { return }
        instant.value = now
        drive(descriptor, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0))
        report()
    }

    package func deadlineReached(at now: EventTime) {
        guard !isClosed else { return }
        instant.value = now
        let started = startArrivals()
        if started || curlDeadline.map({ $0 <= now }) == true { drive(CURL_SOCKET_TIMEOUT, 0) }
        expire()
        if let idleDeadline, idleDeadline <= now { closeConnections() }
        report()
    }

    /// While a request is in flight the idle connections stay open, since libcurl closes them only together: they are
    /// not reused, and close once nothing is in flight.
    package func closeIdleConnections(at now: EventTime) {
        keepsNoneUntil = now + Self.sleepLimit
        if transfers.isEmpty { closeConnections() }
    }

    /// Links, addresses or routes of this host may have changed: ends the requests that wait for something which is bound to one
    /// that is gone, and closes the idle connections that are.
    package func linksChanged(at now: EventTime) {
        guard !isClosed else { return }
        instant.value = now
        let found = HostRoute.ofStrangers
        let hasChanged = found != routes
        routes = found
        if hasChanged { memory = memory.mapValues { $0.overAnotherLink(hasIPv4: found[0] != nil) } }
        connections.linksChanged(hasChanged, except: transfers.values.compactMap(\.connection))
        for (easy, transfer) in transfers where transfer.isStranded(hasChanged) { end(easy, transfer.strandedOutcome) }
        readTimer()
    }

    private func closeConnections() {
        idleDeadline = nil
        curlDeadline = nil
        // libcurl has no call for this; its connections end with the multi handle. TLS sessions stay.
        multi?.close()
        multi = nil
    }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        arrivals = []
        outcomes = []
        for easy in transfers.keys { _ = release(easy) }
        multi?.close()
        multi = nil
        handles.close()
    }
}

extension HTTPUplink {
    private func startArrivals() -> Bool {
        let waiting = arrivals
        arrivals = []
        if let until = keepsNoneUntil, until <= instant.value, transfers.isEmpty { keepsNoneUntil = nil }
        for arrival in waiting {
            if let failure = start(arrival) {
                ended.requests += 1
                outcomes.append(
                    Ending(
                        id: arrival.id, outcome: UplinkOutcome(.failed(failure), written: .nothing),
                        completion: arrival.completion))
            }
        }
        return !waiting.isEmpty
    }

    /// Why the request cannot begin; nil when it is under way.
    private func start(_ arrival: Arrival) -> TransportFailure? {
        let request = arrival.request
        guard let peer = Peer(url: request.url) else {
            return .broken("the URL of the endpoint is not one of http or https with a host")
        }
        if let index = request.headers.firstIndex(where: \.breaksTheHead) {
            return .broken("\(peer): header \(index + 1) of the request has no plain name or holds a line break")
        }
        guard request.method.isToken else { return .broken("\(peer): the method of the request is not one word") }
        let limits = ReplyReader.Limits(
            body: request.replyLimit, head: settings.replyHeadLimit, headers: settings.replyHeaderCountLimit)
        let transfer = Transfer(
            arrival.id, request, peer: peer, connections: connections, memory: memory["\(peer)"] ?? ConnectMemory(),
            limits: limits,
            measuresStages: settings.measuresStages, instant: instant, isClockTrusted: isClockTrusted,
            completion: arrival.completion)
        guard let multi = openMulti() else { return .broken("\(peer): no memory for a request") }
        let easy: UnsafeMutableRawPointer
        do throws(SetupError) { easy = try handles.prepare(transfer) } catch { return .broken("\(peer): \(error)") }
        let unaskedBefore = connections.unaskedAnswers
        let isUnclean = connections.shutUnclean(to: peer, except: transfers.values.compactMap(\.connection))
        if keepsNoneUntil != nil || isUnclean { _ = waypost_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1) }
        transfer.followsUnasked = connections.unaskedAnswers > unaskedBefore
        transfers[easy] = transfer
        idleDeadline = nil
        transfer.multi = multi
        guard let problem = multi.add(easy) else { return nil }
        _ = release(easy)
        return .broken("\(peer): \(problem)")
    }

    private func drive(_ descriptor: Int32, _ events: Int32) {
        guard let multi else { return }
        multi.drive(descriptor, events)
        while let (easy, code) = multi.nextFinished() {
            guard let transfer = transfers[easy] else { continue }
            if transfer.progress.mayRepeat, Self.isBrokenConnection(code) {
                repeatOnFreshConnection(transfer, easy, multi)
                multi.drive(CURL_SOCKET_TIMEOUT, 0)
            } else {
                note(transfer, code)
                end(easy, transfer.outcome(code))
            }
        }
        guard events & CURL_CSELECT_IN != 0,
            let (easy, transfer) = transfers.first(where: { multi.descriptor(of: $0.key) == descriptor }),
            let outcome = transfer.outcomeOfFlood()
        else { return }
        end(easy, outcome)
    }

    /// libcurl repeats by itself when reading fails before the first byte of the answer, but not when writing does.
    private static func isBrokenConnection(_ code: CURLcode) -> Bool {
        code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING
    }

    private func repeatOnFreshConnection(
        _ transfer: Transfer, _ easy: UnsafeMutableRawPointer, _ multi: CurlMulti
    ) {
        multi.remove(easy)
        transfer.repeated()
        _ = waypost_curl_set_long(easy, CURLOPT_FRESH_CONNECT, 1)
        if multi.add(easy) != nil { end(easy, transfer.outcome(CURLE_SEND_ERROR)) }
    }

    private func expire() {
        var hasRepeated = false
        for (easy, transfer) in transfers where transfer.limit(settings).at <= instant.value {
            // Only now, since it costs system calls: has the peer acknowledged more of it meanwhile?
            transfer.look()
            let limit = transfer.limit(settings)
            guard limit.at <= instant.value else { continue }
            if transfer.progress.mayBeForgotten, let multi, let connection = transfer.connection {
                connections.ended(connection, beganAt: transfer.progress.beganAt, wasAnswered: false)
                repeatOnFreshConnection(transfer, easy, multi)
                hasRepeated = true
            } else {
                note(transfer, expired: limit)
                end(easy, transfer.outcome(expired: limit))
            }
        }
        if hasRepeated { drive(CURL_SOCKET_TIMEOUT, 0) }
    }

    /// Learns from how it ended with libcurl.
    private func note(_ transfer: Transfer, _ code: CURLcode) {
        if code == CURLE_OK, transfer.progress.isOverKept, let connection = transfer.connection {
            connections.ended(connection, beganAt: transfer.progress.beganAt, wasAnswered: true)
        }
        learn(of: transfer.peer) { memory in
            if let lookup = transfer.lookup { memory.lookedUp(in: lookup, hasIPv4: HostRoute.hasIPv4) }
            guard code == CURLE_COULDNT_RESOLVE_HOST else { return }
            memory.failedToLookUp(in: instant.value.duration(since: transfer.progress.beganAt))
        }
    }

    private func note(_ transfer: Transfer, expired limit: Transfer.Limit) {
        learn(of: transfer.peer) { memory in
            switch limit.failure {
            case .resolve: memory.lookedUp(in: settings.lookupLimit, hasIPv4: HostRoute.hasIPv4)
            case .unreachable: memory.missed()
            case .tls:
                memory.missed()
                memory.tookNothing()
            case .timeout where transfer.progress.isUntouched: memory.tookNothing()
            default: break
            }
        }
    }

    private func learn(of peer: Peer, _ change: (inout ConnectMemory) -> Void) {
        let known = memory["\(peer)"] ?? ConnectMemory()
        var changed = known
        change(&changed)
        guard changed != known else { return }
        if memory.count >= Self.peersMax { memory = [:] }
        memory["\(peer)"] = changed
    }

    private func end(_ easy: UnsafeMutableRawPointer, _ outcome: UplinkOutcome) {
        guard let transfer = release(easy) else { return }
        keptUntil = max(keptUntil, instant.value + (transfer.request.idleLimit ?? settings.idleLimit))
        count(transfer)
        outcomes.append(Ending(id: transfer.id, outcome: outcome, completion: transfer.completion))
    }

    private func count(_ transfer: Transfer) {
        ended.requests += 1
        ended.connections += transfer.progress.connectionsOpened
        ended.repeatedOnFreshConnection += transfer.progress.repeats
        ended.bytesSent += transfer.progress.bytesSent
        ended.bytesReceived += transfer.progress.bytesReceived
    }

    /// Takes a transfer away from libcurl, which closes its connection unless it ended well.
    private func release(_ easy: UnsafeMutableRawPointer) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: easy) else { return nil }
        // Outside a multi handle it no longer knows.
        if let connection = transfer.connection { connections.kept(connection, at: instant.value) }
        multi?.remove(easy)
        handles.recycle(easy, of: transfer)
        return transfer
    }

    /// Reads libcurl's own timer and reports what has ended, when libcurl is no longer on the stack.
    private func report() {
        readTimer()
        while !outcomes.isEmpty {
            let ending = outcomes.removeFirst()
            ending.completion(ending.outcome)
        }
    }

    private func readTimer() {
        if transfers.isEmpty, keepsNoneUntil != nil {
            closeConnections()
        } else if transfers.isEmpty {
            // libcurl's timer then concerns transfers that are gone.
            curlDeadline = nil
            if multi != nil, idleDeadline == nil { idleDeadline = max(keptUntil, instant.value) }
        } else {
            curlDeadline = multi?.timer.map { instant.value + max($0, lookupPause) }
        }
    }

    /// libcurl wants to be called five times a second while a name is looked up, although a descriptor tells when that has ended.
    private var lookupPause: Duration {
        let areTold = transfers.allSatisfy { easy, transfer in
            transfer.isLookingUp && multi?.descriptor(of: easy) != nil
        }
        return areTold ? Self.lookupLook : .zero
    }

    private func openMulti() -> CurlMulti? {
        if let multi { return multi }
        guard let fresh = CurlMulti(watch: watch) else { return nil }
        _ = waypost_curl_multi_set_long(fresh.handle, CURLMOPT_PIPELINING, Int(CURLPIPE_NOTHING))
        _ = waypost_curl_multi_set_long(fresh.handle, CURLMOPT_MAXCONNECTS, Settings.keptMost)
        multi = fresh
        return fresh
    }
}

extension UplinkRequest.Header {
    /// Anything that would end up as a line or a header of its own.
    fileprivate var breaksTheHead: Bool {
        !name.isToken || value.utf8.contains(where: \.breaksHeader)
    }
}

extension String {
    /// A token of RFC 9110, 5.6.2, as names of headers and methods are.
    fileprivate var isToken: Bool { !isEmpty && utf8.allSatisfy(\.isTokenCharacter) }
}
