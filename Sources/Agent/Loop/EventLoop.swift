import CLinux
import Glibc
import Positioning

/// A system call that failed: what was tried, on what, and why.
public struct SystemError: Error, CustomStringConvertible {
    /// The call and its object (`bind /run/waypost/control.sock`).
    public let what: String
    public let code: Int32

    public init(_ what: String, code: Int32 = errno) {
        self.what = what
        self.code = code
    }

    public var description: String { "\(what): \(String(cString: strerror(code)))" }
}

/// The one loop of the daemon: epoll over all descriptors and one boot-clock timer armed for the earliest alarm.
///
/// One thread, no locks. Handlers run to completion and may watch and forget descriptors and move alarms as they like:
/// the loop takes one ready descriptor from each wait, so none of them can be stale. Descriptors are served before
/// alarms, so that after a stall the input that was waiting is seen before the deadlines that it would have moved.
public final class EventLoop {
    /// What a descriptor is ready for.
    public struct Readiness: Sendable {
        public var readable: Bool
        public var writable: Bool
    }

    /// A deadline that its owner moves. It fires once and is then unset.
    public final class Alarm {
        public var deadline: EventTime?
        fileprivate let fire: (EventTime) -> Void

        fileprivate init(_ fire: @escaping (EventTime) -> Void) { self.fire = fire }
    }

    private struct Watch {
        var handler: (Readiness, EventTime) -> Void
    }

    /// Descriptors served in a row before alarms get their turn, so that a flood of input cannot hold them up for long.
    private static let burst = 64

    private let epoll: Int32
    private let timer: Int32
    private var watches: [Int32: Watch] = [:]
    private var alarms: [Alarm] = []
    private var armed: EventTime?
    private var stopped = false
    /// Boot clock as of the last wait; what handlers take as now.
    public private(set) var now: EventTime
    /// How often the loop came back from waiting, for `status`.
    public private(set) var wakeups = 0

    /// - Throws: `SystemError` when the kernel gives no descriptors.
    public init() throws(SystemError) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw SystemError("epoll_create1") }
        timer = waypost_timerfd()
        guard timer >= 0 else { throw SystemError("timerfd_create") }
        now = EventTime(nanoseconds: waypost_boottime_ns())
        try control(EPOLL_CTL_ADD, timer, EPOLLIN.rawValue)
    }

    deinit {
        close(timer)
        close(epoll)
    }

    /// Watches a descriptor, or changes what it is watched for. Regular files cannot be watched (EPERM).
    ///
    /// A descriptor that was closed in the meantime and opened again under the same number is watched anew.
    public func watch(
        _ descriptor: Int32, readable: Bool = true, writable: Bool = false,
        _ handler: @escaping (Readiness, EventTime) -> Void
    ) throws(SystemError) {
        let interest = (readable ? EPOLLIN.rawValue : 0) | (writable ? EPOLLOUT.rawValue : 0)
        if watches[descriptor] == nil {
            try control(EPOLL_CTL_ADD, descriptor, interest)
        } else {
            do throws(SystemError) {
                try control(EPOLL_CTL_MOD, descriptor, interest)
            } catch {
                watches[descriptor] = nil
                // Closing the descriptor took it out of epoll.
                guard error.code == ENOENT else { throw error }
                try control(EPOLL_CTL_ADD, descriptor, interest)
            }
        }
        watches[descriptor] = Watch(handler: handler)
    }

    /// Stops watching. A descriptor that was closed before it was forgotten has left epoll already; that is no error.
    public func forget(_ descriptor: Int32) {
        guard watches.removeValue(forKey: descriptor) != nil else { return }
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    public func alarm(_ fire: @escaping (EventTime) -> Void) -> Alarm {
        let alarm = Alarm(fire)
        alarms.append(alarm)
        return alarm
    }

    public func stop() { stopped = true }

    /// Serves events until `stop()`.
    /// - Throws: `SystemError` when waiting itself fails, which no input can bring about.
    public func run() throws(SystemError) {
        stopped = false
        while !stopped {
            var served = 0
            while !stopped, served < Self.burst, try serveOne(wait: false) { served += 1 }
            if stopped { return }
            fireDueAlarms()
            if stopped { return }
            if served == Self.burst || alarms.contains(where: { $0.deadline.map { $0 <= now } ?? false }) { continue }
            try arm()
            _ = try serveOne(wait: true)
        }
    }

    /// Takes one ready descriptor and runs its handler; false when none is ready.
    private func serveOne(wait: Bool) throws(SystemError) -> Bool {
        var event = epoll_event()
        let count = epoll_wait(epoll, &event, 1, wait ? -1 : 0)
        now = EventTime(nanoseconds: waypost_boottime_ns())
        if wait { wakeups += 1 }
        if count < 0 {
            guard errno == EINTR else { throw SystemError("epoll_wait") }
            return false
        }
        guard count == 1 else { return false }
        let descriptor = event.data.fd
        if descriptor == timer {
            // Arming the timer anew clears its readiness; the due alarms are fired by the caller.
            try disarm()
            return false
        }
        guard let watch = watches[descriptor] else { return true }
        let broken = event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        watch.handler(
            Readiness(
                readable: broken || event.events & EPOLLIN.rawValue != 0,
                writable: broken || event.events & EPOLLOUT.rawValue != 0), now)
        return true
    }

    private func fireDueAlarms() {
        for alarm in alarms {
            if stopped { return }
            guard let deadline = alarm.deadline, deadline <= now else { continue }
            alarm.deadline = nil
            alarm.fire(now)
        }
    }

    private func arm() throws(SystemError) {
        var earliest: EventTime?
        for alarm in alarms {
            guard let deadline = alarm.deadline else { continue }
            if earliest.map({ deadline < $0 }) ?? true { earliest = deadline }
        }
        guard earliest != armed else { return }
        guard let earliest else { return try disarm() }
        guard waypost_timerfd_arm(timer, max(1, earliest.nanoseconds)) == 0 else {
            throw SystemError("timerfd_settime")
        }
        armed = earliest
    }

    private func disarm() throws(SystemError) {
        guard waypost_timerfd_arm(timer, 0) == 0 else { throw SystemError("timerfd_settime") }
        armed = nil
    }

    private func control(_ operation: Int32, _ descriptor: Int32, _ interest: UInt32) throws(SystemError) {
        var event = epoll_event()
        event.events = interest
        event.data.fd = descriptor
        guard epoll_ctl(epoll, operation, descriptor, &event) == 0 else {
            throw SystemError("epoll_ctl descriptor \(descriptor)")
        }
    }
}
