import Glibc

/// An address of the internet families, as the socket calls take it.
package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    private var bytes: [UInt8]

    init(copying address: UnsafePointer<sockaddr>, length: socklen_t) {
        bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(length)))
    }

    /// nil unless the host is an IPv4 or IPv6 address in digits. Never waits.
    package init?(numericHost host: String, port: UInt16) {
        guard case .success(let addresses) = Self.lookUp(host: host, port: port, flags: AI_NUMERICHOST),
            let first = addresses.first
        else { return nil }
        self = first
    }

    /// Where a socket is bound; nil where it is not.
    package init?(ofSocket descriptor: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout.size(ofValue: storage))
        let address: SocketAddress? = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length) == 0 ? SocketAddress(copying: $0, length: length) : nil
            }
        }
        guard let address else { return nil }
        self = address
    }

    /// Asks the resolver, which may take many seconds.
    static func resolve(host: String, port: UInt16) -> Result<[SocketAddress], SourceProblem> {
        lookUp(host: host, port: port, flags: AI_ADDRCONFIG)
    }

    private static func lookUp(host: String, port: UInt16, flags: Int32) -> Result<[SocketAddress], SourceProblem> {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = flags | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            let reason = code == EAI_SYSTEM ? String(cString: strerror(errno)) : String(cString: gai_strerror(code))
            return .failure(SourceProblem("cannot find the address of \(host): \(reason)"))
        }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee {
            if let address = entry.ai_addr { found.append(SocketAddress(copying: address, length: entry.ai_addrlen)) }
            next = entry.ai_next
        }
        return .success(found)
    }

    package var family: Int32 {
        bytes.withUnsafeBytes { $0.count >= 2 ? Int32($0.loadUnaligned(as: sa_family_t.self)) : AF_UNSPEC }
    }

    package func withPointer<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) { $0.copyBytes(from: bytes.prefix($0.count)) }
        return withUnsafePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(bytes.count)) }
        }
    }

    package var port: UInt16 {
        bytes.withUnsafeBytes {
            $0.count >= 4 ? UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) : 0
        }
    }

    /// The address without the port, in digits; an IPv4 address that came in over IPv6 in its own form.
    var host: String {
        let text = withPointer { address, length in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer in
                getnameinfo(address, length, buffer.baseAddress, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0
                    ? String(cString: buffer.baseAddress!) : "?"
            }
        }
        return text.hasPrefix("::ffff:") ? String(text.dropFirst(7)) : text
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// Detects a lost TCP peer within a minute.
func keepAlive(_ fd: Int32) {
    for (level, option, value) in [
        (SOL_SOCKET, SO_KEEPALIVE, 1), (Int32(IPPROTO_TCP), TCP_KEEPIDLE, 30), (Int32(IPPROTO_TCP), TCP_KEEPINTVL, 10),
        (Int32(IPPROTO_TCP), TCP_KEEPCNT, 3),
    ] as [(Int32, Int32, Int32)] {
        var value = value
        setsockopt(fd, level, option, &value, socklen_t(MemoryLayout.size(ofValue: value)))
    }
}
