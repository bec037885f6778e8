import CCurl
import Glibc
import Protocols

/// libcurl's easy handles: set up for a transfer, kept for the next one, with the TLS sessions that they share.
final class CurlHandles {
    private let settings: HTTPUplink.Settings
    private let connections: KeptConnections
    private var spare: [UnsafeMutableRawPointer] = []
    private var share: UnsafeMutableRawPointer?

    private static let mostSpare = 4
    /// libcurl reads up to a hundred times as much before anybody can look at how much has come.
    private static let bufferSize = 1024
    /// When it starts, libcurl reads the name of a file to which it then writes the keys of each connection; OpenSSL since 3.5
    /// may do so too. Whoever can read that file can read what was sent, tokens included.
    private static let started: CURLcode = {
        unsetenv("SSLKEYLOGFILE")
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    }()

    /// - Parameter connections: outlive these handles, and all connections of the transfers that they are prepared for.
    init(
        _ settings: HTTPUplink.Settings, connections: KeptConnections = KeptConnections()
    ) throws(HTTPUplink.SetupError) {
        guard Self.started == CURLE_OK, let share = curl_share_init() else {
            throw HTTPUplink.SetupError(
                description: "libcurl does not start: \(String(cString: curl_easy_strerror(Self.started)))")
        }
        self.settings = settings
        self.connections = connections
        self.share = share
        // Sessions outlive connections, so that a new one costs half a handshake.
        _ = waypost_curl_share_set_data(share, CURL_LOCK_DATA_SSL_SESSION)
    }

    deinit { close() }

    /// A handle with everything set for the transfer.
    ///
    /// - Throws: what libcurl refuses, in its words.
    func prepare(_ transfer: Transfer) throws(HTTPUplink.SetupError) -> UnsafeMutableRawPointer {
        let easy = try unusedHandle()
        var setup = EasySetup(easy)
        setRules(&setup)
        setTLS(&setup, transfer.request.tls)
        setAddresses(&setup, transfer.memory)
        setRequest(&setup, transfer)
        setCallbacks(&setup, transfer)
        transfer.easy = easy
        if let code = setup.failed {
            recycle(easy, of: transfer)
            let reason = String(cString: curl_easy_strerror(code))
            throw HTTPUplink.SetupError(description: "libcurl refuses a request: \(reason)")
        }
        return easy
    }

    /// One whose buffer is as large as ours.
    private func unusedHandle() throws(HTTPUplink.SetupError) -> UnsafeMutableRawPointer {
        while let easy = spare.popLast() {
            if waypost_curl_set_long(easy, CURLOPT_BUFFERSIZE, Self.bufferSize) == CURLE_OK { return easy }
            // It still has the buffer of a transfer that ended before there was a connection, as when a name was not found.
            curl_easy_cleanup(easy)
        }
        guard let easy = curl_easy_init() else {
            throw HTTPUplink.SetupError(description: "no memory for a request")
        }
        _ = waypost_curl_set_long(easy, CURLOPT_BUFFERSIZE, Self.bufferSize)
        return easy
    }

    /// A handle that connects, with TLS where the URL is one of https, and leaves the connection to us; nil when memory is
    /// short. It is the caller's, who cleans it up.
    func prepareConnection(
        url: String, _ tls: TLSSettings?, _ memory: ConnectMemory, errorText: UnsafeMutablePointer<CChar>
    ) -> UnsafeMutableRawPointer? {
        guard let easy = curl_easy_init() else { return nil }
        var setup = EasySetup(easy)
        setRules(&setup)
        setTLS(&setup, tls)
        setAddresses(&setup, memory)
        setup.set(CURLOPT_URL, url)
        setup.set(CURLOPT_CONNECT_ONLY, 1)
        // Else the server might choose HTTP/2, which libcurl would then begin to speak.
        setup.set(CURLOPT_SSL_ENABLE_ALPN, 0)
        setup.set(CURLOPT_ERRORBUFFER, pointer: errorText)
        setup.setOpenSocket(memory.isShort ? onOpenShortSocket : onOpenSocket)
        guard setup.failed == nil else {
            curl_easy_cleanup(easy)
            return nil
        }
        return easy
    }

    /// Accepts a handle that is no longer in a multi handle.
    func recycle(_ easy: UnsafeMutableRawPointer, of transfer: Transfer) {
        transfer.easy = nil
        // Forgets the addresses of the transfer's memory first.
        curl_easy_reset(easy)
        curl_slist_free_all(transfer.headerList)
        transfer.headerList = nil
        if share != nil, spare.count < Self.mostSpare {
            spare.append(easy)
        } else {
            curl_easy_cleanup(easy)
        }
    }

