import Foundation
import TestSupport
import Testing

/// Servers of the profile `waypost` that keep the contract to the letter, and ones that nearly do.
@Suite(.waiting) struct NativeServerTests {
    private let plain = "batch_size = 10\ncompress = \"none\"\n"

    /// What a store by (outbox, seq) holds, in the order of arrival, of the requests that it took.
    private func stored(_ server: ImitatedServer, _ isStored: (ImitatedServer.Exchange) -> Bool) -> [Int: Int] {
        var rows: [Int: Int] = [:]
        for exchange in server.exchanges where isStored(exchange) {
            for row in exchange.request.rows() {
                guard let seq = row["seq"] as? Int, let time = row["time_ms"] as? Int else { continue }
                rows[seq] = time
            }
        }
        return rows
    }

    /// The same key never stands for other bytes, and names the batch.
    private func expectKeysToStandForBodies(_ server: ImitatedServer) throws {
        var bodies: [String: [UInt8]] = [:]
        for request in server.exchanges.map(\.request) {
            let key = try #require(request.header("Idempotency-Key"))
            #expect(key == "\"\(request.object["batch_id"] as? String ?? "?")\"")
            #expect(bodies[key, default: request.body] == request.body, "\(key)")
            bodies[key] = request.body
        }
    }

    /// Row 5 is refused for good, row 7 once; the fourth batch meets another request with the same key in progress.
    @Test func aStrictOneRefusesSingleRows() throws {
        let server = try ImitatedServer { request, earlier in
            guard let key = request.header("Idempotency-Key"), key.first == "\"", key.last == "\"" else {
                return .status(400, #"{"error":"no key"}"#)
            }
            let same = earlier.filter { $0.request.header("Idempotency-Key") == key }
            if same.contains(where: { $0.request.body != request.body }) { return .status(422) }
            if earlier.count == 3 { return .status(409, #"{"error":"in progress"}"#) }
            let seqs = request.numbers("seq")
            var rejected: [String] = []
            if seqs.contains(5) { rejected.append(#"{"seq":5,"code":"bad","reason":"out of the fleet's area"}"#) }
            if seqs.contains(7), seqs.count > 1 { rejected.append(#"{"seq":7,"code":"busy"}"#) }
            return .status(200, #"{"rejected":[\#(rejected.joined(separator: ","))]}"#)
        }
        let bench = try ServerRig(server, plain)
        try bench.runToEnd()
        try expectKeysToStandForBodies(server)
        #expect(!server.exchanges.contains { $0.status == 422 || $0.status == 400 })
        #expect(stored(server, \.wasTaken).keys.sorted() == Array(1...bench.times.count))
        let set = try bench.quarantine()
        #expect(set.count == 1 && set.first?.contains("seq 5 ") == true, "\(set)")
        #expect(set.first?.contains("out of the fleet's area") == true)
    }

    @Test func aTakenAssetWaitsForItsOperator() throws {
        let server = try ImitatedServer { _, earlier in
            earlier.count == 2 ? .status(409, #"{"error":"asset_taken"}"#) : .status(204)
        }
        let bench = try ServerRig(server, plain, follows: true)
        try bench.start()
        // The last fix of the file comes a moment late: nothing follows that would end its epoch.
        let rest = bench.times.count - 20
        try bench.rig.waitForEndpoint { $0["state"] as? String == "taken" && $0["waiting"] as? Int == rest }
        #expect(server.exchanges.count == 3)
        try bench.order("endpoint", "bind", "main", "--force")
        try bench.deliverRest()
        #expect(stored(server, \.wasTaken).sorted { $0.key < $1.key }.map(\.value) == bench.times)
        #expect(try bench.quarantine().isEmpty)
    }

    /// It stores, and the connection is reset before the reply: the server must recognise the repetition.
    @Test func aSlowCommitLeavesNoDuplicate() throws {
        let server = try ImitatedServer { _, earlier in
            [0, 2, 3].contains(earlier.count) ? .reset : .status(200)
        }
        let bench = try ServerRig(server, plain)
        try bench.runToEnd()
        try expectKeysToStandForBodies(server)
        #expect(stored(server) { _ in true }.count == bench.times.count)
        #expect(stored(server, \.wasTaken).sorted { $0.key < $1.key }.map(\.value) == bench.times)
        for (lost, next) in zip(server.exchanges, server.exchanges.dropFirst()) where !lost.wasTaken {
            #expect(lost.request.body == next.request.body)
        }
    }

    /// It may be half of a list of refused rows, or come from something else than the server.
    @Test func garbageBehindA200IsNoSuccess() throws {
        let garbage = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"re\u{1}]\u{7F}"
        let server = try ImitatedServer(
            answering: .bytes(Array(garbage.utf8)), .status(200, "<html>welcome</html>"),
            .status(202, #"{"rejected":[]}"#), .status(202, #"{"rejected":{"seq":1}}"#), .status(204),
            .status(200, "{}"))
        let bench = try ServerRig(server, plain)
        let said = try bench.runToEnd()
        let bodies = server.exchanges.map(\.request.body)
        #expect(bodies[0] == bodies[1] && bodies[1] == bodies[2] && bodies[3] == bodies[4])
        #expect(server.exchanges.count == (bench.times.count + 9) / 10 + 3)
        try expectKeysToStandForBodies(server)
        #expect(said.contains("but the body is not JSON"), "\(said)")
        #expect(try bench.quarantine().isEmpty)
    }
}
