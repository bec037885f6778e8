import Foundation
import Synchronization
import TestSupport
import Testing

/// The daemon with geofences from a server, from the configuration to the uploads.
@Suite(.waiting) struct FenceServerTests {
    private let drive = DemoDrive.path

    /// Serves what the test sets.
    private final class Lists: Sendable {
        let body = Mutex("")
        let isDown = Mutex(false)

        func server() throws -> ScriptedServer {
            try ScriptedServer { [self] connection in
                while let request = connection.request() {
                    let body = body.withLock { $0 }
                    if isDown.withLock({ $0 }) { return }
                    let tag = "\"\(body.utf8.count)\""
                    if request.header("If-None-Match") == tag {
                        connection.send("HTTP/1.1 304 Not Modified\r\nETag: \(tag)\r\n\r\n")
                    } else {
                        connection.send(
                            "HTTP/1.1 200 OK\r\nETag: \(tag)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
                    }
                }
            }
        }

        func set(_ fences: String...) { body.withLock { $0 = #"{"geofences":[\#(fences.joined(separator: ","))]}"# } }
    }

    private let home = #"{"id":"h","name":"Home","radius":100,"center":{"lat":52.5199877,"lon":13.4049755}}"#
    private let market = #"{"id":"m","name":"Market","radius":150,"center":{"lat":52.4939247,"lon":13.4122727}}"#

    private func configure(_ rig: Rig, _ server: ScriptedServer, playback: String) throws {
        try rig.configure(
            source: Rig.log(drive, playback: playback),
            outbox: "commit_window = \"20ms\"",
            more: """
                [[geofences.source]]
                name = "venue"
                profile = "accesso-venue"
                url = "\(server.url)/venues/${vars.venue_id}"
                vars = { venue_id = "42" }
                """)
    }

    private func crossings(_ rig: Rig) throws -> [String] { try rig.received().compactMap(\.crossing) }

    private func refresh(_ rig: Rig) throws -> (status: Int32, text: String) { try rig.command("geofences refresh") }

    @Test func aListComesIntoForceIsShownAndOutlivesTheServer() throws {
        let lists = Lists()
        lists.set(home, market)
        let server = try lists.server()
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig, server, playback: "20.0")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("geofences venue: 2 geofences: 2 added, 0 gone, 0 changed")
        #expect(server.requests.first?.head.first == "GET /venues/42 HTTP/1.1")
        #expect(try refresh(rig) == (0, "venue: unchanged, 2 geofences\n"))
        let shown = try rig.command("status --all").text
        let words = ["           venue: 2 geofences, ", " old, asked again in "]
        #expect(words.filter { !shown.contains($0) } == [], "\(shown)")
        #expect(try rig.command("geofences refresh other").status == 1)
        // Another list, in the middle of the drive.
        try daemon.waitFor("stationary since")
        lists.set(market)
        #expect(try refresh(rig).text == "venue: received, 1 geofence\n")
        try daemon.waitFor("geofences venue: 1 geofence: 0 added, 1 gone, 0 changed")
        lists.set(home, market.replacing("150", with: "0"))
        let refused = try refresh(rig)
        #expect(refused.status == 1 && refused.text.contains("geofences[1].radius: found a radius of 0.0 m"))
        daemon.kill(SIGKILL)
        _ = daemon.ended(within: 10)

        lists.isDown.withLock { $0 = true }
        let next = try rig.startDaemon()
        try next.waitFor("the list of before stays in force")
        let report = try rig.status()
        #expect(report.int("motion.geofences.fences") == 1)
        let source = report.list("motion.geofences.sources").first ?? [:]
        #expect(["fences", "failures"].map(source.int) == [1, 1] && source.string("problem") != nil, "\(source)")
        try next.stop()
        let received = try rig.received().filter { $0.crossing != nil }
        #expect(received.map(\.crossing) == ["enter venue/h", "exit venue/h"])
        #expect(received.map(\.reason) == ["initial", "removed"])
        let fence = received.last?.members.object("geofence") ?? [:]
        #expect(["name", "server_id"].map(fence.string) == ["Home", "h"], "\(fence)")
    }

    @Test func crossingsStayPairedWhenKilledAgainAndAgainWithOtherLists() throws {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let lists = Lists()
        let server = try lists.server()
        let rig = try Rig()
        try rig.startCollector()
        try configure(rig, server, playback: "\"max\"")
        for _ in 0..<8 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: lists.set(home)
            case 1: lists.set(market, home.replacing("100", with: "200"))
            case 2: lists.set()
            default: lists.set(home, market)
            }
            let daemon = try rig.startDaemon()
            _ = daemon.ended(within: Double.random(in: 0.03...0.2, using: &random))
            daemon.kill(SIGKILL)
            _ = daemon.ended(within: 10)
        }
        try rig.runDaemon()
        var inside: Set<String> = []
        for crossing in try crossings(rig) {
            let words = crossing.split(separator: " ")
            let fence = String(words[1])
            let isRight = words[0] == "enter" ? inside.insert(fence).inserted : inside.remove(fence) != nil
            #expect(isRight, "seed \(seed): \(crossing)")
        }
    }

    /// The server of docs/places.md.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")))
    func theServerOfTheManualServes() throws {
        let page = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("docs/places.md"), encoding: .utf8)
        let start = try #require(page.range(of: "```python\n")?.upperBound)
        let end = try #require(page[start...].range(of: "```")?.lowerBound)
        let code = String(page[start..<end])
        #expect(code.split(separator: "\n").count <= 30)
        let rig = try Rig()
        try code.write(toFile: rig.path("fences.py"), atomically: true, encoding: .utf8)
        try #"{"geofences":[\#(home)]}"#.write(toFile: rig.path("fences.json"), atomically: true, encoding: .utf8)
        let port = try listenOnLoopback(backlog: 1)
        close(port.descriptor)
        let program = try RunningProgram(
            shell:
                "cd \(rig.directory.path); FENCES_TOKEN=t-1 exec /usr/bin/python3 fences.py \(port.port) fences.json",
            in: rig.directory)
        defer { program.kill(SIGKILL) }

        try rig.startCollector()
        try rig.configure(
            source: Rig.log(drive, playback: "\"recorded\""),
            more: """
                [[geofences.source]]
                name = "own"
                profile = "accesso-venue"
                url = "http://127.0.0.1:\(port.port)/"
                auth = { kind = "bearer", token = "env:FENCES_TOKEN" }
                """)
        // It may not listen yet.
        let client = try #require(eventually(within: 30) { connectToLoopback(port.port) })
        close(client)
        let daemon = try rig.startDaemon(environment: ["FENCES_TOKEN": "t-1"])
        try daemon.waitFor("geofences own: 1 geofence: 1 added, 0 gone, 0 changed")
        #expect(try refresh(rig).text == "own: unchanged, 1 geofence\n")
        try daemon.stop()
    }
}
