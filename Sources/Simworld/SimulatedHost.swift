import Daemon
import WaypostCore
import WaypostHost

/// Time, and what happens when: a heap of events instead of epoll and a timer.
///
/// An event of the world goes on whatever becomes of the process; one of the process ends with it.
final class SimulatedHost: Host, @unchecked Sendable {
    /// Descriptors that are ready.
    static let worldDescriptor: Int32 = 1
    static let writerDescriptor: Int32 = 2

    /// More turns of the loop than this without time passing mean that it never ends.
    private static let spin = 20_000

    private struct Event {
        var at: EventTime
        var tie: UInt64
        var number: Int
        /// nil: an event of the world.
        var process: Int?
        /// What becomes ready; the world's runs `action`.
        var descriptor: Int32
        var action: () -> Void

        func isBefore(_ other: Event) -> Bool {
            (at, tie, number) < (other.at, other.tie, other.number)
        }
    }

    private let dice: Dice
    private var heap: [Event] = []
    private var numbers = 0
    private var actions: [() -> Void] = []
    /// Of the world, which goes on when the power goes.
    private(set) var time: EventTime
    /// When the present boot began.
    var booted: EventTime
    /// Counts the processes.
    private(set) var process = 0
    /// Unix milliseconds of the world's zero, as the wall clock believes it.
    var wallOffsetMs: Int64
    var isSynchronised = true
    /// By which interface everything leaves; nil = there is no way.
    var interface: String? = "eth0"
    /// Handlers that ran since the time last moved.
    private(set) var standstill = 0
    private(set) var events = 0

    init(dice: Dice, at time: EventTime, wallOffsetMs: Int64) {
        self.dice = dice
        self.time = time
        self.wallOffsetMs = wallOffsetMs
        booted = time - .seconds(30)
    }

    func after(_ delay: Duration, ofProcess: Bool, _ action: @escaping () -> Void) {
        add(time + delay, ofProcess ? process : nil, Self.worldDescriptor, action)
    }

    /// The writer has done something.
    func writerReady(after delay: Duration, _ action: @escaping () -> Void) {
        add(time + delay, process, Self.writerDescriptor, action)
    }

    private func add(_ at: EventTime, _ process: Int?, _ descriptor: Int32, _ action: @escaping () -> Void) {
        numbers += 1
        heap.append(
            Event(
                at: at, tie: dice.next(), number: numbers, process: process, descriptor: descriptor, action: action))
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private func take() -> Event? {
        while let first = pop() {
            if let process = first.process, process != self.process { continue }
            return first
        }
        return nil
    }

    private var next: EventTime? {
        while let first = heap.first {
            guard let process = first.process, process != self.process else { return first.at }
            _ = pop()
        }
        return nil
    }

    private func pop() -> Event? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].isBefore(heap[least]) { least = child }
            }
            if least == parent { return first }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private func move(to instant: EventTime) {
        guard instant > time else { return }
        time = instant
        standstill = 0
    }

    /// The process has ended: what it waited for never comes.
    func processEnded() {
        process += 1
        actions = []
        standstill = 0
    }

    /// Nothing more happens.
    func end() { (heap, actions) = ([], []) }

    /// Runs what the world does while no process runs.
    /// - Parameter until: stops before what comes later.
    func run(until instant: EventTime) {
        while let next, next <= instant, let event = take() {
            move(to: event.at)
            event.action()
        }
        move(to: instant)
    }

    /// Called by the loop for the world's descriptor.
    func runActions() {
        while !actions.isEmpty { actions.removeFirst()() }
    }

    private func ready(_ event: Event) -> ReadyDescriptor {
        events += 1
        if event.descriptor == Self.worldDescriptor { actions.append(event.action) } else { event.action() }
        return ReadyDescriptor(event.descriptor, .init(readable: true, writable: false))
    }

    var bootTime: EventTime { EventTime(nanoseconds: time.nanoseconds - booted.nanoseconds) }
    var wallClockMs: Int64 { wallOffsetMs + time.nanoseconds / 1_000_000 }
    var isClockSynchronised: Bool { isSynchronised }
    var jitter: Double { dice.unit() }
    func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
    }
    func egressRoute(to peer: String?) -> EgressRoute? {
        interface.map { EgressRoute(interface: $0, address: "10.0.0.\($0.utf8.count)") }
    }
    func watch(_ descriptor: Int32, readable: Bool, writable: Bool, isKnown: Bool) throws(SystemError) {}
    func forget(_ descriptor: Int32) {}
    func arrange(_ due: inout [EventLoop.Alarm]) { dice.shuffle(&due) }

    // What became ready a moment later than the alarms that are due is served after them.
    func poll() throws(SystemError) -> ReadyDescriptor? {
        standstill += 1
        guard standstill < Self.spin else {
            throw SystemError("\(standstill) turns of the loop at one instant", code: 0)
        }
        guard let next, next <= time, !dice.chance(0.3), let event = take() else { return nil }
        return ready(event)
    }

    func wait(until limit: EventTime?) throws(SystemError) -> ReadyDescriptor? {
        let deadline = limit?.advanced(byNanoseconds: booted.nanoseconds)
        guard let next else {
            guard let deadline else { throw SystemError("wait for nothing", code: 0) }
            move(to: deadline)
            return nil
        }
        if let deadline, deadline < next || (deadline == next && dice.chance(0.5)) {
            move(to: deadline)
            return nil
        }
        guard let event = take() else { return nil }
        move(to: event.at)
        return ready(event)
    }
}
