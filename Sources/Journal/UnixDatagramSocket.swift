import Glibc

/// A sender of datagrams to a Unix socket that never waits and never raises SIGPIPE.
///
/// The socket is not connected: every send looks its address up again, so that a service that was restarted is found
/// without a reconnect.
struct UnixDatagramSocket: ~Copyable {
    /// Why a datagram did not go out.
    enum Failure: Equatable {
        /// The receiver's queue is full.
        case full
        /// No socket is bound to the address, or not any more.
        case absent
        /// Longer than the socket buffer takes.
        case tooLarge
        /// Anything else, by errno.
        case other(Int32)
    }

    private let fd: Int32
    private let address: UnixAddress

    init(to address: UnixAddress) {
        fd = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        self.address = address
    }

    deinit {
        if fd >= 0 { close(fd) }
    }

    /// nil when the whole datagram was taken.
    func send(_ bytes: [UInt8]) -> Failure? {
        guard fd >= 0 else { return .other(EBADF) }
        while true {
            let sent = address.withSocketAddress { socketAddress, length in
                sendto(fd, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL), socketAddress, length)
            }
            if sent >= 0 { return nil }
            switch errno {
            case EINTR: continue
            case EAGAIN, ENOBUFS: return .full
            case ECONNREFUSED, ENOENT, ECONNRESET, ENOTCONN: return .absent
            case EMSGSIZE: return .tooLarge
            case let code: return .other(code)
            }
        }
    }
}

/// The address of a Unix socket as services announce it: a path, or `@name` in the abstract namespace.
struct UnixAddress: Sendable {
    private let name: [UInt8]

    /// nil unless the text is an absolute path or an abstract name that fits into `sockaddr_un`.
    init?(_ text: String) {
        var bytes = Array(text.utf8)
        let capacity = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
        switch bytes.first {
        case UInt8(ascii: "@"):
            bytes[0] = 0
            guard (2...capacity).contains(bytes.count) else { return nil }
        case UInt8(ascii: "/"):
            guard !bytes.contains(0) else { return nil }
            bytes.append(0)
            guard bytes.count <= capacity else { return nil }
        default: return nil
        }
        name = bytes
    }

    /// An abstract name has exactly the bytes that are passed, so the length must not cover the whole structure.
    func withSocketAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + name.count)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }
}
