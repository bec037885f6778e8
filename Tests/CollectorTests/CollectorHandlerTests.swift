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
        let intake = Intake(faults: nil, store: LocationStore(output: nil), feed: feed)
        return try await CollectorHandler(intake: intake, page: LivePage(feed: feed)).handleRequest(
            HTTPRequest(
                method: method, version: .http11, path: path, query: [], headers: headers, body: Data()))
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
    }

    @Test func eventsGoOnAfterTheLastOneWhicheverWayItIsSaid() async throws {
        let feed = LiveFeed(run: "a1", counters: "{}", now: { 0 })
        for number in 0..<3 { feed.received(LiveRequest(bodyBytes: number), counters: "{}") }
        let page = LivePage(feed: feed)
        for (headers, query) in [
            ([HTTPHeader("Last-Event-ID"): "a1-2"], []), ([:], [HTTPRequest.QueryItem(name: "after", value: "a1-2")]),
            // A browser that connects again by itself asks with the address of the first time.
            ([HTTPHeader("Last-Event-ID"): "a1-2"], [HTTPRequest.QueryItem(name: "after", value: "a1-0")]),
        ] as [([HTTPHeader: String], [HTTPRequest.QueryItem])] {
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
