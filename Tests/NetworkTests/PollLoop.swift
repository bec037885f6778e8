import Protocols
import Testing
import WaypostCore

@testable import Network

/// A loop that drives an uplink.
final class PollLoop: TurningLoop {
    let uplink: HTTPUplink
    let interests = Interests()
    var turns = 0
    var now = EventTime(nanoseconds: 1_000_000_000_000)

    init(_ settings: HTTPUplink.Settings = .init(version: "1.2.3"), isClockTrusted: Bool = true) throws {
        uplink = try HTTPUplink(settings: settings, isClockTrusted: { isClockTrusted }) { [interests] in
            interests.byDescriptor[$0] = $1
        }
    }

    deinit { uplink.close() }

    var nextDeadline: EventTime? { uplink.nextDeadline }

    func ready(_ descriptor: Int32, readable: Bool, writable: Bool) {
        uplink.descriptorReady(descriptor, readable: readable, writable: writable, at: now)
    }

    func deadlineReached() { uplink.deadlineReached(at: now) }

    /// Sends and turns until the outcome is there.
    func outcome(_ request: UplinkRequest, _ location: SourceLocation = #_sourceLocation) throws -> UplinkOutcome {
        var outcome: UplinkOutcome?
        uplink.send(request) { outcome = $0 }
        run(location) { outcome != nil }
        return try #require(outcome, sourceLocation: location)
    }

    func reply(_ request: UplinkRequest, _ location: SourceLocation = #_sourceLocation) throws -> UplinkReply {
        let outcome = try outcome(request, location)
        return try #require(outcome.reply, "\(outcome)", sourceLocation: location)
    }

    func failure(_ request: UplinkRequest, _ location: SourceLocation = #_sourceLocation) throws -> TransportFailure {
        let outcome = try outcome(request, location)
        return try #require(outcome.failure, "\(outcome)", sourceLocation: location)
    }
}

extension UplinkOutcome {
    var reply: UplinkReply? {
        if case .reply(let reply) = result { reply } else { nil }
    }

    var failure: TransportFailure? {
        if case .failed(let failure) = result { failure } else { nil }
    }
}
