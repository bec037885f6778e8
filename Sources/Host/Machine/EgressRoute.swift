import Glibc

/// The way by which packets to a peer leave this host.
package struct EgressRoute: Hashable {
    /// `wwan0`
    package var interface: String
    /// Our address on it, as text.
    package var address: String

    package init(interface: String, address: String) {
        self.interface = interface
        self.address = address
    }

    /// Asks the routing table; nothing is sent. nil: there is no route.
    ///
    /// - Parameter peer: a numeric address, `::1` without brackets; nil = the default route, IPv4 before IPv6. A name
    ///   is not looked up: the result is nil.
    init?(to peer: String?) {
        // Addresses for documentation: routed as anything far away is.
        let peers = peer.map { [$0] } ?? ["192.0.2.1", "2001:db8::1"]
        for peer in peers {
            guard let address = Self.ownAddress(towards: peer) else { continue }
            guard let interface = Self.interface(of: address) else { continue }
            self.interface = interface
            self.address = address
            return
        }
        return nil
    }

    private static func ownAddress(towards peer: String) -> String? {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(peer, "9", &hints, &found) == 0, let target = found else { return nil }
        defer { freeaddrinfo(target) }
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(target.pointee.ai_family, kind, 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard connect(descriptor, target.pointee.ai_addr, target.pointee.ai_addrlen) == 0 else { return nil }
        var own = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &own) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(descriptor, $0, &length) == 0 ? text(of: $0, length) : nil
            }
        }
    }

    private static func interface(of address: String) -> String? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0, let first = list else { return nil }
        defer { freeifaddrs(first) }
        for entry in sequence(first: first, next: { $0.pointee.ifa_next }) {
            guard let own = entry.pointee.ifa_addr else { continue }
            let length: Int
            switch Int32(own.pointee.sa_family) {
            case AF_INET: length = MemoryLayout<sockaddr_in>.size
            case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
            default: continue
            }
            if text(of: own, socklen_t(length)) == address { return String(cString: entry.pointee.ifa_name) }
        }
        return nil
    }

    private static func text(of address: UnsafePointer<sockaddr>, _ length: socklen_t) -> String? {
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(address, length, &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0 else {
            return nil
        }
        return host.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } }
    }
}
