import Glibc
import WaypostCore
import WaypostHost

/// Asks wpa_supplicant over its control socket: `STATUS` at the start and after each event of a connection.
package final class SupplicantWatch: WiFiWatch {
    private static let replyMax = 4096
    private static let messagesMax = 16

    package private(set) var association: WiFiAssociation?
    /// With a socket for each interface.
    private let folder: String
    private var socket: Int32?
    private var delay = RetryDelay(from: .seconds(5), to: .seconds(300))
    private var retryAt: EventTime? = .zero

    /// - Parameter folder: the usual one is `/run/wpa_supplicant`.
    package init(folder: String) { self.folder = folder }

    deinit { stop() }

    package var descriptor: Int32? { socket }
    package var wantsToWrite: Bool { false }

    package func nextDeadline(at now: EventTime) -> EventTime? { retryAt }

    package func process(at now: EventTime) {
        if let due = retryAt, due <= now {
            retryAt = nil
            open(at: now)
        }
        receive(at: now)
    }

    package func linksChanged(at now: EventTime) { if socket != nil { send("STATUS", at: now) } }

    package func stop() {
        if let socket { close(socket) }
        socket = nil
        retryAt = nil
    }

    private func open(at now: EventTime) {
        let kind = Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard let name = Self.interface(in: folder) else { return lost(at: now) }
        let path = "\(folder)/\(name)"
        let socket = Glibc.socket(AF_UNIX, kind, 0)
        guard socket >= 0 else { return lost(at: now) }
        self.socket = socket
        // The kernel chooses a name to answer to: there is no file to be left over.
        var own = sockaddr_un()
        own.sun_family = sa_family_t(AF_UNIX)
        let isBound = Self.with(&own) { bind(socket, $0, socklen_t(MemoryLayout<sa_family_t>.size)) == 0 }
        var peer = sockaddr_un()
        peer.sun_family = sa_family_t(AF_UNIX)
        let isShort = withUnsafeMutableBytes(of: &peer.sun_path) { space in
            guard path.utf8.count < space.count else { return false }
            space.copyBytes(from: path.utf8)
            return true
        }
        let isConnected =
            isBound && isShort
            && Self.with(&peer) { connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 }
        guard isConnected else { return lost(at: now) }
        send("ATTACH", at: now)
        if self.socket != nil { send("STATUS", at: now) }
    }

    /// Not the one of Wi-Fi Direct, which lies beside it, nor that of the whole program.
    private static func interface(in folder: String) -> String? {
        folderNames(folder, limit: 64)?.filter { !$0.hasPrefix("p2p-") && $0 != "global" }.min()
    }

    private static func with(_ address: inout sockaddr_un, _ call: (UnsafePointer<sockaddr>) -> Bool) -> Bool {
        withUnsafePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, call) }
    }

    private func lost(at now: EventTime) {
        if let socket { close(socket) }
        socket = nil
        association = nil
        retryAt = now + delay.next()
    }

    private func send(_ command: String, at now: EventTime) {
        guard let socket else { return }
        let count = command.utf8.count
        guard Glibc.send(socket, command, count, Int32(truncatingIfNeeded: MSG_NOSIGNAL)) == count else {
            return lost(at: now)
        }
    }

    private func receive(at now: EventTime) {
        var bytes = [UInt8](repeating: 0, count: Self.replyMax)
        for _ in 0..<Self.messagesMax {
            guard let socket else { return }
            let count = recv(socket, &bytes, bytes.count, 0)
            guard count >= 0 else {
                if errno != EAGAIN, errno != EINTR { lost(at: now) }
                return
            }
            take(Array(bytes.prefix(count)), at: now)
        }
    }

    private func take(_ message: [UInt8], at now: EventTime) {
        if message.first == UInt8(ascii: "<") {
            let text = String(decoding: message, as: UTF8.self)
            if text.contains("CTRL-EVENT-TERMINATING") { return lost(at: now) }
            if text.contains("CTRL-EVENT-CONNECTED") || text.contains("CTRL-EVENT-DISCONNECTED") {
                send("STATUS", at: now)
            }
        } else if message.contains(UInt8(ascii: "=")) {
            delay.reset()
            association = Self.association(in: message)
        }
    }

    /// The reply to `STATUS`: lines of `name=value`.
    static func association(in reply: [UInt8]) -> WiFiAssociation? {
        var values: [String: [UInt8]] = [:]
        for line in reply.split(separator: 0x0A) {
            guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
            values[String(decoding: line[..<equals], as: UTF8.self)] = Array(line[(equals + 1)...])
        }
        guard values["wpa_state"] == Array("COMPLETED".utf8), let ssid = values["ssid"], let bssid = values["bssid"]
        else {
            return nil
        }
        return WiFiAssociation(ssid: unescaped(ssid), bssid: String(decoding: bssid, as: UTF8.self))
    }

    /// As `printf_encode` of wpa_supplicant writes bytes: `\"`, `\\`, `\e`, `\n`, `\r`, `\t`, `\xHH`.
    private static func unescaped(_ text: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let code = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch code {
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "e"): bytes.append(0x1B)
            case UInt8(ascii: "x"):
                guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { break }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: bytes.append(code)
            }
        }
        return bytes
    }
}
