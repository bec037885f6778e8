import Glibc
import WaypostCore

/// Asks the gpsd of this host whether a line is one of its own: two readers would each get a part of the bytes.
///
/// It never starts gpsd: where only systemd listens (`gpsd.socket` without `gpsd.service`), nothing is asked.
package final class GPSDInquiry {
    /// Where gpsd shows itself.
    package struct Host: Sendable {
        /// What systemd, or gpsd itself, listens at for devices to be added.
        package var socket = "/run/gpsd.sock"
        /// Folders that are there while systemd runs gpsd, in either layout of control groups.
        package var services = [
            "/sys/fs/cgroup/system.slice/gpsd.service", "/sys/fs/cgroup/systemd/system.slice/gpsd.service",
        ]
        package var port: UInt16 = 2947

        package init() {}

        /// A client would start gpsd.
        package var isSocketActivated: Bool {
            access(socket, F_OK) == 0 && !services.contains { access($0, F_OK) == 0 }
        }
    }

    private static let timeout = Duration.seconds(1)
    private static let replyMax = 65_536

    /// Watched until the answer is there, or until `deadline`.
    let descriptor: Int32
    let deadline: EventTime
    /// The descriptor is watched for writability.
    private(set) var isConnecting = true
    private let paths: [String]
    private var reply: [UInt8] = []

    /// nil when no gpsd runs here.
    ///
    /// - Parameter paths: names of the line; links are followed.
    init?(about paths: [String], host: Host, at now: EventTime) {
        guard !host.isSocketActivated, let address = SocketAddress(numericHost: "127.0.0.1", port: host.port) else {
            return nil
        }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { return nil }
        guard address.withPointer({ connect(descriptor, $0, $1) }) == 0 || errno == EINPROGRESS else {
            Glibc.close(descriptor)
            return nil
        }
        self.descriptor = descriptor
        self.paths = paths
        deadline = now + Self.timeout
    }

    deinit { Glibc.close(descriptor) }

    /// Whether gpsd has the line on its list; nil = no answer yet.
    func answer() -> Bool? {
        if isConnecting {
            let request = Array(GPSDRequest.devices.utf8)
            let sent = send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
            if sent < 0, errno == EAGAIN || errno == EINTR { return nil }
            guard sent == request.count else { return false }
            isConnecting = false
        }
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return nil }
            guard count > 0, reply.count + count <= Self.replyMax else { return false }
            reply += chunk[..<count]
            if let listed = Self.devices(in: reply) { return listed.contains(where: isOurs) }
        }
    }

    /// The same for a caller that may block; at most a second.
    package static func hasLine(_ paths: [String], host: Host = Host()) -> Bool {
        guard let inquiry = GPSDInquiry(about: paths, host: host, at: .zero) else { return false }
        // gpsd greets first: the answer is in the second line, which may come apart from it.
        for _ in 0..<10 {
            let wanted = Int16(inquiry.isConnecting ? POLLOUT : POLLIN)
            var ready = pollfd(fd: inquiry.descriptor, events: wanted, revents: 0)
            guard poll(&ready, 1, Int32(timeout.milliseconds / 10)) >= 0 else { return false }
            if let answer = inquiry.answer() { return answer }
        }
        return false
    }

    /// Under whatever name.
    private func isOurs(_ path: String) -> Bool {
        if paths.contains(path) { return true }
        guard let device = deviceNumber(of: path) else { return false }
        return paths.contains { deviceNumber(of: $0) == device }
    }

    /// The paths of the devices that gpsd lists; nil before its whole answer is there.
    static func devices(in reply: [UInt8]) -> [String]? {
        // The part after the last line end is incomplete.
        for line in reply.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
            let text = String(decoding: line, as: UTF8.self)
            guard text.hasPrefix("{\"class\":\"DEVICES\"") else { continue }
            var paths: [String] = []
            var rest = text[...]
            while let key = rest.firstOccurrence(of: "\"path\":\"") {
                rest = rest[key.upperBound...]
                guard let end = rest.firstIndex(of: "\"") else { break }
                paths.append(String(rest[..<end]))
                rest = rest[end...]
            }
            return paths
        }
        return nil
    }
}

/// Of the device behind links; nil where there is none.
private func deviceNumber(of path: String) -> dev_t? {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFCHR ? status.st_rdev : nil
}
