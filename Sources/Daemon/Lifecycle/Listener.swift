import CLinux
import Glibc
import WaypostCore
import WaypostHost

/// A socket on which clients connect.
final class Listener {
    /// Without descriptors or memory for a client the socket would stay ready and keep the loop spinning.
    private static let rest = Duration.seconds(1)

    let descriptor: Int32
    private let loop: EventLoop
    private let accepted: (Int32, EventTime) -> Void
    private var restAlarm: EventLoop.Alarm?

    /// - Parameters:
    ///   - descriptor: one that listens; it is closed with this, and if this throws.
    ///   - accepted: takes over the descriptor of a client.
    /// - Throws: `SystemError` where the loop cannot watch it.
    init(
        _ descriptor: Int32, loop: EventLoop, accepted: @escaping (Int32, EventTime) -> Void
    ) throws(SystemError) {
        (self.descriptor, self.loop, self.accepted) = (descriptor, loop, accepted)
        do throws(SystemError) { try watch() } catch {
            Glibc.close(descriptor)
            throw error
        }
        restAlarm = loop.alarm { [unowned self] now in
            do throws(SystemError) { try watch() } catch { restAlarm?.deadline = now + Self.rest }
        }
    }

    func close() {
        restAlarm?.deadline = nil
        loop.forget(descriptor)
        Glibc.close(descriptor)
    }

    private func watch() throws(SystemError) {
        try loop.watch(descriptor) { [unowned self] _, now in accept(at: now) }
    }

    private func accept(at now: EventTime) {
        let client = waypost_accept(descriptor)
        if client >= 0 { return accepted(client, now) }
        guard Self.isShortage(errno) else { return }
        loop.forget(descriptor)
        restAlarm?.deadline = now + Self.rest
    }

    static func isShortage(_ code: Int32) -> Bool { [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(code) }
}
