import CCurl
import Glibc

/// The address from which packets leave this host.
struct HostRoute: Hashable {
    /// A socket address without its port.
    private let address: [UInt8]

    /// The address to which a connection is bound; nil = none yet.
    init?(of descriptor: Int32) {
        guard let own = Self.socketAddress({ getsockname(descriptor, $0, $1) }).flatMap(Self.host) else { return nil }
        address = own
    }

    /// The address from which packets to a peer leave now; nil = there is no route. Nothing is sent.
    ///
    /// - Parameter peer: a socket address.
    init?(to peer: [UInt8]) {
        guard let family = Self.family(peer) else { return nil }
        let probe = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard probe >= 0 else { return nil }
        defer { close(probe) }
        let isRouted = peer.withUnsafeBytes {
            connect(probe, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
        }
        guard isRouted else { return nil }
        self.init(of: probe)
    }

    /// The socket address of the other end; nil = there is none.
    static func peer(of descriptor: Int32) -> [UInt8]? { socketAddress { getpeername(descriptor, $0, $1) } }

    /// Whether a connection is bound to an address from which packets to its peer do not leave any more.
    ///
    /// - Parameter peer: nil = the one that it is connected to.
    static func isGone(_ descriptor: Int32, to peer: [UInt8]? = nil) -> Bool {
        guard let own = HostRoute(of: descriptor), let peer = peer ?? Self.peer(of: descriptor) else { return false }
        return HostRoute(to: peer) != own
    }

    /// Where packets to anybody far away leave, by IPv4 and by IPv6; nil = they do not.
    static var ofStrangers: [HostRoute?] {
        // Addresses for documentation, with the port of the discard protocol.
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        four.sin_port = in_port_t(9).bigEndian
        four.sin_addr.s_addr = inet_addr("192.0.2.1")
        var six = sockaddr_in6()
        six.sin6_family = sa_family_t(AF_INET6)
        six.sin6_port = in_port_t(9).bigEndian
        _ = inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr)
        return [
            withUnsafeBytes(of: &four) { HostRoute(to: Array($0)) },
            withUnsafeBytes(of: &six) { HostRoute(to: Array($0)) },
        ]
    }

    /// Whether packets to anybody far away leave by IPv4.
    static var hasIPv4: Bool { ofStrangers[0] != nil }

    private static func socketAddress(
        _ read: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> [UInt8]? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { read($0, &length) }
        }
        guard status == 0 else { return nil }
        return withUnsafeBytes(of: &storage) { Array($0.prefix(Int(length))) }
    }

    private static func family(_ address: [UInt8]) -> Int32? {
        guard address.count >= MemoryLayout<sockaddr_in>.size else { return nil }
        return Int32(address.withUnsafeBytes { $0.loadUnaligned(as: sa_family_t.self) })
    }

    /// nil = of another family, or not bound.
    private static func host(_ address: [UInt8]) -> [UInt8]? {
        let range: Range<Int>
        switch family(address) {
        case AF_INET: range = 4..<8
        case AF_INET6: range = 8..<24
        default: return nil
        }
        guard address.count >= range.upperBound, address[range].contains(where: { $0 != 0 }) else { return nil }
        return Array(address[range])
    }
}
