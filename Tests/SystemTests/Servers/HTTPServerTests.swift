import Foundation
import TestSupport
import Testing

/// Servers whose trouble is HTTP's own: out of order, too small, in another place, without an end.
@Suite(.waiting) struct HTTPServerTests {
    private let plain = "batch_size = 10\ncompress = \"none\"\n"

    /// Every location of the drive, in order; each only once unless an answer to it was lost.
    private func expectAll(_ server: ImitatedServer, of bench: ServerRig, taken: [Int] = []) {
        let exchanges = server.exchanges
        let times = exchanges.indices.filter { exchanges[$0].wasTaken || taken.contains($0) }
            .flatMap { exchanges[$0].request.numbers("time_ms") }
        #expect(times == bench.times)
    }

    private func pause(_ server: ImitatedServer, after index: Int) -> Double {
        let exchanges = server.exchanges
        guard exchanges.count > index + 1 else { return -1 }
        return exchanges[index + 1].at.timeIntervalSince(exchanges[index].at)
    }

    @Test func aFlakyOneGetsEachBatchAgain() throws {
        let server = try ImitatedServer(
            answering: .status(500), .status(500), .status(200),
            .status(429, headers: ["Retry-After: 3"]), .status(200),
            // Its clock is a quarter of a century off.
            .status(
                429,
                headers: ["Date: Fri, 31 Dec 1999 23:59:59 GMT", "Retry-After: Saturday, 01-Jan-00 00:00:02 GMT"]),
            .status(200), .status(503), .status(200))
        let bench = try ServerRig(server, plain)
        // Each 429 makes it longer.
        try bench.rig.reconfigure("batch_window = \"1s\"", to: "batch_window = \"100ms\"")
        try bench.runToEnd()
        expectAll(server, of: bench)
        let waits: [(index: Int, range: ClosedRange<Double>)] = [
            (0, 0.95...2.8), (1, 0.95...4.8), (3, 2.95...4.5), (5, 2.95...4.5), (7, 0.95...2.8),
        ]
        for (index, idle) in waits {
            let range = idle.lowerBound...idle.upperBound * RunningProgram.slack
            let exchanges = server.exchanges
            #expect(range.contains(pause(server, after: index)), "\(index): \(pause(server, after: index))")
            #expect(exchanges[index].request.body == exchanges[index + 1].request.body)
        }
    }

    @Test func aProxyInTheEnvironmentHasNoEffect() throws {
        let server = try ImitatedServer { _, _ in .status(200) }
        let bench = try ServerRig(server, plain)
        let nowhere = "http://127.0.0.1:1"
        try bench.start(environment: ["http_proxy": nowhere, "https_proxy": nowhere, "ALL_PROXY": nowhere])
        try bench.runToEnd()
        expectAll(server, of: bench)
    }

    @Test func aSmallOneGetsSmallerBatches() throws {
        let most = 2000
        let server = try ImitatedServer { request, _ in .status(request.body.count > most ? 413 : 200) }
        let bench = try ServerRig(server, "batch_size = 40\ncompress = \"none\"\n")
        try bench.runToEnd()
        expectAll(server, of: bench)
        #expect(try bench.quarantine().isEmpty)
        // It learns: what was too large is not tried again with each batch.
        let refused = server.exchanges.filter { !$0.wasTaken }.count
        #expect((1...8).contains(refused), "\(server.exchanges.map { ($0.request.rows().count, $0.status ?? 0) })")
    }

    @Test func oneWithoutGzipGetsPlainBodies() throws {
        let server = try ImitatedServer { request, _ in
            .status(request.header("Content-Encoding") == nil ? 200 : 415)
        }
        let bench = try ServerRig(server, "batch_size = 20\n")
        try bench.runToEnd()
        expectAll(server, of: bench)
        #expect(server.exchanges.map(\.status).prefix(2) == [415, 200])
        // A second time before compression is turned off: one refusal may have had another cause.
        #expect(server.exchanges.count { $0.status == 415 } == 2)
    }

    @Test func oneThatMovedIsNotFollowed() throws {
        let elsewhere = try ImitatedServer(answering: .status(200))
        let moved = ImitatedServer.Reply.status(
            307, headers: ["Location: http://127.0.0.1:\(elsewhere.port)/locations"])
        let server = try ImitatedServer(answering: moved, moved, .status(200))
        let bench = try ServerRig(server, plain)
        let said = try bench.runToEnd()
        expectAll(server, of: bench)
        #expect(elsewhere.exchanges.isEmpty)
        #expect(said.contains("redirected to 127.0.0.1:\(elsewhere.port)"), "\(said)")
    }

