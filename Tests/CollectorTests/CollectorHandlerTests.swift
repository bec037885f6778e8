import FlyingFox
import Foundation
import Testing

@testable import waypost_collector

/// Who may read what came, and who may send.
@Suite struct CollectorHandlerTests {
    private func answer(
        _ path: String, method: HTTPMethod = .GET, _ headers: [HTTPHeader: String]
    ) async throws -> HTTPResponse {
        let feed = LiveFeed(run: "a1", counters: Intake.noStatistics, now: { 0 })
        return try await handler(feed).handleRequest(request(path, method: method, headers))
    }

    private func handler(_ feed: LiveFeed) -> CollectorHandler {
        let intake = Intake(faults: nil, store: LocationStore(output: nil), feed: feed, now: { 1_795_687_200_000 })
        return CollectorHandler(intake: intake, page: LivePage(feed: feed))
    }

    private func request(
        _ path: String, method: HTTPMethod, _ headers: [HTTPHeader: String], _ body: String = ""
    ) -> HTTPRequest {
        HTTPRequest(
            method: method, version: .http11, path: path, query: [], headers: headers, body: Data(body.utf8))
    }

    @Test(arguments: [
        "127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:80", "[::1]", "[::1]:8080", "localhost:",
    ])
    func thisMachineIsLocal(host: String) async throws {
        #expect(LivePage.isLocal(host: host))
        #expect(try await answer("/", [.host: host]).statusCode == .ok)
    }

    /// A page of another site whose name leads to this machine must not read positions.
    @Test(
        arguments: [
            nil, "", "example.org", "localhost.example.org", "127.0.0.1.example.org", "127.0.0.1:80@example.org",
            "evil:localhost",
            "127.0.0.2", "[::1", "[::1]x", "[::2]", "localhost:80a", "localhost:८", " localhost", "0.0.0.0", "127.1",
        ] as [String?])
    func anyOtherHostIsMisdirected(host: String?) async throws {
        #expect(!LivePage.isLocal(host: host))
        for path in ["/", "/events", "/stats", "/live/main.js", "/nowhere"] {
            let headers: [HTTPHeader: String] = host.map { [.host: $0] } ?? [:]
            #expect(try await answer(path, headers).statusCode.code == 421, "\(path)")
        }
    }

    @Test func aPageInABrowserMayNotUpload() async throws {
        let headers = [HTTPHeader.host: "localhost", HTTPHeader("Origin"): "https://example.org"]
        #expect(try await answer("/", method: .POST, headers).statusCode.code == 403)
        #expect(try await answer("/commands/van-7", method: .POST, headers).statusCode.code == 403)
        #expect(try await answer("/settings/van-7", method: .PUT, headers).statusCode.code == 405)
    }

    /// Uploads may come under any name, but what changes a device is sent by this machine.
    @Test func settingsAndCommandsAreSentByThisMachine() async throws {
        let rows: [(String, HTTPMethod)] = [
            ("/commands/van-7", .POST), ("/reported/van-7", .POST), ("/settings/van-7", .PUT),
        ]
        for (path, method) in rows {
            #expect(try await answer(path, method: method, [.host: "example.org"]).statusCode.code == 421)
            #expect(try await answer(path, method: method, [.host: "localhost"]).statusCode.code == 400)
        }
        #expect(try await answer("/elsewhere/van-7", method: .PUT, [.host: "localhost"]).statusCode.code == 404)
        #expect(try await answer("/commands/van-7", [.host: "localhost"]).statusCode.code == 404)
    }

    /// From its author through the answer to a batch, and what the device says of it.
    @Test func aCommandGoesWithTheAnswerToTheNextBatch() async throws {
        let feed = LiveFeed(run: "a1", counters: "{}", now: { 0 })
        let handler = handler(feed)
        let command = #"{"id":"c-1","do":"flush","expires":"2026-11-26T10:00:30Z"}"#
        let host = [HTTPHeader.host: "localhost", HTTPHeader("Waypost-Signature"): "sha256=aa"]
        func ask(_ path: String, _ method: HTTPMethod, _ text: String = "") async throws -> HTTPResponse {
            try await handler.handleRequest(request(path, method: method, host, text))
        }
        #expect(try await ask("/commands/van-7", .POST, command).statusCode.code == 202)
        let expected: [String?] = [command, nil]
        for (index, text) in expected.enumerated() {
            let record = #"{"seq":\#(index + 1),"location":{"lat":1,"lon":2},"timeStamp":1,"time_ms":1000}"#
            let batch = #"{"device":"van-7","outbox":"0123abcd","batch_id":"b","locations":[\#(record)]}"#
            let taken = try await handler.handleRequest(request("/locations", method: .POST, [:], batch))
            #expect(taken.statusCode.code == 200)
            #expect(taken.headers[HTTPHeader("Waypost-Command")] == text)
            #expect(taken.headers[HTTPHeader("Waypost-Signature")] == (text == nil ? nil : "sha256=aa"))
        }
        let answer = #"{"id":"c-1","ok":true}"#
        #expect(try await ask("/reported/van-7", .POST, answer).statusCode.code == 204)
        let list = String(decoding: try await ask("/commands/van-7", .GET).bodyData, as: UTF8.self)
        #expect(list.contains(#""answers":[\#(answer)]"#))

        let page = String(decoding: await feed.reader(after: "a1-0")?.next() ?? [], as: UTF8.self)
        let shown = page.split(separator: "\n").filter { $0.contains(#""commands":["#) }
        #expect(shown.count == 3)
        #expect(shown.first?.contains(#""state":"waiting""#) == true)
        #expect(shown.last?.contains(#""state":"sent","done":true"#) == true)
    }

    @Test func eventsGoOnAfterTheLastOneWhicheverWayItIsSaid() async throws {
        let feed = LiveFeed(run: "a1", counters: "{}", now: { 0 })
        for number in 0..<3 { feed.received(LiveRequest(bodyBytes: number), counters: "{}") }
        let page = LivePage(feed: feed)
        let last: [HTTPHeader: String] = [HTTPHeader("Last-Event-ID"): "a1-2"]
        let rows: [(headers: [HTTPHeader: String], after: String?)] = [
            (last, nil), ([:], "a1-2"),
            // A browser that connects again by itself asks with the address of the first time.
            (last, "a1-0"),
        ]
        for (headers, after) in rows {
            let query = after.map { [HTTPRequest.QueryItem(name: "after", value: $0)] } ?? []
            let response = try #require(
                page.answer(
                    HTTPRequest(
                        method: .GET, version: .http11, path: "/events", query: query, headers: headers, body: Data())))
            #expect(response.headers[.contentType] == "text/event-stream")
            guard case .httpBody(let body) = response.payload else {
                Issue.record("no body that goes on")
                return
            }
            var iterator = body.makeAsyncIterator()
            let text = String(decoding: try await iterator.next() ?? Data(), as: UTF8.self)
            #expect(text.contains("event: request\nid: a1-3\n") && !text.contains("id: a1-2"), "\(text)")
        }
    }
}
