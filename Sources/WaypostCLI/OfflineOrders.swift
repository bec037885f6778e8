import Agent
import Configuration
import ControlProtocol
import Delivery
import EventLoop
import JSON
import Outbox

/// Orders of an operator while no daemon runs: takes the lock of the queue, and answers as a daemon would.
public enum OfflineOrders {
    /// - Parameter request: as for the control socket.
    /// - Returns: the reply, without a line feed.
    /// - Throws: `QueueReport.Failure` when the queue cannot be opened, or somebody holds it.
    public static func answer(
        _ request: String, config: AgentConfig, environment: [String: String]
    ) throws(QueueReport.Failure) -> [UInt8] {
        let decoded: ControlRequest
        do throws(ControlError) { decoded = try ControlFrame.decode(Array(request.utf8)) } catch {
            return ControlFrame.failure(id: nil, error)
        }
        let newUUID: [UInt8]
        do throws(SystemError) { newUUID = try HostIdentity.randomBytes(16) } catch {
            return ControlFrame.failure(id: decoded.id, ControlError("system", error.description))
        }
        do throws(OutboxError) {
            // First only a look whether there is one: opening it for orders would make one.
            let reader = try OutboxReader(path: config.outbox.settings.path)
            let endpoints = config.endpoints.map(\.settings)
            if decoded.do == "endpoint", decoded.action == "list" { return list(try reader.depths(), endpoints) }
            let outbox = try Outbox(
                config.outbox.settings, endpoints: endpoints,
                bootID: HostIdentity.bootID(environment: environment), newUUID: newUUID)
            defer { outbox.close() }
            do throws(ControlError) {
                let orders = try OperatorOrders(
                    decoded, endpoints: endpoints, depths: outbox.current.depths)
                if orders.asksReceiver,
                    let endpoint = config.endpoints.first(where: { $0.settings.name == orders.rebinds }),
                    endpoint.settings.profile.canBind
                {
                    throw ControlError(
                        "daemon-needed",
                        "the profile of \"\(endpoint.settings.name)\" asks the receiver to bind the asset",
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
                return try ControlFrame.success(id: decoded.id) { (writer) throws(ControlError) in
                    if orders.resumes == nil { try OperatorOrders.write(results, to: &writer) }
                }
            } catch {
                return ControlFrame.failure(id: decoded.id, error)
            }
        } catch {
            throw QueueReport.Failure(error)
        }
    }

    private static func list(_ depths: [EndpointDepth], _ endpoints: [EndpointSettings]) -> [UInt8] {
        ControlFrame.reply(to: nil) { writer in
            writer.key("endpoints")
            writer.beginArray()
            for depth in depths where writer.bytes.count < ControlFrame.bytesFilled {
                writer.beginObject()
                writer.field("name", depth.endpoint)
                writer.field("state", depth.state.word)
                writer.field("reason", depth.state.reason)
                writer.field("stands_in_for", endpoints.first { $0.name == depth.endpoint }?.backupFor)
                writer.field("waiting", depth.waiting + depth.inFlight)
                writer.field("quarantine_depth", depth.quarantined)
                writer.endObject()
            }
            writer.endArray()
        }
    }
}
