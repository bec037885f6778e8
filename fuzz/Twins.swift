@testable import Protocols
@testable import WaypostCore

/// A protocol machine of `Live`.
protocol LiveMachine: Sendable {
    associatedtype Event: Equatable
    mutating func received(_ bytes: ArraySlice<UInt8>, at now: EventTime) -> [Event]
    mutating func deadlineReached(at now: EventTime) -> [Event]
    var nextDeadline: EventTime? { get }
    /// An event without what depends on how the bytes came in pieces, and may.
    static func settled(_ event: Event) -> Event
}

extension MQTTClient: LiveMachine {
    static func settled(_ event: Event) -> Event { event }
}

extension WebSocketClient: LiveMachine {
    static func settled(_ event: Event) -> Event {
        guard case .ended(.refused(var refusal)) = event else { return event }
        // As much of it as came with the head.
        refusal.body = []
        return .ended(.refused(refusal))
    }
}

/// The same connection twice, of which one gets all bytes singly: how they come in pieces must change nothing.
struct Twins<Machine: LiveMachine>: Sendable {
    private(set) var one: Machine
    private var other: Machine
    private(set) var now = EventTime.zero

    init(_ machine: Machine) { (one, other) = (machine, machine) }

    @discardableResult
    mutating func same<Result: Equatable>(_ action: (inout Machine, EventTime) -> Result) -> Result {
        let result = action(&one, now)
        demand(action(&other, now) == result, "the state depends on the pieces")
        return result
    }

    mutating func received(_ bytes: [UInt8]) -> [Machine.Event] {
        let events = one.received(bytes[...], at: now)
        var others: [Machine.Event] = []
        for index in bytes.indices { others += other.received(bytes[index...index], at: now) }
        if bytes.isEmpty { _ = other.received([], at: now) }
        demand(events.map(Machine.settled) == others.map(Machine.settled), "events depend on the pieces")
        return events
    }

    mutating func passed(_ duration: Duration) -> [Machine.Event] {
        now = now + duration
        return same { $0.deadlineReached(at: $1) }
    }

    /// A deadline that was reached does not come again.
    mutating func reachedDeadline() -> [Machine.Event] {
        guard let deadline = one.nextDeadline else { return [] }
        now = max(now, deadline)
        let events = same { $0.deadlineReached(at: $1) }
        if let next = one.nextDeadline { demand(next > now, "the deadline comes again") }
        return events
    }

    func check() { demand(one.nextDeadline == other.nextDeadline, "the state depends on the pieces") }
}
