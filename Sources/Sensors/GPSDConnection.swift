import CGPS
import Glibc

/// A connection to gpsd through libgps: opens it, subscribes, and hands out the raw lines.
///
/// Everything that knows libgps is in this file. Of its struct only the descriptor is used, since the rest is laid out
/// anew by each release: 3.22 to 3.27 can be compiled against. Lines are not read by `gps_read`: it unpacks each of them
/// into the struct, and the unpacking of 3.22 never comes back from some damaged ones. Used by one thread at a time: made
/// on a thread of its own, then handed over to the loop.
final class GPSDConnection: @unchecked Sendable {
    enum Reading {
        case line([UInt8])
        /// Nothing complete any more for now.
        case nothing
        /// For people.
        case ended(String)
    }

    /// gpsd's own lines have at most 10 240 bytes.
    private static let longestLine = 20_480

    // libgps keeps a pointer to private data in the struct: it must never be copied.
    private let session: UnsafeMutablePointer<gps_data_t>
    private var lines = LineBuffer(longestLine: longestLine)
    private var isOpen = false

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

    private init() {
        session = .allocate(capacity: 1)
        // Zeroed as C would: a value of Swift's would have to be copied in.
        memset(session, 0, MemoryLayout<gps_data_t>.stride)
    }

    deinit {
        if isOpen { gps_close(session) }
        session.deallocate()
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

    /// The next line. Lines that came together are kept here, where epoll cannot see them: read on until there is nothing.
    func read() -> Reading {
        while true {
            if let line = lines.nextLine() { return .line(line) }
            let fd = descriptor
            guard let count = lines.fill({ recv(fd, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT)) }) else {
                return .ended("a line of \(Self.longestLine) bytes does not end")
            }
            if count > 0 { continue }
            if count == 0 { return .ended("gpsd closed the connection") }
            let code = errno
            if code == EINTR { continue }
            return code == EAGAIN ? .nothing : .ended(String(cString: strerror(code)))
        }
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
