import Foundation
import Protocols
import TestSupport
import Testing

@testable import Network

@Suite struct RequestTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test(arguments: [200, 204, 301, 400, 401, 404, 409, 413, 415, 429, 500, 503, 599, 999])
    func handsOverTheStatus(_ status: Int) throws {
        let body = status == 204 ? "" : "body"
        let head = "HTTP/1.1 \(status) Word\r\nRetry-After: 7\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        let server = try ScriptedServer(answering: head + body)
        let reply = try PollLoop().reply(UplinkRequest(url: server.url, body: [1]))
        #expect(reply.status == status && reply.header("retry-after") == "7")
        #expect(reply.body == Array(body.utf8) && !reply.bodyIncomplete)
    }

    @Test func keepsOneConnectionForManyRequests() throws {
        let server = try ScriptedServer(answering: ok)
        let loop = try PollLoop()
        for number in 0..<20 {
            let outcome = try loop.outcome(UplinkRequest(url: "\(server.url)/\(number)", body: [1]))
            #expect(outcome.reply?.status == 200 && outcome.newConnection == (number == 0))
        }
        let counters = loop.uplink.counters
        #expect(server.connections == 1 && counters.connections == 1)
        #expect(server.requests.count == 20 && counters.requests == 20)
        #expect(loop.watched.isEmpty)
    }

    @Test func sendsTheHeadersInTheirOrderAndNothingOfItsOwnBesides() throws {
        let server = try ScriptedServer(answering: ok)
        let headers: [UplinkRequest.Header] = [
            .init("Idempotency-Key", "\"7f3a91c2-main-1041-1041\""), .init("Content-Type", "application/json"),
            .init("X-Empty", ""), .init("Authorization", "Bearer t:o;k=e n"), .init("Content-Length", "5"),
            .init("User-Agent", "other"), .init("Host", "elsewhere"),
        ]
        _ = try PollLoop().reply(UplinkRequest(url: server.url + "/a/../b?c=%20d", headers: headers, body: [1, 2, 3]))
        let head = try #require(server.requests.first?.head)
        let given: [String] = head.filter { !$0.hasPrefix("Content-Length") }
        let expected = [
            "POST /a/../b?c=%20d HTTP/1.1", "Host: 127.0.0.1:\(server.port)", "User-Agent: waypost/1.2.3",
            "Idempotency-Key: \"7f3a91c2-main-1041-1041\"", "Content-Type: application/json", "X-Empty:",
            "Authorization: Bearer t:o;k=e n", "Accept-Encoding: identity",
        ]
        #expect(given == expected)
        #expect(server.requests.first?.header("Content-Length") == "3")
    }

    @Test(arguments: [0, 1, 100_000, 1_048_576])
    func sendsTheLengthAndNeverInChunks(_ count: Int) throws {
        let server = try ScriptedServer(answering: ok)
        let body = [UInt8](unsafeUninitializedCapacity: count) { bytes, initialized in
            for index in 0..<count { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
            initialized = count
        }
        let outcome = try PollLoop().outcome(UplinkRequest(url: server.url, body: body))
        let request = try #require(server.requests.first)
        let headers = ["Content-Length", "Transfer-Encoding", "Expect"].map(request.header)
        #expect(headers == ["\(count)", nil, nil])
        let isSame = request.body == body
        #expect(isSame)
        let head: Int = request.head.reduce(2) { $0 + $1.utf8.count + 2 }
        #expect(outcome.bytesSent == head + count && outcome.bytesReceived == ok.utf8.count)
    }

    @Test func usesTheMethod() throws {
        let server = try ScriptedServer(answering: ok)
        let loop = try PollLoop()
        for method in ["GET", "PUT", "PATCH", "DELETE"] {
            let reply = try loop.reply(UplinkRequest(method: method, url: server.url, body: []))
            #expect(reply.status == 200 && server.requests.last?.head.first == "\(method) / HTTP/1.1")
        }
    }

    @Test func compressesEqualBodiesToEqualBytes() throws {
        let server = try ScriptedServer(answering: ok)
        let loop = try PollLoop()
        let body = Array(String(repeating: "{\"lat\":52.5200066,\"lon\":13.404954}", count: 100).utf8)
        let request = UplinkRequest(url: server.url, body: body, gzip: true)
        let outcome = try loop.outcome(request)
        _ = try loop.reply(request)
        let first = try #require(server.requests.first)
        let headers = [first.header("Content-Encoding"), first.header("Content-Length")]
        #expect(headers == ["gzip", "\(first.body.count)"])
        #expect(first.body == server.requests.last?.body)
        // RFC 1952: magic, deflate, no flags (so no name), time 0.
        let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0]
        #expect(Array(first.body.prefix(8)) == head)
        #expect(try gunzip(first.body) == body)
        #expect(first.body.count < 660 && outcome.bytesSent < 960, "a fifth, and the head")
    }

    @Test func compressesOnlyAboveOneKibibyte() throws {
        let server = try ScriptedServer(answering: ok)
        let loop = try PollLoop()
        for count in [1024, 1025] {
            let body = [UInt8](repeating: 65, count: count)
            _ = try loop.reply(UplinkRequest(url: server.url, body: body, gzip: true))
        }
        #expect(server.requests.map { $0.header("Content-Encoding") } == [nil, "gzip"])
        #expect(server.requests.map { $0.body.count < 1024 } == [false, true])
    }

    @Test func followsNoRedirect() throws {
        let elsewhere = try ScriptedServer(answering: ok)
        let server = try ScriptedServer(
            answering: "HTTP/1.1 307 Go\r\nLocation: \(elsewhere.url)/\r\nContent-Length: 0\r\n\r\n")
        let reply = try PollLoop().reply(UplinkRequest(url: server.url, body: [1]))
        #expect(reply.status == 307 && reply.header("location") == elsewhere.url + "/")
        #expect(elsewhere.connections == 0)
    }

    @Test func keepsNoCookies() throws {
        let server = try ScriptedServer(
            answering: "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
        let loop = try PollLoop()
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        _ = try loop.reply(UplinkRequest(url: server.url, body: [1]))
        #expect(server.requests.map { $0.header("Cookie") } == [nil, nil])
    }

    @Test func servesSeveralEndpointsAtOnce() throws {
        let servers = try (0..<6).map { _ in try ScriptedServer(answering: ok) }
        let loop = try PollLoop()
        var statuses: [Int] = []
        for server in servers {
            loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { statuses.append($0.reply?.status ?? 0) }
        }
        loop.run { statuses.count == servers.count }
        #expect(statuses == [Int](repeating: 200, count: servers.count))
    }

    @Test func refusesAnAddressItCannotUse() throws {
        let loop = try PollLoop()
        for url in [
            "", "nonsense", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://127.0.0.1:99999/?key=s3cret",
        ] {
            let failure = try loop.failure(UplinkRequest(url: url, body: [1]))
            #expect(failure.word == "reset" && !failure.message.contains("s3cret"), "\(url)")
        }
    }

    @Test func refusesAHeaderThatWouldBreakTheHead() throws {
        let server = try ScriptedServer(answering: ok)
        let loop = try PollLoop()
        let headers: [UplinkRequest.Header] = [
            .init("X-A", "b\r\nX-C: d"), .init("X-A: b\r\nX", "d"), .init("", "d"), .init("X A", "d"),
            .init("X-A", "b\u{0}"),
        ]
        for header in headers {
            let failure = try loop.failure(UplinkRequest(url: server.url, headers: [header], body: [1]))
            #expect(failure.word == "reset" && server.connections == 0, "\(header)")
        }
    }

    @Test func callsBackNeverFromInsideSend() throws {
        let loop = try PollLoop()
        var ended = false
        loop.uplink.send(UplinkRequest(url: "nonsense", body: [])) { _ in ended = true }
        #expect(!ended)
        #expect(loop.uplink.nextDeadline == .zero)
        loop.uplink.deadlineReached(at: loop.now)
        #expect(ended)
    }

    @Test func mayBeSentToFromItsCompletion() throws {
        let server = try ScriptedServer(answering: ok)
        let loop = try PollLoop()
        var statuses: [Int] = []
        func sendNext() {
            loop.uplink.send(UplinkRequest(url: server.url, body: [1])) {
                statuses.append($0.reply?.status ?? 0)
                if statuses.count < 5 { sendNext() }
            }
        }
        sendNext()
        loop.run { statuses.count == 5 }
        #expect(server.connections == 1)
    }
}
