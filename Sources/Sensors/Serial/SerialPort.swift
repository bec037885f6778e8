import CLinux
import Glibc
import WaypostCore

/// Why a source cannot be opened or went away: what, where, the system's reason and what to do about it.
package struct SourceProblem: Error, Hashable, CustomStringConvertible {
    package var description: String
    /// The errno that caused it, 0 when there is none.
    var code: Int32
    /// A library is missing, so that nothing was tried.
    var lacksLibrary: Bool

    init(_ description: String, code: Int32 = 0, lacksLibrary: Bool = false) {
        self.description = description
        self.code = code
        self.lacksLibrary = lacksLibrary
    }

    /// - Parameter what: `cannot open /dev/ttyACM0`.
    init(_ what: String, errno code: Int32, hint: String? = nil) {
        let reason = String(cString: strerror(code))
        self.init(hint.map { "\(what): \(reason); \($0)" } ?? "\(what): \(reason)", code: code)
    }
}

/// An open serial line: raw, 8 data bits, no parity, one stop bit, no flow control, locked against other programs.
final class SerialPort {
    /// What the kernel keeps of a line that is not read.
    static let bufferBytes = 4096

    let fd: Int32
    private let path: String
    /// The node behind the links of the path; nil where /proc does not show it.
    private let node: String?

    /// - Throws: a ``SourceProblem`` that says what to do.
    init(path: String, readsOnly: Bool = false) throws(SourceProblem) {
        // Without O_NONBLOCK the open may wait for carrier.
        let fd = open(path, (readsOnly ? O_RDONLY : O_RDWR) | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        guard fd >= 0 else { throw Self.openProblem(path, errno) }
        self.fd = fd
        self.path = path
        node = Self.node(behind: fd)
        // isatty() says no on emulated lines for which tcgetattr() succeeds.
        var settings = termios()
        guard tcgetattr(fd, &settings) == 0 else { throw Self.notALine(fd, path, errno) }
        // Lines that do not support the call stay shared.
        guard waypost_tty_exclusive(fd) == 0 || errno == ENOTTY else {
            throw SourceProblem("cannot lock \(path)", errno: errno)
        }
    }

    /// Hands bytes to the kernel, which sends them also when the line is closed at once. What does not fit is lost, as
    /// it is when the receiver is busy.
    func write(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            sent += count
        }
    }

    /// Whether an event is about the device behind this line.
    func isNamed(by event: DeviceEvent) -> Bool { event.node == node || event.node == path }

    /// The other end is gone, whatever reading says.
    var isHungUp: Bool {
        var state = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        let broken = Int16(POLLHUP | POLLERR | POLLNVAL)
        return poll(&state, 1, 0) == 1 && state.revents & broken != 0
    }

    deinit {
        close(fd)
    }

    /// The speed that the line has now; nil when it is not one that we know.
    var speed: LineSpeed? {
        var settings = termios()
        guard tcgetattr(fd, &settings) == 0 else { return nil }
        return LineSpeed(code: cfgetospeed(&settings))
    }

    /// Drops what has arrived: it came at another speed.
    func configure(_ speed: LineSpeed?) throws(SourceProblem) {
        var settings = termios()
        guard tcgetattr(fd, &settings) == 0 else {
            throw SourceProblem("cannot read the settings of \(path)", errno: errno)
        }
        cfmakeraw(&settings)
        settings.c_iflag &= ~tcflag_t(IXOFF | IXANY | INPCK | IGNPAR)
        // HUPCL drops DTR at close, which resets some boards.
        settings.c_cflag &= ~(tcflag_t(CSTOPB | HUPCL) | CRTSCTS)
        settings.c_cflag |= tcflag_t(CLOCAL | CREAD)
        // With VMIN 0 a line without bytes would read as end of file, which here means unplugged.
        withUnsafeMutableBytes(of: &settings.c_cc) {
            $0[Int(VMIN)] = 1
            $0[Int(VTIME)] = 0
        }
        if let speed {
            cfsetispeed(&settings, speed.code)
            cfsetospeed(&settings, speed.code)
        }
        guard tcsetattr(fd, TCSANOW, &settings) == 0 else {
            throw SourceProblem("cannot set \(path) to \(speed?.description ?? "raw mode")", errno: errno)
        }
        // tcsetattr() is content when it could do any part of what was asked.
        if let speed, let actual = self.speed, actual != speed {
            throw SourceProblem("\(path) cannot do \(speed); it stays at \(actual)")
        }
        tcflush(fd, TCIFLUSH)
    }

    private static func openProblem(_ path: String, _ code: Int32) -> SourceProblem {
        let hint: String? =
            switch code {
            case ENOENT: "is the receiver plugged in, and does the name still fit? See /dev/serial/by-id"
            case EACCES:
                "no udev rule gives this user access, and it is not in group \(group(of: path) ?? "dialout"), which owns it: "
                    + "sudo waypost init adds the rule, which lasts over plugs and boots"
            // Not the file's mode: a device cgroup denies it.
            case EPERM:
                "blocked by DeviceAllow= of the unit: name its major number there (char-166 ttyACM, char-188 ttyUSB)"
            case EBUSY:
                "another program holds it: gpsd (then use the gpsd source, or USBAUTO=false), ModemManager, a terminal program or another waypost"
            case ENXIO, ENODEV, EIO: "the node is there but no device answers behind it"
            case EISDIR: "it is a folder; name the device in it"
            default: nil
            }
        return SourceProblem("cannot open \(path)", errno: code, hint: hint)
    }

    private static func node(behind fd: Int32) -> String? {
        var name = [CChar](repeating: 0, count: 256)
        let count = readlink("/proc/self/fd/\(fd)", &name, name.count)
        return count > 0 ? String(decoding: name[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    private static func group(of path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0, let entry = getgrgid(status.st_gid) else { return nil }
        return String(cString: entry.pointee.gr_name)
    }

    private static func notALine(_ fd: Int32, _ path: String, _ code: Int32) -> SourceProblem {
        var status = stat()
        let kind =
            switch fstat(fd, &status) == 0 ? status.st_mode & S_IFMT : 0 {
            case S_IFREG: "a regular file"
            case S_IFIFO: "a named pipe"
            case S_IFSOCK: "a socket"
            default: "not a terminal"
            }
        guard code == ENOTTY else { return SourceProblem("\(path) is not a serial line (\(kind))", errno: code) }
        return SourceProblem(
            "\(path) is \(kind), not a serial line; a file or pipe is read by a source of type file", code: code)
    }
}
