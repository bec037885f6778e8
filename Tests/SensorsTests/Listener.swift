import CLinux
import Glibc
import Testing

@testable import Sensors

/// A server on loopback that the test accepts and writes for.
final class Listener {
    private let fd: Int32
    let port: UInt16
    private(set) var client: Int32 = -1

    /// - Parameter listens: false = the port is taken, but connections to it are refused.
    init(listens: Bool = true) throws {
        let address = try #require(SocketAddress(numericHost: "127.0.0.1", port: 0))
        let kind: UInt32 = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
        let fd: Int32 = socket(AF_INET, Int32(kind), 0)
        self.fd = fd
        let bound: Int32 = address.withPointer { bind(fd, $0, $1) }
        let isReady = bound == 0 && (!listens || listen(fd, 4) == 0)
        try #require(isReady)
        port = try #require(localPort(fd))
    }

    deinit {
        hangUp()
        close(fd)
    }

    var isAskedFor: Bool {
        var ready = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return poll(&ready, 1, 0) == 1
    }

    func accept() throws {
        var ready = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        try #require(poll(&ready, 1, 60_000) == 1)
        client = waypost_accept(fd)
        try #require(client >= 0)
    }

    func hangUp() {
        if client >= 0 { close(client) }
        client = -1
    }
}

func localPort(_ fd: Int32) -> UInt16? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout.size(ofValue: storage))
    return withUnsafeMutablePointer(to: &storage) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            getsockname(fd, $0, &length) == 0 ? SocketAddress(copying: $0, length: length).port : nil
        }
    }
}
