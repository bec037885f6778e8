import CLinux
import Glibc
import WaypostCore
import WaypostHost

/// Reports when links, addresses or routes of this host change.
///
/// The kernel reports over rtnetlink; nothing is polled. Changes come in bursts (a lease is a dozen messages), so they are
/// handled together a moment after the first.
final class LinkWatch {
    private static let settling = Duration.milliseconds(200)

    private let descriptor: Int32
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?

    /// - Parameter changed: something about links, addresses or routes is different, perhaps.
    /// - Throws: `SystemError` where the kernel or the sandbox gives no such socket.
    init(loop: EventLoop, changed: @escaping (EventTime) -> Void) throws(SystemError) {
        self.loop = loop
        descriptor = waypost_rtnetlink()
        guard descriptor >= 0 else { throw SystemError("rtnetlink") }
        alarm = loop.alarm(changed)
        do throws(SystemError) {
            try loop.watch(descriptor) { [unowned self] _, now in
                // Which message it was does not matter, nor that some were lost (ENOBUFS): the state is read again.
                guard waypost_rtnetlink_drain(descriptor) != 0, alarm?.deadline == nil else { return }
                alarm?.deadline = now + Self.settling
            }
        } catch {
            close(descriptor)
            throw error
        }
    }

    func stop() {
        alarm?.deadline = nil
        loop.forget(descriptor)
        close(descriptor)
    }
}