    func close() {
        for easy in spare { curl_easy_cleanup(easy) }
        spare = []
        if let share { curl_share_cleanup(share) }
        share = nil
    }

    private func setRules(_ setup: inout EasySetup) {
        if let share { setup.set(CURLOPT_SHARE, pointer: share) }
        setup.set(CURLOPT_NOSIGNAL, 1)
        // A hanging name lookup must not block the loop when its transfer is given up.
        setup.set(CURLOPT_QUICK_EXIT, 1)
        setup.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        setup.set(CURLOPT_PROTOCOLS_STR, "http,https")
        setup.set(CURLOPT_FOLLOWLOCATION, 0)
        // Also keeps http_proxy and its kin in the environment without effect.
        setup.set(CURLOPT_PROXY, "")
        setup.set(CURLOPT_USERAGENT, "waypost/\(settings.version)")
        setup.set(CURLOPT_DNS_CACHE_TIMEOUT, 0)
        setup.set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, 250)
        setup.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        setup.set(CURLOPT_SSL_VERIFYPEER, 1)
        setup.set(CURLOPT_SSL_VERIFYHOST, 2)
        if settings.measuresStages { setup.set(CURLOPT_CERTINFO, 1) }
    }

    /// libcurl compares all of this before it uses a kept connection or a TLS session for another request.
    private func setTLS(_ setup: inout EasySetup, _ tls: TLSSettings?) {
        if let file = tls?.authorities ?? settings.caFile {
            setup.set(CURLOPT_CAINFO, file)
            setup.set(CURLOPT_CAPATH, nil)
        }
        if let file = tls?.certificate {
            setup.set(CURLOPT_SSLCERT, file)
            setup.set(CURLOPT_SSLKEY, tls?.key ?? file)
            // Without one OpenSSL would ask the terminal for the password of an encrypted key.
            setup.set(CURLOPT_KEYPASSWD, "")
        }
        if let pins = tls?.pins, !pins.isEmpty {
            setup.set(CURLOPT_PINNEDPUBLICKEY, pins.map { "sha256//\($0)" }.joined(separator: ";"))
        }
    }

    private func setAddresses(_ setup: inout EasySetup, _ memory: ConnectMemory) {
        let kind = memory.isIPv4Alone ? CURL_IPRESOLVE_V4 : CURL_IPRESOLVE_WHATEVER
        setup.set(CURLOPT_IPRESOLVE, Int(kind))
    }

    private func setRequest(_ setup: inout EasySetup, _ transfer: Transfer) {
        let request = transfer.request
        setup.set(CURLOPT_URL, request.url)
        if request.connectsAlone { setup.set(CURLOPT_CONNECT_ONLY, 1) }
        var idleLimit = request.idleLimit ?? settings.idleLimit
        if let learnt = connections.silence.limit { idleLimit = min(idleLimit, learnt) }
        setup.set(CURLOPT_MAXAGE_CONN, max(Int(idleLimit.inSeconds), 1))
        setup.set(CURLOPT_PATH_AS_IS, 1)
        if request.method == "GET" && request.body.isEmpty {
            setup.set(CURLOPT_HTTPGET, 1)
        } else {
            setup.set(CURLOPT_POST, 1)
            setup.set(CURLOPT_POSTFIELDSIZE_LARGE, offset: transfer.body.count)
            setup.set(CURLOPT_POSTFIELDS, pointer: transfer.body.bytes.baseAddress)
            setup.set(CURLOPT_CUSTOMREQUEST, request.method)
        }
        transfer.headerList = Self.headerList(transfer)
        setup.set(CURLOPT_HTTPHEADER, list: transfer.headerList)
    }

    private func setCallbacks(_ setup: inout EasySetup, _ transfer: Transfer) {
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        setup.set(CURLOPT_ERRORBUFFER, pointer: transfer.errorText)
        setup.set(CURLOPT_HEADERFUNCTION, function: onHeadLine)
        setup.set(CURLOPT_HEADERDATA, pointer: context)
        setup.set(CURLOPT_WRITEFUNCTION, function: onBody)
        setup.set(CURLOPT_WRITEDATA, pointer: context)
        setup.setOpenSocket(transfer.memory.isShort ? onOpenShortSocket : onOpenSocket)
        setup.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        // Connections outlive the transfer.
        setup.setCloseSocket(onCloseSocket)
        setup.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(connections).toOpaque())
        // The only exact account of what goes over the wire, repeats included; the texts are thrown away.
        setup.setDebug(onDebug)
        setup.set(CURLOPT_DEBUGDATA, pointer: context)
        setup.set(CURLOPT_VERBOSE, 1)
    }

    /// The request's headers in their order, without those that libcurl would add by itself.
    private static func headerList(_ transfer: Transfer) -> UnsafeMutablePointer<curl_slist>? {
        let own: Set<String> = ["content-length", "host", "user-agent", "expect", "transfer-encoding"]
        var lines: [String] = ["Expect:"]
        var given: Set<String> = []
        for header in transfer.request.headers {
            let name = header.name.lowercased()
            guard !own.contains(name), !(transfer.body.isGzipped && name == "content-encoding") else { continue }
            given.insert(name)
            // libcurl's spelling of a header without a value.
            lines.append(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        if transfer.body.isGzipped { lines.append("Content-Encoding: gzip") }
        // Bodies are read as they come; without a word a server or proxy may compress them.
        if !given.contains("accept-encoding") { lines.append("Accept-Encoding: identity") }
        for name in ["Accept", "Content-Type"] where !given.contains(name.lowercased()) { lines.append("\(name):") }
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            guard let longer = curl_slist_append(list, line) else { break }
            list = longer
        }
        return list
    }
}

