import Protocols
import Testing
import WaypostCore

@testable import Network

/// A loop that drives a connection that stays open.
final class ConnectionLoop: TurningLoop {
    private(set) var connection: LiveConnection!
    /// What was reported, until somebody takes it.
    var events: [LiveConnection.Event] = []
    /// Called with each report instead.
    var react: ((LiveConnection.Event) -> Void)?
    let interests = Interests()
    var turns = 0
    var now = EventTime(nanoseconds: 1_000_000_000_000)

    init(
        _ url: String, tls: TLSSettings? = nil, settings: HTTPUplink.Settings = .init(version: "1.2.3")
    ) throws {
        let interests = interests
        connection = try LiveConnection(
            url: url, tls: tls, settings: settings, watch: { interests.byDescriptor[$0] = $1 },
            report: { [unowned self] event in
                if let react { react(event) } else { events.append(event) }
            })
    }

    deinit { connection?.close() }

    var nextDeadline: EventTime? { connection.nextDeadline }

    func ready(_ descriptor: Int32, readable: Bool, writable: Bool) {
        connection.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
    }

    func deadlineReached() { connection.deadlineReached(at: now) }

    /// Opens it and turns until it is open, or not.
    func open(_ location: SourceLocation = #_sourceLocation) {
        connection.open()
        run(location) { !events.isEmpty }
    }

    var received: [UInt8] {
        events.flatMap { event -> [UInt8] in if case .received(let bytes) = event { bytes } else { [] } }
    }

    var failure: TransportFailure? {
        events.compactMap { event -> TransportFailure? in if case .ended(let failure) = event { failure } else { nil } }
            .last
    }
}
