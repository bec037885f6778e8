import Glibc
import Testing

@testable import Sensors

/// A receiver on a serial line: the test holds the master side.
final class PseudoTerminal {
    private(set) var master: Int32
    /// Holds the line open, so that its settings can be read and its input seen.
    private let observer: Int32
    let path: String

    init() throws {
        var master: Int32 = -1
        var slave: Int32 = -1
        var name = [CChar](repeating: 0, count: 128)
        try #require(openpty(&master, &slave, &name, nil, nil) == 0)
        for fd in [master, slave] { _ = fcntl(fd, F_SETFD, FD_CLOEXEC) }
        self.master = master
        observer = slave
        path = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit {
        unplug()
        close(observer)
    }

    /// Returns when the bytes can be read on the other side.
    func send(_ text: String) throws {
        try writeAll(text, to: master)
        var ready = pollfd(fd: observer, events: Int16(POLLIN), revents: 0)
        try #require(poll(&ready, 1, 60_000) == 1)
    }

    /// What was written to the receiver since the last call; waits a moment for the first byte.
    func written(milliseconds: Int32 = 0) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        var ready = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
        while poll(&ready, 1, bytes.isEmpty ? milliseconds : 0) == 1, ready.revents & Int16(POLLIN) != 0 {
            let count = read(master, &chunk, chunk.count)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return bytes
    }

    func unplug() {
        if master >= 0 { close(master) }
        master = -1
    }

    var settings: termios {
        var settings = termios()
        tcgetattr(observer, &settings)
        return settings
    }

    var speed: LineSpeed? {
        var settings = settings
        return LineSpeed(code: cfgetospeed(&settings))
    }

    func set(_ speed: LineSpeed) {
        change { _ = cfsetspeed(&$0, speed.code) }
    }

    func change(_ body: (inout termios) -> Void) {
        var settings = settings
        body(&settings)
        tcsetattr(observer, TCSANOW, &settings)
    }
}
