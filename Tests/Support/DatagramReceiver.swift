import Glibc

/// A service that listens on a Unix datagram socket: the service manager or journald of a test.
package final class DatagramReceiver {
    package private(set) var fd: Int32 = -1
    private let folder: String
    package let path: String

    package init() throws {
        folder = try makeTemporaryDirectory()
        path = "\(folder)/socket"
        try bind(Array(path.utf8) + [0])
    }

    package init(abstractName: String) throws {
        folder = ""
        path = "@\(abstractName)"
        try bind([0] + Array(abstractName.utf8))
    }

    deinit {
        stop()
        if !folder.isEmpty { rmdir(folder) }
    }

    package func stop() {
        if fd >= 0 { close(fd) }
        fd = -1
        if !folder.isEmpty { unlink(path) }
    }

    package func startAgain() throws { try bind(Array(path.utf8) + [0]) }

    private func bind(_ name: [UInt8]) throws {
        fd = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        let result = withUnixAddress(name) { Glibc.bind(fd, $0, $1) }
        guard result == 0 else {
            throw RunningProgram.Unfinished(text: "bind: \(String(cString: strerror(errno)))")
        }
    }

    /// The datagrams that have arrived. A datagram between Unix sockets is there when its send returns.
    package func datagrams() -> [[UInt8]] {
        var all: [[UInt8]] = []
        var buffer = [UInt8](repeating: 0, count: 262_144)
        while true {
            let count = recv(fd, &buffer, buffer.count, 0)
            if count < 0 { return all }
            all.append(Array(buffer[..<count]))
        }
    }

    package func texts() -> [String] { datagrams().map { String(decoding: $0, as: UTF8.self) } }
}
