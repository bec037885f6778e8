import Glibc
import WaypostCore

/// A system call that failed: what was tried, on what, and why.
package struct SystemError: Error, CustomStringConvertible {
    /// The call and its object (`bind /run/waypost/control.sock`).
    package let what: String
    package let code: Int32

    package init(_ what: String, code: Int32 = errno) {
        self.what = what
        self.code = code
    }

    package var description: String { "\(what): \(String(cString: strerror(code)))" }
}

/// The one loop of the daemon: waits on its host for descriptors and for the earliest alarm, and calls their handlers.
///
/// One thread, no locks. Handlers run to completion and may watch and forget descriptors and move alarms as they like:
/// the loop takes one ready descriptor from each wait, so none of them can be stale. Descriptors are served before
/// alarms, so that after a stall the input that was waiting is seen before the deadlines that it would have moved.
package final class EventLoop {
    /// What a descriptor is ready for.
    package struct Readiness: Sendable {
        package var readable: Bool
        package var writable: Bool

        package init(readable: Bool, writable: Bool) {
            self.readable = readable
            self.writable = writable
        }
    }

    private struct Watch {
        var handler: (Readiness, EventTime) -> Void
    }

    /// Descriptors served in a row before alarms get their turn, so that a flood of input cannot hold them up for long.
    private static let burst = 64

    package let host: any Host
    private var watches: [Int32: Watch] = [:]
    private let alarms = AlarmList()
    private var stopped = false
    /// Boot clock as of the last wait; what handlers take as now.
    package private(set) var now: EventTime
    /// How often the loop came back from waiting, for `status`.
    package private(set) var wakeups = 0

    /// On this machine.
    /// - Throws: `SystemError` when the kernel gives no descriptors.
    package convenience init() throws(SystemError) { self.init(on: try LinuxHost()) }

    package init(on host: any Host) {
        self.host = host
        now = host.bootTime
    }

    /// Alarms that have an owner.
    var alarmCount: Int { alarms.count }

    /// Watches a descriptor, or changes what it is watched for. Regular files cannot be watched (EPERM).
    ///
    /// A descriptor that was closed in the meantime and opened again under the same number is watched again.
    package func watch(
        _ descriptor: Int32, readable: Bool = true, writable: Bool = false,
        _ handler: @escaping (Readiness, EventTime) -> Void
    ) throws(SystemError) {
        do throws(SystemError) {
            try host.watch(
                descriptor, readable: readable, writable: writable, isKnown: watches[descriptor] != nil)
        } catch {
            watches[descriptor] = nil
            throw error
        }
        watches[descriptor] = Watch(handler: handler)
    }

    /// Stops watching. A descriptor that was closed before it was forgotten has left epoll already; that is no error.
    package func forget(_ descriptor: Int32) {
        guard watches.removeValue(forKey: descriptor) != nil else { return }
        host.forget(descriptor)
    }

    /// An alarm that lives as long as its owner holds it.
    package func alarm(_ fire: @escaping (EventTime) -> Void) -> Alarm { Alarm(in: alarms, fire) }

    package func stop() { stopped = true }

    /// Serves events until `stop()`.
    /// - Throws: `SystemError` when waiting itself fails, which no input can bring about.
    package func run() throws(SystemError) {
        stopped = false
        while !stopped {
            var served = 0
            while !stopped, served < Self.burst, serve(try host.poll()) { served += 1 }
            if stopped { return }
            fireDueAlarms()
            if stopped { return }
            let deadline = alarms.earliest
            if served == Self.burst || deadline.map({ $0 <= now }) ?? false { continue }
            let ready = try host.wait(until: deadline)
            wakeups += 1
            _ = serve(ready)
        }
    }

    /// Runs the handler of a ready descriptor; false when there is none.
    private func serve(_ ready: ReadyDescriptor?) -> Bool {
        now = host.bootTime
        guard let ready else { return false }
        watches[ready.number]?.handler(ready.readiness, now)
        return true
    }

    private func fireDueAlarms() {
        var due = alarms.due(at: now)
        if due.count > 1 { host.arrange(&due) }
        for alarm in due {
            if stopped { return }
            // One that fired before may have moved it.
            guard let deadline = alarm.deadline, deadline <= now else { continue }
            alarm.deadline = nil
            alarm.fire(now)
        }
    }
}
