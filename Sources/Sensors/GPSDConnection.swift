import CGPS
import Glibc

/// A connection to gpsd through libgps: opens it, subscribes, and hands out the raw lines.
///
/// Everything that knows libgps is in this file. Of its struct only the descriptor is used, since the rest is laid out
/// anew by each release: 3.22 to 3.27 can be compiled against. Used by one thread at a time: made on a thread of its
/// own, then handed over to the loop.
final class GPSDConnection: @unchecked Sendable {
    enum Reading {
        case line([UInt8])
        /// Nothing complete any more for now.
        case nothing
        /// For people.
        case ended(String)
    }

    /// The longest line that libgps can hold; gpsd's own are at most 10 240 bytes.
    private static let bufferBytes = 20_480

    // libgps keeps a pointer to private data in the struct: it must never be copied.
    private let session: UnsafeMutablePointer<gps_data_t>
    private let buffer: UnsafeMutablePointer<CChar>

    /// Connects, which takes as long as the resolver and the network do.
    static func open(host: String, port: UInt16) -> Result<GPSDConnection, SourceProblem> {
        let connection = GPSDConnection()
        errno = 0
        guard gps_open(host, String(port), connection.session) == 0 else {
            return .failure(problem(host: host, port: port, code: errno))
        }
        connection.isOpen = true
        connection.prepare()
        return .success(connection)
    }

    private var isOpen = false

    private init() {
        session = .allocate(capacity: 1)
        // Zeroed as C would: a value of Swift's would have to be copied in.
        memset(session, 0, MemoryLayout<gps_data_t>.stride)
        buffer = .allocate(capacity: Self.bufferBytes)
    }

    deinit {
        if isOpen { gps_close(session) }
        session.deallocate()
        buffer.deallocate()
    }

    /// Readable when lines may be there.
    var descriptor: Int32 { Int32(truncatingIfNeeded: session.pointee.gps_fd) }

    /// Asks for the reports of all devices, or of one.
    /// - Returns: false when the connection does not take it.
    func watch(device: String?) -> Bool {
        guard let device else { return gps_stream(session, numericCast(WATCH_ENABLE | WATCH_JSON), nil) == 0 }
        guard let path = strdup(device) else { return false }
        defer { free(path) }
        return gps_stream(session, numericCast(WATCH_ENABLE | WATCH_JSON | WATCH_DEVICE), path) == 0
    }

    /// - Parameter request: `?DEVICES;`. It is short: a connection that does not take it at once is a dead one.
    /// - Returns: false when the connection does not take it.
    func send(_ request: String) -> Bool {
        var request = request
        return request.withUTF8 { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) == $0.count }
    }

    /// The next line. Lines that came together are kept by libgps, where epoll cannot see them: read on until there is
    /// nothing.
    func read() -> Reading {
        buffer[0] = 0
        errno = 0
        let count = gps_read(session, buffer, Int32(Self.bufferBytes))
        let code = errno
        let length = strnlen(buffer, Self.bufferBytes)
        // Later releases say -1 for a line that they do not understand themselves.
        if count > 0 || (count < 0 && length > 0) {
            return .line(Array(UnsafeRawBufferPointer(start: buffer, count: length)))
        }
        if count == 0 { return .nothing }
        return .ended(code == 0 ? "gpsd closed the connection" : String(cString: strerror(code)))
    }

    /// A peer that is gone without a word is found out within a minute.
    private func prepare() {
        let fd = descriptor
        _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK)
        keepAlive(fd)
    }

    /// - Parameter code: what gps_open left in errno: a number of its own below zero, or one of the system's.
    private static func problem(host: String, port: UInt16, code: Int32) -> SourceProblem {
        let reason = gps_errstr(code).map { String(cString: $0) } ?? "error \(code)"
        return SourceProblem(
            "cannot connect to gpsd at \(host):\(port): \(reason); does it run, and does it listen there?")
    }
}
