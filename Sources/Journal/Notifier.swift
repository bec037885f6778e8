import Glibc
import WaypostCore

/// Reports the daemon's state to the service manager (the protocol of `sd_notify(3)`).
///
/// Without `NOTIFY_SOCKET` every call is silent. No call blocks; a message that the manager does not take is lost, and
/// the next one is sent all the same.
package final class Notifier {
    /// The manager takes longer ones, but shows them in a line.
    private static let statusBytesMax = 1000

    private let socket: UnixDatagramSocket?
    private var lastStatus: String?

    /// - Parameter environment: `NOTIFY_SOCKET` is read from it: an absolute path, or `@name` for an abstract socket.
    package init(environment: [String: String]) {
        socket = environment["NOTIFY_SOCKET"].flatMap(UnixAddress.init).map { UnixDatagramSocket(to: $0) }
    }

    /// A service manager listens (`NOTIFY_SOCKET` is set and usable).
    package var isActive: Bool { socket != nil }

    /// Start, or a reload, is complete.
    /// - Parameter status: one line for people, sent in the same message.
    @discardableResult package func ready(status: String? = nil) -> Bool {
        send(["READY=1"], status: status)
    }

    /// One line for people; sent only when it differs from the one before. True when nothing had to be sent or it went
    /// out.
    @discardableResult package func status(_ text: String) -> Bool {
        text == lastStatus || send([], status: text)
    }

    /// The loop is alive. See ``Watchdog``.
    @discardableResult package func watchdog() -> Bool { send(["WATCHDOG=1"]) }

    /// Shutdown has begun.
    @discardableResult package func stopping(status: String? = nil) -> Bool {
        send(["STOPPING=1"], status: status)
    }

    /// A reload has begun; ``ready(status:)`` ends it, also when the new configuration is refused.
    ///
    /// - Parameter monotonicMicroseconds: CLOCK_MONOTONIC now; `Type=notify-reload` waits in vain without it.
    @discardableResult package func reloading(monotonicMicroseconds: UInt64 = Notifier.monotonicMicroseconds()) -> Bool
    {
        send(["RELOADING=1", "MONOTONIC_USEC=\(monotonicMicroseconds)"])
    }

    /// CLOCK_MONOTONIC in whole microseconds.
    package static func monotonicMicroseconds() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec / 1000)
    }

    private func send(_ lines: [String], status: String? = nil) -> Bool {
        let status = status == lastStatus ? nil : status
        let text = (lines + (status.map { ["STATUS=\($0.visible(bytesMax: Self.statusBytesMax))"] } ?? [])).joined(
            separator: "\n")
        let sent =
            switch socket {
            case .none: false
            case .some(let socket): socket.send(Array(text.utf8)) == nil
            }
        if sent, let status { lastStatus = status }
        return sent
    }
}
