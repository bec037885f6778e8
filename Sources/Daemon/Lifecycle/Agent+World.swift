import Profiles
import WaypostControl
import WaypostCore
import WaypostHost
import WaypostTracking

// For a world that runs the agent without a process around it.
extension Agent {
    /// Answers one line of the control socket, without a socket.
    ///
    /// - Parameters:
    ///   - peer: effective user id of who asks.
    ///   - reply: called once, perhaps later; takes the frame.
    package func ask(_ line: [UInt8], peer: Int64, reply: @escaping ([UInt8]) -> Void) {
        let request: RequestFrame
        do throws(ControlError) { request = try RequestFrame(line) } catch {
            return reply(ControlFrame.failure(id: nil, error))
        }
        let ticket = ControlTicket(id: request.id, peer: peer)
        let frame = ControlFrame.reply(to: request.id) { () throws(ControlError) in try answer(request, ticket) }
        guard ticket.isPostponed else { return reply(frame) }
        ticket.deliver = reply
    }

    package var eventLoop: EventLoop { loop }

    /// As SIGTERM does.
    package func terminate() { shutdown.stop("SIGTERM", at: loop.now) }

    /// Links, addresses or routes may have changed.
    package func linksChanged() { linksChanged(at: loop.now) }

    /// The wall clock was set.
    package func clockWasSet() { clockWasSet(at: loop.now) }

    /// Called with each location that the tracker keeps, before anything is done with it.
    package func onRecord(_ hear: @escaping (Location, EventTime) -> Void) { pipeline.recorded.append(hear) }

    /// The disk refused the last commit: what lies on it may not be known.
    package var diskRefuses: Bool { recorder.latest.refusal != nil }

    /// The version of settings from afar that is over the file, and whether it is on trial; nil while that is being written, and
    /// where the configuration allows none.
    package var remoteState: (version: Int64?, isTrial: Bool)? {
        guard let remote, remote.isSettled else { return nil }
        return (remote.settings.laidVersion, remote.settings.trial.trial != nil)
    }

    /// The version of settings from afar that is over the file; nil = none.
    package var remoteVersion: Int64? { remote?.settings.laidVersion }

    /// Keys of the configuration in force, with their values as JSON.
    package var settingsInForce: [String: String] {
        let settings = configuration.settings { _ in true }
        return Dictionary(settings.map { ($0.key, String(decoding: $0.value.bytes, as: UTF8.self)) }) { $1 }
    }

    /// Rows in memory that no commit has taken.
    package var rowsHeld: Int { recorder.held }

    /// Rows that fail alone while others are accepted, by endpoint.
    package var suspects: [String: Int] {
        Dictionary(uniqueKeysWithValues: endpoints.deliveries.map { ($0.settings.name, $0.schedule.suspects.count) })
    }

    /// Rows of an endpoint that are settled in this process.
    package func settled(of endpoint: String) -> Int {
        let counters = endpoints.deliveries.first { $0.settings.name == endpoint }?.counters
        return (counters?.accepted ?? 0) + (counters?.quarantined ?? 0)
    }

    /// For each endpoint with a cursor: rows not accepted yet, in flight included, and its state.
    package var backlog: [(endpoint: String, waiting: Int, state: EndpointState)] {
        endpoints.deliveries.map { ($0.settings.name, $0.waiting, $0.schedule.state) }
    }
}
