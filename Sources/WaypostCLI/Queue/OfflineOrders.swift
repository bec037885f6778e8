import Configuration
import Daemon
import Profiles
import Queue
import WaypostControl
import WaypostHost

/// Orders of an operator while no daemon runs: takes the lock of the queue, and answers as a daemon would.
package enum OfflineOrders {
    /// - Parameter request: as for the control socket.
    /// - Returns: the reply, without a line feed.
    /// - Throws: `QueueReport.Failure` when the queue cannot be opened, or another process holds it.
    package static func answer(
        _ request: [UInt8], config: AgentConfig, environment: [String: String]
    ) throws(QueueReport.Failure) -> [UInt8] {
        let frame: RequestFrame
        do throws(ControlError) { frame = try RequestFrame(request) } catch {
            return ControlFrame.failure(id: nil, error)
        }
        let newUUID: [UInt8]
        do throws(SystemError) { newUUID = try HostIdentity.randomBytes(16) } catch {
            return ControlFrame.failure(id: frame.id, ControlError("system", error.description))
        }
        do throws(OutboxError) {
            // Fails without a queue: opening it for orders would make one.
            let reader = try OutboxReader(path: config.outbox.settings.path)
            let endpoints = config.endpoints.map(\.settings)
            let depths = try reader.depths()
            if let request: EndpointRequest = try? frame.read(), frame.verb == Verb.endpoint.rawValue,
                request.action == "list"
            {
                return ControlFrame.reply(to: nil) { list(depths, endpoints) }
            }
            let outbox = try Outbox(
                config.outbox.settings, endpoints: endpoints,
                bootID: HostIdentity.bootID(environment: environment), newUUID: newUUID)
            defer { outbox.close() }
            do throws(ControlError) {
                let orders = try OperatorOrders(
                    frame, endpoints: endpoints, depths: outbox.current.depths)
                if orders.asksServer,
                    let endpoint = config.endpoints.first(where: { $0.settings.name == orders.rebinds }),
                    endpoint.settings.profile.canBind
                {
                    throw ControlError(
                        "daemon-needed",
                        "the profile of \"\(endpoint.settings.name)\" asks the server to bind the asset",
                        hint: "start waypost, which holds this endpoint and serves the others, and give the order again"
                    )
                }
                let states = orders.resumes.map { [Commit.StateChange(endpoint: $0, state: .active)] } ?? []
                let results: [OrderResult]
                do throws(OutboxError) {
                    results = try outbox.commit(Commit(states: states, orders: orders.queue)).orders
                } catch {
                    throw ControlError("disk", error.description)
                }
                let reply = orders.resumes == nil ? try OperatorOrders.reply(results) : OrderReply()
                return ControlFrame.reply(to: frame.id) { reply }
            } catch {
                return ControlFrame.failure(id: frame.id, error)
            }
        } catch {
            throw QueueReport.Failure(error)
        }
    }

    private static func list(_ depths: [EndpointDepth], _ endpoints: [EndpointSettings]) -> OrderReply {
        var reply = OrderReply()
        reply.endpoints = depths.map { depth in
            var status = EndpointStatus()
            status.name = depth.endpoint
            status.state = depth.state.word
            status.reason = depth.state.reason
            status.standsInFor = endpoints.first { $0.name == depth.endpoint }?.backupFor
            status.waiting = depth.waiting + depth.inFlight
            status.quarantineDepth = depth.quarantined
            return status
        }
        return reply
    }
}
