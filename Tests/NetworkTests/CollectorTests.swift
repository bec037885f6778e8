import Foundation
import Glibc
import Protocols
import TestSupport
import Testing

@testable import Network

/// The built collector, driven by the uplink.
@Suite struct CollectorTests {
    @Test func storesEachLocationOnceAndInOrder() throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        for first: Int64 in [1, 101, 201, 301] {
            let reply = try loop.reply(collector.request(NativeBody(seqs: first..<first + 100), gzip: true))
            #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
        }
        let bytesSent = loop.uplink.counters.bytesSent
        let counts = try collector.counts(
            loop, "locations", "batches", "inversions", "connections", "bytes_bodies", "bytes_heads")
        let expected: [Int?] = [400, 4, 0, 1]
        #expect(Array(counts.prefix(4)) == expected)
        var bytes = 0
        for count in counts.suffix(2) { bytes += count ?? 0 }
        #expect(bytes == bytesSent)
        let lines = try collector.lines()
        // It holds positions.
        #expect(try collector.mode() == 0o600)
        let seqs: [Int] = try lines.map(Self.seq)
        #expect(seqs == Array(1...400))
        let first = try #require(lines.first)
        #expect(first.contains(#""batch_id":"7f3a91c2-main-1-100""#))
        #expect(first.contains(#""location":{"lat":52.5200066,"lon":13.404954}"#))
    }

    /// Of a row of the device and its queue; else -1.
    private static func seq(_ line: String) throws -> Int {
        let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        guard row?["device"] as? String == "van-7", row?["outbox"] as? String == "7f3a91c2" else { return -1 }
        return row?["seq"] as? Int ?? -1
    }

    @Test func dropsARepeatedKeyAndRefusesItForOtherBytes() throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        let body = NativeBody(seqs: 1..<4)
        var other = body
        other.lat = "52.6"
        let statuses = try [body, body, other].map { try loop.reply(collector.request($0)).status }
        #expect(statuses == [200, 200, 422])
        #expect(try collector.counts(loop, "locations", "duplicate_batches", "rejected") == [3, 1, 1])
        #expect(try collector.lines().count == 3)
    }

    @Test func countsRowsThatComeAgainUnderAnotherKey() throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        for body in [NativeBody(seqs: 11..<21), NativeBody(seqs: 11..<16), NativeBody(seqs: 5..<7)] {
            #expect(try loop.reply(collector.request(body)).status == 200)
        }
        #expect(try collector.counts(loop, "locations", "duplicate_locations", "inversions") == [12, 5, 2])
        #expect(try collector.lines().count == 12)
    }

    private static let wrongShapes: [(correct: String, wrong: String, reason: String)] = [
        (#""outbox":"7f3a91c2""#, #""outbox":"7F3A91C2""#, "outbox: must be 8"),
        (#""device":"van-7","#, "", "device: is missing"),
        (#""lat":52.5200066"#, #""lat":91"#, "locations[0].location.lat: 91.0 is outside"),
        (#""lon":13.404954"#, #""lon":-180.5"#, "locations[0].location.lon: -180.5 is outside"),
        (#""lon":13.404954"#, #""lon":"13""#, "locations[0].location.lon: must be a number"),
        (#""lon":13.404954"#, #""lon":null"#, "locations[0].location.lon: must be a number"),
        (#""seq":2"#, #""seq":1"#, "locations[1].seq: 1 does not rise above 1"),
        (#""seq":1,"#, #""seq":1.5,"#, "locations[0].seq"),
        (#""timeStamp":1700000000"#, #""timeStamp":1700000000123"#, "locations[0].timeStamp"),
        (#""accuracy":4.5"#, #""accuracy":0"#, "locations[0].accuracy"),
        (#""accuracy":4.5"#, #""accuracy":NaN"#, "not JSON"),
        (#""moving":true"#, #""moving":1"#, "locations[0].moving: must be true or false"),
        (#"{"location""#, #"{"batch_id":"x","location""#, "locations[0].batch_id: belongs to the batch"),
        (#""batch_id":"#, #""batch_id":"other","x":"#, "Idempotency-Key"),
        ("]}", "]", "not JSON"), ("]}", "]}x", "not JSON"),
    ]

    @Test func saysWhatIsWrongWithAShape() throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        for row in Self.wrongShapes {
            let request = collector.request(NativeBody(seqs: 1..<3), replacing: row.correct, with: row.wrong)
            #expect(try loop.refusal(request)?.hasPrefix(row.reason) == true, "\(row)")
        }
        // A broken body, too.
        let gzip = UplinkRequest.Header("Content-Encoding", "gzip")
        let request = UplinkRequest(url: collector.url, headers: [gzip], body: Array("no gzip".utf8))
        #expect(try loop.refusal(request) != nil)
        #expect(try collector.counts(loop, "locations") == [0])
    }

    @Test func answersAsToldForTheFirstBatches() throws {
        let collector = try CollectorProcess("--answer", "429", "--retry-after", "2", "--first", "2")
        let loop = try PollLoop()
        let request = collector.request(NativeBody(seqs: 1..<3))
        let replies = try (0..<3).map { _ in try loop.reply(request) }
        #expect(replies.map(\.status) == [429, 429, 200])
        #expect(replies.first?.header("retry-after") == "2")
        #expect(try collector.counts(loop, "faults") == [2])
    }

    static let conditions: [([String], [Int])] = [
        (["--every", "3"], [200, 200, 503, 200, 200, 503]),
        (["--above-bytes", "400"], [200, 200, 503, 503, 503, 503]),
        (["--with-seq", "4", "--with-seq", "1"], [503, 200, 200, 503, 200, 200]),
        (["--for", "0s"], [200, 200, 200, 200, 200, 200]),
        (["--probability", "1"], [503, 503, 503, 503, 503, 503]),
    ]

    @Test(arguments: conditions) func narrowsItsFaults(_ condition: [String], _ statuses: [Int]) throws {
        let collector = try CollectorProcess(["--answer", "503"] + condition)
        let loop = try PollLoop()
        let seen = try (1...6).map { number in
            let rows = Int64(number > 2 && condition.first == "--above-bytes" ? 2 : 1)
            return try loop.reply(collector.request(NativeBody(seqs: Int64(number)..<(Int64(number) + rows)))).status
        }
        #expect(seen == statuses)
    }

    /// Before it has stored the batch, or after, so that the next one is a repeat.
    @Test(arguments: ["--close", "--close-after-store"]) func cutsTheConnectionWithoutAnAnswer(_ fault: String) throws {
        let collector = try CollectorProcess(fault, "--first", "1")
        let loop = try PollLoop()
        let request = collector.request(NativeBody(seqs: 1..<3))
        #expect(try loop.failure(request).word == "closed")
        #expect(try loop.reply(request).status == 200)
        let repeats = fault == "--close" ? 0 : 1
        #expect(try collector.counts(loop, "locations", "duplicate_batches") == [2, repeats])
        #expect(try collector.lines().count == 2)
    }

    @Test func hangsUntilTheClientGivesUp() throws {
        let collector = try CollectorProcess("--hang", "--first", "1")
        let loop = try PollLoop()
        let request = collector.request(NativeBody(seqs: 1..<3))
        var failure: TransportFailure?
        loop.uplink.send(request) { failure = $0.failure }
        loop.run { (try? collector.counts(loop, "faults")) == [1] }
        #expect(failure == nil)
        loop.advance(by: .seconds(31))
        #expect(failure?.word == "timeout")
        #expect(try loop.reply(request).status == 200)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func endsWithASummary(_ signal: Int32) throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        _ = try loop.reply(collector.request(NativeBody(seqs: 1..<4)))
        let (status, said) = collector.end(signal)
        #expect(status == 0 && said.contains("3 locations in 1 batches"), "\(said)")
    }

    @Test func saysWhenThePortIsInUse() throws {
        let (listener, port) = try listenOnLoopback(backlog: 1)
        defer { Glibc.close(listener) }
        let (status, errors) = try CollectorProcess.run(["--port", "\(port)"])
        #expect(status == 69 && errors.contains("127.0.0.1:\(port)") && errors.contains("in use"), "\(errors)")
    }

    @Test(arguments: [
        ["--answer", "500", "--hang"], ["--first", "3"], ["--retry-after", "1"], ["--answer", "99"],
        ["--answer", "500", "--for", "10"], ["--hang", "--probability", "2"],
    ])
    func refusesOptionsThatMakeNoSense(_ arguments: [String]) throws {
        #expect(try CollectorProcess.run(arguments).status == 64)
    }
}

/// A batch in the native shape, as bytes.
struct NativeBody {
    var seqs: Range<Int64>
    var lat = "52.5200066"

    var id: String { "7f3a91c2-main-\(seqs.lowerBound)-\(seqs.upperBound - 1)" }

    var text: String {
        let records = seqs.map { seq in
            #"{"location":{"lat":\#(lat),"lon":13.404954},"timeStamp":\#(1_700_000_000 + seq - seqs.lowerBound),"#
                + #""accuracy":4.5,"speed":12.3,"bearing":271.0,"altitude":34.1,"#
                + #""time_ms":\#(1_700_000_000_123 + (seq - seqs.lowerBound) * 1000),"seq":\#(seq),"moving":true}"#
        }
        return #"{"device":"van-7","outbox":"7f3a91c2","batch_id":"\#(id)","sent_at":"2023-11-14T22:13:40.500Z","#
            + #""locations":[\#(records.joined(separator: ","))]}"#
    }
}

/// A running `waypost-collector` on a free port, ended with its owner.
final class CollectorProcess {
    private let process = Process()
    private let output = Pipe()
    private let directory: TemporaryDirectory
    private(set) var url = ""
    private(set) var port: UInt16 = 0

    convenience init(_ options: String...) throws { try self.init(options) }

    init(_ options: [String]) throws {
        directory = try TemporaryDirectory()
        process.executableURL = Self.executable
        process.arguments = ["--port", "0", "--output", file, "--print-port-to", "\(directory.path)/port"] + options
        process.standardOutput = output
        try process.run()
        var said = ""
        while !said.contains("\n") {
            let data = output.fileHandleForReading.availableData
            if data.isEmpty { break }
            said += String(decoding: data, as: UTF8.self)
        }
        let port = try directory.read("port").trimmingCharacters(in: .newlines)
        url = "http://127.0.0.1:\(port)/locations"
        self.port = try #require(UInt16(port))
        try #require(said.hasPrefix("listening on http://127.0.0.1:\(port)\n"))
    }

    deinit { _ = end(SIGKILL) }

    private var file: String { "\(directory.path)/out.jsonl" }

    /// Beside the test bundle.
    private static var executable: URL {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: "waypost-collector")
    }

    /// The exit status and what it said since its first line.
    func end(_ signal: Int32) -> (status: Int32, said: String) {
        kill(process.processIdentifier, signal)
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, said)
    }

    /// Runs it until it ends by itself.
    static func run(_ arguments: [String]) throws -> (status: Int32, errors: String) {
        let process = Process()
        let errors = Pipe()
        process.executableURL = executable
        process.arguments = arguments
        process.standardError = errors
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, said)
    }

    func request(
        _ body: NativeBody, gzip: Bool = false, replacing correct: String = "", with wrong: String = ""
    ) -> UplinkRequest {
        var text = body.text
        if let range = text.range(of: correct) { text.replaceSubrange(range, with: wrong) }
        return UplinkRequest(
            url: url,
            headers: [.init("Content-Type", "application/json"), .init("Idempotency-Key", "\"\(body.id)\"")],
            body: Array(text.utf8), gzip: gzip)
    }

    /// What it has counted under these names.
    func counts(_ loop: PollLoop, _ names: String...) throws -> [Int?] {
        let url = url.replacingOccurrences(of: "/locations", with: "/stats")
        let reply = try loop.reply(UplinkRequest(method: "GET", url: url, body: []))
        let counts = try JSONDecoder().decode([String: Int].self, from: Data(reply.body))
        return names.map { counts[$0] }
    }

    /// Of the file with what it has stored.
    func mode() throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    }

    func lines() throws -> [String] {
        try directory.read("out.jsonl").split(separator: "\n").map(String.init)
    }
}

extension PollLoop {
    /// The error that a collector answers with; nil where it accepts.
    func refusal(_ request: UplinkRequest) throws -> String? {
        let reply = try reply(request)
        let text = String(decoding: reply.body, as: UTF8.self)
        let head = "{\"error\":\""
        return reply.status == 400 && text.hasPrefix(head) ? String(text.dropFirst(head.utf8.count)) : nil
    }
}