/// Sets options and remembers the first that was refused.
private struct EasySetup {
    let easy: UnsafeMutableRawPointer
    private(set) var failed: CURLcode?

    init(_ easy: UnsafeMutableRawPointer) { self.easy = easy }

    private mutating func note(_ code: CURLcode) {
        if code != CURLE_OK, failed == nil { failed = code }
    }

    mutating func set(_ option: CURLoption, _ value: Int) { note(waypost_curl_set_long(easy, option, value)) }

    mutating func set(_ option: CURLoption, _ value: String?) { note(waypost_curl_set_text(easy, option, value)) }

    mutating func set(_ option: CURLoption, offset: Int) {
        note(waypost_curl_set_offset(easy, option, curl_off_t(offset)))
    }

    mutating func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
        note(waypost_curl_set_pointer(easy, option, pointer))
    }

    mutating func set(_ option: CURLoption, list: UnsafeMutablePointer<curl_slist>?) {
        note(waypost_curl_set_list(easy, option, list))
    }

    mutating func set(_ option: CURLoption, function: curl_write_callback) {
        note(waypost_curl_set_data_function(easy, option, function))
    }

    mutating func setOpenSocket(_ function: curl_opensocket_callback) {
        note(waypost_curl_set_opensocket_function(easy, function))
    }

    mutating func setCloseSocket(_ function: curl_closesocket_callback) {
        note(waypost_curl_set_closesocket_function(easy, function))
    }

    mutating func setDebug(_ function: curl_debug_callback) { note(waypost_curl_set_debug_function(easy, function)) }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
    context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

private let onHeadLine: curl_write_callback = { bytes, size, count, context in
    let length = size * count
    let line = UnsafeRawBufferPointer(start: bytes, count: length)
    return transfer(context)?.headLineArrived(line) == true ? length : 0
}

private let onBody: curl_write_callback = { bytes, size, count, context in
    let length = size * count
    return transfer(context)?.bodyArrived(UnsafeRawBufferPointer(start: bytes, count: length)) == true ? length : 0
}

private let onDebug: curl_debug_callback = { _, kind, _, count, context in
    transfer(context)?.bytesMoved(kind, count)
    return 0
}

private let onOpenSocket: curl_opensocket_callback = { context, _, place in openSocket(context, place) }

/// See `ConnectMemory.isShort`. Each host takes packets of 576 bytes.
private let onOpenShortSocket: curl_opensocket_callback = { context, _, place in
    let descriptor = openSocket(context, place)
    var bytes: Int32 = 536
    if descriptor >= 0 {
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_MAXSEG, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }
    return descriptor
}

/// As libcurl's own, but closed on exec: a token command of a child process must not inherit the connection.
private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ place: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let place, let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return CURL_SOCKET_BAD }
    let address = place.pointee
    let descriptor = socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.`protocol`)
    guard descriptor >= 0 else { return descriptor }
    waypost_tcp_limit_silence(descriptor, HTTPUplink.Settings.silenceMax)
    // The kernel would take megabytes of an answer without end before anybody can look at it.
    var bytes = HTTPUplink.Settings.receiveBuffer
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    if let transfer = transfer(context) {
        // An address of IPv6 is longer than the member that holds it.
        let bytes = UnsafeRawBufferPointer(start: UnsafeRawPointer(place) + offset, count: Int(address.addrlen))
        transfer.socketOpened(descriptor, at: Array(bytes))
    }
    return descriptor
}

private let onCloseSocket: curl_closesocket_callback = { context, descriptor in
    if let context { Unmanaged<KeptConnections>.fromOpaque(context).takeUnretainedValue().closed(descriptor) }
    return close(descriptor)
}
