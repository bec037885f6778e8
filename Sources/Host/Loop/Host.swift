import CLinux
import Glibc
import WaypostCore

/// The machine as the loop and those on it see it: what there is to wait for, clocks, randomness, and ways to the network.
///
/// `LinuxHost` is the real one; the simulated world has its own, so that order and time are what its seed says.
package protocol Host: AnyObject {
    /// Reads the boot clock.
    var bootTime: EventTime { get }
    /// Host wall clock, Unix milliseconds; it may be wrong, and step at any time. No timer runs on it. Records and
    /// requests carry it; it decides something, such as the age of old rows or a signature, only where it is
    /// synchronised or the receiver agrees (`TrustedTime`, `SigningClock`).
    var wallClockMs: Int64 { get }
    /// A time service vouches for the wall clock.
    var isClockSynchronised: Bool { get }
    /// 0 ≤ x < 1, for delays.
    var jitter: Double { get }
    /// Random bytes, different at each start.
    /// - Throws: `SystemError` when the kernel gives none.
    func randomBytes(_ count: Int) throws(SystemError) -> [UInt8]
    /// The way by which packets to a peer leave; see `EgressRoute`.
    func egressRoute(to peer: String?) -> EgressRoute?

    /// - Parameter isKnown: it was watched before and not forgotten.
    func watch(_ descriptor: Int32, readable: Bool, writable: Bool, isKnown: Bool) throws(SystemError)
    func forget(_ descriptor: Int32)
    /// Takes one ready descriptor without waiting.
    func poll() throws(SystemError) -> ReadyDescriptor?
    /// The same, and waits for it until the deadline, where there is one.
    /// - Throws: `SystemError` when waiting itself fails, which no input can bring about.
    func wait(until deadline: EventTime?) throws(SystemError) -> ReadyDescriptor?
    /// Puts alarms that are due together in order.
    func arrange(_ due: inout [EventLoop.Alarm])
}

/// A descriptor that something can be done with.
package struct ReadyDescriptor {
    package var number: Int32
    package var readiness: EventLoop.Readiness

    package init(_ number: Int32, _ readiness: EventLoop.Readiness) {
        self.number = number
        self.readiness = readiness
    }
}

/// epoll over all descriptors, and one boot-clock timer armed for the earliest alarm.
package final class LinuxHost: Host {
    private let epoll: Int32
    private let timer: Int32
    private var armed: EventTime?

    /// - Throws: `SystemError` when the kernel gives no descriptors.
    package init() throws(SystemError) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw SystemError("epoll_create1") }
        timer = waypost_timerfd()
        guard timer >= 0 else { throw SystemError("timerfd_create") }
        try control(EPOLL_CTL_ADD, timer, EPOLLIN.rawValue)
    }

    deinit {
        close(timer)
        close(epoll)
    }

    package var bootTime: EventTime { HostClock.bootTime }
    package var wallClockMs: Int64 { HostIdentity.wallClockMs() }
    package var isClockSynchronised: Bool { HostClock.isSynchronised }
    package var jitter: Double { Double.random(in: 0..<1) }
    package func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] { try HostIdentity.randomBytes(count) }
    package func egressRoute(to peer: String?) -> EgressRoute? { EgressRoute(to: peer) }
    /// In the order in which they were made.
    package func arrange(_ due: inout [EventLoop.Alarm]) {
        due.sort { first, second in
            guard let deadline = first.deadline, let other = second.deadline else { return first.deadline != nil }
            return deadline < other
        }
    }

    package func watch(_ descriptor: Int32, readable: Bool, writable: Bool, isKnown: Bool) throws(SystemError) {
        let interest = (readable ? EPOLLIN.rawValue : 0) | (writable ? EPOLLOUT.rawValue : 0)
        guard isKnown else { return try control(EPOLL_CTL_ADD, descriptor, interest) }
        do throws(SystemError) {
            try control(EPOLL_CTL_MOD, descriptor, interest)
        } catch {
            // Closing the descriptor took it out of epoll.
            guard error.code == ENOENT else { throw error }
            try control(EPOLL_CTL_ADD, descriptor, interest)
        }
    }

    package func forget(_ descriptor: Int32) { epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil) }

    package func poll() throws(SystemError) -> ReadyDescriptor? { try take(wait: false) }

    package func wait(until deadline: EventTime?) throws(SystemError) -> ReadyDescriptor? {
        try arm(deadline)
        return try take(wait: true)
    }

    private func take(wait: Bool) throws(SystemError) -> ReadyDescriptor? {
        var event = epoll_event()
        let count = epoll_wait(epoll, &event, 1, wait ? -1 : 0)
        if count < 0 {
            guard errno == EINTR else { throw SystemError("epoll_wait") }
            return nil
        }
        guard count == 1 else { return nil }
        guard event.data.fd != timer else {
            // Arming the timer again clears its readiness; the due alarms are fired by the caller.
            try disarm()
            return nil
        }
        let broken = event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0
        return ReadyDescriptor(
            event.data.fd,
            .init(
                readable: broken || event.events & EPOLLIN.rawValue != 0,
                writable: broken || event.events & EPOLLOUT.rawValue != 0))
    }

    private func arm(_ deadline: EventTime?) throws(SystemError) {
        guard deadline != armed else { return }
        guard let deadline else { return try disarm() }
        guard waypost_timerfd_arm(timer, max(1, deadline.nanoseconds)) == 0 else {
            throw SystemError("timerfd_settime")
        }
        armed = deadline
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
