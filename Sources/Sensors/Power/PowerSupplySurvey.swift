import CLinux
import Glibc
import Synchronization
import WaypostCore

/// Reads power supplies off the loop's thread, so that no driver can block it.
///
/// A thread lives as long as there is something to read, and reads one supply after the other. When one of them is slow,
/// another thread continues with the others. A read that hangs cannot be ended: that supply is not read again before it has
/// answered, so that there is at most one thread more than supplies that hang.
package final class PowerSupplySurvey: Sendable {
    /// A supply that was asked and has not answered yet.
    package struct Question: Hashable, Sendable {
        package var name: String
        /// Since when it is being read; nil = its turn has not come.
        package var since: EventTime?
    }

    private struct State {
        /// In the order in which they are wanted.
        var waiting: [String] = []
        /// Each is being read by one thread, since then.
        var inProgress: [String: EventTime] = [:]
        /// By name: not yet collected.
        var answers: [String: PowerSupply] = [:]

        /// A supply that hangs is passed over until it has answered.
        mutating func takeNext(at now: EventTime) -> String? {
            guard let index = waiting.firstIndex(where: { inProgress[$0] == nil }) else { return nil }
            let name = waiting.remove(at: index)
            inProgress[name] = now
            return name
        }
    }

    /// How long a thread may read one supply before another thread reads those that wait behind it.
    package static let timeout = Duration.milliseconds(250)
    /// No board has so many supplies that hang.
    private static let threadsMax = 8

    package let reader: PowerSupplyReader
    /// Readable when the last of those that were asked has answered, or a slow one.
    package let descriptor: Int32
    private let state = Mutex(State())

    /// nil when the system has no descriptor left.
    package init?(_ reader: PowerSupplyReader) {
        descriptor = waypost_eventfd()
        guard descriptor >= 0 else { return nil }
        self.reader = reader
    }

    /// The loop must have forgotten the descriptor.
    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Reads supplies in this order; what is left of an earlier request is dropped.
    package func ask(_ names: [String], at now: EventTime) {
        state.withLock { $0.waiting = names }
        startOverdue(at: now)
    }

    /// To be called after `timeout`: what waits behind a supply that does not answer is read by another thread.
    package func startOverdue(at now: EventTime) {
        let next: String? = state.withLock { state in
            guard state.inProgress.values.allSatisfy({ now >= $0 + Self.timeout }) else { return nil }
            if state.inProgress.count < Self.threadsMax { return state.takeNext(at: now) }
            state.waiting.removeAll()
            return nil
        }
        guard let next else { return }
        // Without a thread the known state stays; the next check tries again.
        guard startThread({ [self] in work(from: next) }) != 0 else { return }
        state.withLock {
            $0.inProgress[next] = nil
            $0.waiting.removeAll()
        }
    }

    /// What has been read since the last call, and who has not answered, each once.
    package func collect() -> (answers: [PowerSupply], open: [Question]) {
        var count: UInt64 = 0
        _ = Glibc.read(descriptor, &count, MemoryLayout.size(ofValue: count))
        return state.withLock { state in
            defer { state.answers.removeAll() }
            let open =
                state.inProgress.map { Question(name: $0.key, since: $0.value) }
                + state.waiting.filter { state.inProgress[$0] == nil }.map { Question(name: $0, since: nil) }
            return (Array(state.answers.values), open)
        }
    }

    private func work(from first: String) {
        var next: String? = first
        while let name = next {
            let supply = reader.read(name)
            let now = EventTime(nanoseconds: waypost_boottime_ns())
            let wasSlow: Bool
            (next, wasSlow) = state.withLock { state in
                let since = state.inProgress.removeValue(forKey: name)
                state.answers[name] = supply
                return (state.takeNext(at: now), since.map { now >= $0 + Self.timeout } ?? false)
            }
            if next == nil || wasSlow { signal() }
        }
    }

    private func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }
}
