import Network
import Protocols
import TestSupport
import Testing
import WaypostHost

@testable import Daemon

@Suite struct LoopedBrokerTests {
    /// Nothing else happens on the connection that could bring it to light.
    @Test func whatIsTooLargeForTheBrokerIsReportedAtOnce() throws {
        let server = try LocalServer()
        let loop = try EventLoop()
        let uplink = try LoopedUplink(settings: .init(version: "1.2.3"), loop: loop)
        defer { uplink.close() }
        var ended: [UplinkOutcome.Result] = []
        func send(_ payloads: [Int]) {
            var request = UplinkRequest(url: "mqtt://127.0.0.1:\(server.port)", body: [])
            request.broker = BrokerRequest(
                session: BrokerSession(clientID: "van"),
                messages: BrokerMessages(count: payloads.count) {
                    MQTTMessage(topic: "a", payload: [UInt8](repeating: 1, count: payloads[$0]))
                })
            uplink.send(request) { ended.append($0.result) }
        }
        send([])
        try loop.run { uplink.counters.connections == 1 }
        try server.accept()
        // CONNACK with a maximum packet size of 64.
        server.send([0x20, 8, 0, 0, 5, 0x27, 0, 0, 0, 64])
        try loop.run { ended.count == 1 }
        send([100])
        #expect(ended.count == 1, "not from inside send")
        try loop.run { ended.count == 2 }
        guard case .published(let reply)? = ended.last else { return _ = Issue.record("\(ended)") }
        #expect(reply.reasons == [.packetTooLarge])
    }
}