    @Test func aReplyInChunksIsRead() throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        let chunks = "e\r\n{\"rejected\":[{\r\n18\r\n\"seq\":3,\"code\":\"bad\"}]} \r\n0\r\n\r\n"
        let server = try ImitatedServer(answering: .bytes(Array((head + chunks).utf8)), .status(200))
        let bench = try ServerRig(server, plain)
        try bench.runToEnd()
        expectAll(server, of: bench, taken: [0])
        #expect(try bench.quarantine().map { $0.contains("seq 3 ") } == [true])
    }

    @Test func aReplyWithoutAnEndIsLeft() throws {
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"rejected\":[{\"seq\":1"
        let block = [UInt8](repeating: 0x20, count: 10_000)
        let server = try ImitatedServer(
            answering: .bytes(Array(cut.utf8)), .endless(head: "HTTP/1.1 200 OK\r\n\r\n", block),
            .endless(head: "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", block), .status(200))
        let bench = try ServerRig(server, plain)
        try bench.start()
        try bench.runToEnd()
        let bodies = server.exchanges.map(\.request.body)
        #expect(bodies.prefix(4).allSatisfy { $0 == bodies[0] })
        #expect(server.exchanges.dropFirst(3).flatMap { $0.request.numbers("time_ms") } == bench.times)
        // What the sockets of both ends hold beside the 64 KiB that are read.
        #expect(server.bytesTaken < 8_000_000, "\(server.bytesTaken)")
        #expect(try bench.quarantine().isEmpty)
    }

    @Test func aReplyThatNeverComesIsGivenUp() throws {
        let server = try ImitatedServer(answering: .silence, .status(200))
        let bench = try ServerRig(server, plain + "timeout = \"2s\"\n")
        try bench.runToEnd()
        expectAll(server, of: bench)
        #expect((2.9...6).contains(pause(server, after: 0)), "\(pause(server, after: 0))")
        #expect(server.exchanges[0].request.body == server.exchanges[1].request.body)
    }

    // Credentials.

    /// A token command runs once a minute at most; a file is read again at once.
    @Test func aTokenThatWasExchangedIsReadAgain() throws {
        let bench: ServerRig
        let exchanged = Exchanged()
        let server = try ImitatedServer { request, earlier in
            if earlier.count == 1 { exchanged.renew() }
            return .status(
                request.header("Authorization") == (earlier.isEmpty ? "Bearer old" : "Bearer new") ? 200 : 401)
        }
        bench = try ServerRig(server, plain)
        exchanged.path = try bench.secret("token", "old\n")
        try bench.rig.reconfigure(
            plain, to: plain + "auth = { kind = \"bearer\", token = \"file:\(exchanged.path)\" }\n")
        try bench.runToEnd()
        expectAll(server, of: bench)
        #expect(server.exchanges.count { !$0.wasTaken } == 1)
    }

    /// The file of a token that its owner exchanges behind the daemon's back.
    private final class Exchanged: @unchecked Sendable {
        /// Set before the first request.
        var path = ""

        func renew() {
            guard let file = FileHandle(forWritingAtPath: path) else { return }
            file.write(Data("new\n".utf8))
            try? file.close()
        }
    }

    @Test(arguments: [401, 403])
    func aCredentialThatIsNeverTakenPausesAndKeepsAll(_ status: Int) throws {
        let server = try ImitatedServer(answering: .status(status))
        let bench = try ServerRig(server, plain)
        let path = try bench.secret("key", "never-right\n")
        try bench.rig.reconfigure(
            plain, to: plain + "auth = { kind = \"bearer\", token = \"file:\(path)\" }\n")
        try bench.start()
        let paused = try bench.rig.waitForEndpoint { $0["reason"] as? String == "auth" }
        #expect(paused["waiting"] as? Int == bench.times.count)
        #expect("\(paused["problem"] ?? "")".contains("the credential is refused: check the token in \(path); paused"))
        #expect((1...2).contains(server.exchanges.count))
        #expect(try bench.quarantine().isEmpty)
        #expect(bench.daemon?.text.contains("never-right") == false)
    }

    /// Nothing goes out without the token, and all of it once there is one.
    @Test(arguments: ["exit 3", "exit 0", "echo two; echo lines", "sleep 60"])
    func aTokenCommandThatGivesNoneHoldsTheRows(_ line: String) throws {
        let server = try ImitatedServer { request, _ in
            .status(request.header("Authorization") == "Bearer good" ? 200 : 401)
        }
        let bench = try ServerRig(server, plain)
        let script = try bench.secret("token", "#!/bin/sh\n\(line)\n", mode: 0o700)
        try bench.rig.reconfigure(
            plain, to: plain + "auth = { kind = \"token_command\", command = [\"\(script)\"] }\n")
        try bench.start()
        // The first row asks for the token, and the command may have failed before the last one is there.
        try bench.rig.waitForEndpoint(within: 60) {
            ($0["failed"] as? [String: Int])?["credential"] ?? 0 > 0 && $0["waiting"] as? Int == bench.times.count
        }
        #expect(server.exchanges.isEmpty)
        // The command runs once a minute at most: a restart is what a minute later would be.
        try bench.stop()
        _ = try bench.secret("token", "#!/bin/sh\necho good\n", mode: 0o700)
        try bench.start()
        try bench.runToEnd()
        expectAll(server, of: bench)
    }
}
