import Glibc

/// A connection to gpsd through libgps: opens it, subscribes, and hands out the raw lines.
///
/// Lines are not read by `gps_read`: it unpacks each of them into its struct, and in 3.22 that never returns for some
/// damaged ones. Used by one thread at a time: made on a thread of its own, then handed over to the loop.
final class GPSDConnection: @unchecked Sendable {
    enum Reading {
        case line([UInt8])
        /// No complete line at present.
        case nothing
        /// For people.
        case ended(String)
    }

    /// gpsd's own lines have at most 10 240 bytes.
    private static let longestLine = 20_480

    private let session: GPSDSession
    private var lines = LineBuffer(longestLine: longestLine)

    /// Loads libgps and connects, which takes as long as the medium, the resolver and the network do.
    static func open(host: String, port: UInt16) -> Result<GPSDConnection, SourceProblem> {
        let problem = "cannot connect to gpsd at \(host):\(port)"
        do throws(SourceProblem) {
            let library = try GPSDLibrary.load()
            guard let session = library.open(host: host, port: port) else {
                let reason = library.description(of: errno)
                return .failure(
                    SourceProblem("\(problem): \(reason); is it running and listening there?"))
            }
            guard session.isConnected else {
                return .failure(SourceProblem("\(problem): this \(library.name) has an unknown layout"))
            }
            return .success(GPSDConnection(session))
        } catch {
            return .failure(error)
        }
    }

    private init(_ session: GPSDSession) {
        self.session = session
        prepare()
    }

    /// Readable when lines may be there.
    var descriptor: Int32 { session.descriptor }

    /// Asks for the reports of all devices, or of one.
    /// - Returns: false when the connection does not accept it.
    func watch(device: String?) -> Bool { session.watch(device: device) }

    /// - Parameter request: `?DEVICES;`. It is short: a connection that does not accept it at once is dead.
    /// - Returns: false when the connection does not accept it.
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

    /// Keepalive detects a lost peer within a minute.
    private func prepare() {
        let fd = descriptor
        _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK)
        keepAlive(fd)
    }
}
