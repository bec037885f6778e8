import Foundation
import TestSupport
import Testing

/// Servers that know an asset: NextBillion, and the device API of accesso.
@Suite(.waiting) struct AssetServerTests {
    private func nextbillion(_ rules: String = "") throws -> String {
        """
        profile = "nextbillion"
        vars = { asset_id = "a-1" }
        secrets = { key = "env:NB_KEY" }
        batch_size = 10
        \(rules)

        """
    }

    private let key = ["NB_KEY": "nb-secret"]

    private func times(_ server: ImitatedServer) -> [Int] {
        server.exchanges.filter { $0.wasTaken && $0.request.path.hasSuffix("/track") }
            .flatMap { $0.request.numbers("timestamp") }
    }

    @Test func nextbillionConfirmsByItsStatus() throws {
        let server = try ImitatedServer(
            answering: .status(200, #"{"status":"Error","msg":"try later"}"#), .status(200, #"{"status":"Ok"}"#),
            .status(200), .status(200, "ok"), .status(200, #"{"status":"Ok"}"#))
        let bench = try ServerRig(server, nextbillion())
        try bench.start(environment: key)
        let said = try bench.runToEnd()
        let requests = server.exchanges.map(\.request)
        #expect(requests[0].body == requests[1].body)
        #expect(requests.allSatisfy { $0.path == "/skynet/asset/a-1/track" && $0.query == ["key": "nb-secret"] })
        #expect(Array(times(server).dropFirst(10)) == bench.times)
        #expect(!said.contains("nb-secret"))
    }

    private enum Sign: String, CaseIterable {
        case conflict, message, msg

        var reply: ImitatedServer.Reply {
            switch self {
            case .conflict: .status(409)
            case .message: .status(400, #"{"status":"Failed","message":"device rig is not bound to a-1"}"#)
            case .msg: .status(200, #"{"status":"Failed","msg":"asset not bound"}"#)
            }
        }
    }

    /// The second batch meets another device, the first and a second endpoint do not care; then the daemon starts again.
    @Test(arguments: ["keep conflict", "quarantine message", "clear msg"])
    func nextbillionReportsAnotherDevice(_ words: String) throws {
        let (mode, sign) = (words.split(separator: " ")[0], words.split(separator: " ")[1])
        let collision = try #require(Sign(rawValue: String(sign))).reply
        let server = try ImitatedServer { request, earlier in
            let isBound = earlier.count < 1 || earlier.contains { $0.request.path.hasSuffix("/bind") }
            return isBound || request.path.hasSuffix("/bind") ? .status(200, #"{"status":"Ok"}"#) : collision
        }
        let other = try ImitatedServer(answering: .status(200))
        let bench = try ServerRig(server, nextbillion("on_collision = \"\(mode)\""), other: other, follows: true)
        try bench.start(environment: key)
        let rest = bench.times.count - 10
        func isSettled(_ status: [String: Any]) -> Bool {
            guard status["state"] as? String == "taken" else { return false }
            switch mode {
            case "keep": return status["waiting"] as? Int == rest
            case "quarantine": return status["quarantine_depth"] as? Int == rest
            default: return status["dropped"] as? Int == rest
            }
        }
        try bench.rig.waitForEndpoint { isSettled($0) }
        try bench.rig.waitForEndpoint("other") { $0["waiting"] as? Int == 0 }
        #expect(other.exchanges.flatMap { $0.request.numbers("time_ms") } == bench.times)

        try bench.stop()
        let before = server.exchanges.count
        try bench.start(environment: key)
        try bench.rig.waitForEndpoint { mode == "clear" ? $0["state"] as? String == "taken" : isSettled($0) }
        #expect(server.exchanges.count == before)

        try bench.order("endpoint", "bind", "main", "--force")
        if mode == "quarantine" { try bench.order("quarantine", "retry", "--all") }
        if mode == "quarantine" { try bench.rig.waitForEndpoint { $0["acked"] as? Int == rest } }
        try bench.deliverRest()
        let bind = try #require(server.exchanges.first { $0.request.path.hasSuffix("/bind") })
        #expect(bind.request.object as? [String: String] == ["device_id": "rig"])
        #expect(try bench.quarantine().isEmpty)
        let expected = mode == "clear" ? Array(bench.times.prefix(10)) : bench.times
        let taken = server.exchanges.enumerated().filter { $0.offset == 0 || $0.offset > before }
        #expect(taken.flatMap { $0.element.request.numbers("timestamp") } == expected)
    }

    /// Another asset while rows wait for the old one: held over a restart, until the operator says whose they are.
    @Test func anotherAssetIsNoErrorAndNoMix() throws {
        let server = try ImitatedServer { _, earlier in .status(earlier.isEmpty ? 200 : 503) }
        let bench = try ServerRig(server, nextbillion(), follows: true)
        try bench.start(environment: key)
        try bench.rig.waitForEndpoint { ($0["consecutive_failures"] as? Int ?? 0) > 0 }
        // A row that is recorded later is for the asset of then.
        try bench.rig.waitFor("motion", "kept") { $0 as? Int ?? 0 >= bench.times.count }
        try bench.stop()
        try bench.rig.reconfigure("a-1", to: "a-2")
        for _ in 0..<2 {
            let before = server.exchanges.count
            try bench.start(environment: key)
            try bench.rig.waitForEndpoint { $0["state"] as? String == "rebind" }
            #expect(server.exchanges.count == before)
            try bench.stop()
        }
        try bench.start(environment: key)
        try bench.rig.waitForEndpoint { $0["state"] as? String == "rebind" }
        try bench.order("endpoint", "drop", "main")
        try bench.deliverRest()
        #expect(server.exchanges.allSatisfy { !$0.request.path.contains("a-2") })
    }

    /// It keeps what the last post said: a post without the push token would make it forget.
    @Test func accessoKeepsItsPushTokenAndGetsEachCrossing() throws {
        let server = try ImitatedServer { request, _ in
            .status(request.header("Authorization") == "Bearer te2" ? 200 : 401)
        }
        let bench = try ServerRig(
            server,
            """
            profile = "accesso"
            vars = { app_id = "app-7", app_user_id = "u-42", user_id = "42", platform = "LINUX", push_token = "tok-1" }
            secrets = { token = "env:TE2" }

            """,
            more: """
                [[geofence]]
                id = "f-1"
                name = "Depot North"
                center = { latitude = 52.505, longitude = 13.4 }
                radius = "150m"
                """)
        try bench.start(environment: ["TE2": "te2"])
        try bench.runToEnd()
        var device: [String: Any] = [:]
        for exchange in server.exchanges {
            device = exchange.request.object
            #expect(device["pushDeviceToken"] as? String == "tok-1" && device["userId"] as? String == "42")
            #expect(exchange.request.path == "/rest/user/device")
        }
        let queries = server.exchanges.map(\.request.query)
        let crossings = queries.filter { !$0.isEmpty }
        #expect(crossings.map { $0["event"] } == ["ENTER", "EXIT"])
        #expect(crossings.allSatisfy { $0["fenceId"] == "Depot North" && $0["locationSource"] == "DEVICE" })
        // One device at one place: the plain posts before are passed over, and the last one is where it is.
        #expect(queries.last == [:] && device["timestamp"] as? Int == bench.times.last)
        let times = server.exchanges.compactMap { $0.request.object["timestamp"] as? Int }
        #expect(times == times.sorted() && times.count < bench.times.count)
    }
}
