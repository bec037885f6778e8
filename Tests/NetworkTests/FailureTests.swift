import CLinux
import Foundation
import Glibc
import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import Network

@Suite struct FailureTests {
    private let secret = "s3cret"

    /// What becomes of a request to a server that takes it, says this, and hangs up.
    private func outcome(of text: String, bytes: Int = 1) throws -> (UplinkOutcome, ScriptedServer) {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send(text)
        }
        let request = UplinkRequest(url: server.url, body: [UInt8](repeating: 1, count: bytes))
        return (try PollLoop().outcome(request), server)
    }

    @Test func namesARefusedConnection() throws {
        let (listener, port) = try listenOnLoopback(backlog: 1)
        Glibc.close(listener)
        let failure = try PollLoop().failure(UplinkRequest(url: "http://127.0.0.1:\(port)/?key=\(secret)", body: [1]))
        #expect(failure == .connect("127.0.0.1:\(port): Connection refused"))
    }

    @Test func namesANameThatDoesNotResolve() throws {
        // RFC 6761: a name under .invalid never resolves. Off line the resolver may take long to say so.
        let loop = try PollLoop()
        var failure: TransportFailure?
        loop.uplink.send(UplinkRequest(url: "http://box.invalid/?key=\(secret)", body: [1])) { failure = $0.failure }
        loop.turn()
        loop.turn()
        loop.advance(by: .seconds(10))
        loop.run { failure != nil }
        #expect(failure?.word == "dns")
        let message = failure?.message ?? secret
        #expect(message.contains("box.invalid") && !message.contains(secret))
    }

    /// The handle of such a request may keep its buffer, of which libcurl allows no other size.
    @Test func requestsGoOutAfterANameDidNotResolve() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 204 Done\r\n\r\n")
        }
        let loop = try PollLoop()
        // A label that is too long is refused without a question to the network.
        let lost = UplinkRequest(url: "http://\(String(repeating: "x", count: 64)).invalid/", body: [1])
        for _ in 0..<3 { #expect(try loop.failure(lost).word == "dns") }
        let outcome = try loop.outcome(UplinkRequest(url: server.url, body: [1]))
        #expect(outcome.reply?.status == 204)
    }

    /// Half a status line is no status.
    @Test(arguments: ["", "H", "HTTP/1.1 200"])
    func tellsAServerThatClosesAfterTheWholeRequest(_ text: String) throws {
        let (outcome, server) = try outcome(of: text, bytes: 500)
        guard case .failed(.closedWithoutReply) = outcome.result else {
            Issue.record("\(outcome)")
            return
        }
        #expect(server.requests.count == 1 && outcome.newConnection && outcome.bytesSent > 500)
    }

    @Test func doesNotTakeAnAbortedUploadForAWholeRequest() throws {
        let server = try ScriptedServer { connection in
            connection.waitForBytes()
            connection.reset()
        }
        let body = [UInt8](repeating: 1, count: 32 << 20)
        let failure = try PollLoop().failure(UplinkRequest(url: server.url, body: body))
        #expect(failure.word == "reset")
        #expect(failure.message.contains("while the request was being sent"))
    }

    @Test func keepsTheStatusOfABrokenAnswer() throws {
        let rows: [(text: String, status: Int, body: String)] = [
            ("503 Busy\r\nContent-Length: 10\r\n\r\nhalf", 503, "half"), ("503 Busy\r\nRetry-Af", 503, ""),
            ("503 Busy\r\nContent-Length: 0, 5\r\n\r\nhello", 503, ""),
            ("503 Busy\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 503, ""),
            ("503 Busy\r\nContent-Length: -7\r\n\r\n", 503, ""),
            ("503 Busy\r\nContent-Length: 7\r\n\r\n", 503, ""),
            ("503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 503, "ab"),
        ]
        for (text, status, body) in rows {
            let reply = try outcome(of: "HTTP/1.1 " + text).0.reply
            #expect(reply?.status == status && reply?.bodyIncomplete == true, "\(text)")
            #expect(reply?.body == Array(body.utf8), "\(text)")
        }
    }

    /// A success that says how long it is and is shorter is none; without a length the end of the connection is its end.
    @Test func callsASuccessBrokenOfWhichSomethingIsMissing() throws {
        let rows: [(words: String, texts: [String])] = [
            (
                "before the end of its body (status 200)",
                [
                    "Content-Length: 10\r\n\r\nhalf", "Content-Length: 10\r\n\r\n",
                    "Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
                    "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                    "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
                ]
            ),
            (
                "two lengths",
                [
                    "Content-Length: 0, 5\r\n\r\nhello", "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
                    "Content-Length: 99999999999999999999999\r\n\r\n", "Content-Length: +0\r\n\r\n",
                ]
            ),
        ]
        for row in rows {
            for text in row.texts {
                let outcome = try outcome(of: "HTTP/1.1 200 OK\r\n" + text).0
                #expect(outcome.failure?.word == "reset", "\(text): \(outcome)")
                #expect(outcome.failure?.message.contains(row.words) == true, "\(text): \(outcome)")
            }
        }
        for text in [
            "\r\n", "\r\nOK", "Content-Length: 2, 2\r\n\r\nOK", "Content-Length: 2\r\nContent-Length: 02\r\n\r\nOK",
        ] {
            #expect(try outcome(of: "HTTP/1.1 200 OK\r\n" + text).0.reply?.bodyIncomplete == false, "\(text)")
        }
    }

    /// libcurl tells of the size of a chunk only, and takes any extension of it.
    @Test func stopsAtWhatComesBesideTheBody() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1")
            let pieces = String(repeating: ";a=b", count: 4096)
            while connection.send(pieces) {}
        }
        let loop = try PollLoop()
        var (outcome, held) = (UplinkOutcome?.none, Int32(0))
        loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { outcome = $0 }
        loop.run {
            for descriptor in loop.watched.keys {
                var (bytes, length) = (Int32(0), socklen_t(4))
                getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, &length)
                held = max(held, bytes)
            }
            return outcome != nil
        }
        let failure = try #require(outcome?.failure)
        #expect(failure.word == "reset" && failure.message.contains("far more bytes"), "\(failure)")
        #expect((1...131_072).contains(held), "the kernel may take megabytes before anybody looks")
    }

    /// A success without the end of its head is none, nor is an interim answer alone.
    @Test func callsWhatIsNoWholeAnswerBroken() throws {
        let rows: [(words: String, texts: [String])] = [
            (
                "",
                [
                    "garbage\r\n\r\n", "\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 099 Low\r\n\r\n", "SSH-2.0-x\r\n",
                    "HTTP/9.9 200 OK\r\n\r\n", String(repeating: "\u{0}", count: 8),
                ]
            ),
            (
                "within its head",
                ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 204 Done\r\nX: y\r\n"]
            ),
            (
                "interim status 10",
                ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early\r\nX: 1\r\n\r\nHTTP/1.1 102 Wait\r\n\r\n"]
            ),
        ]
        for row in rows {
            for text in row.texts {
                let (outcome, server) = try outcome(of: text)
                let isNamed = row.words.isEmpty || outcome.failure?.message.contains(row.words) == true
                #expect(outcome.failure?.word == "reset" && isNamed, "\(text): \(outcome)")
                #expect(server.requests.count == 1, "\(text)")
            }
        }
    }

    @Test(arguments: [100_000, 100_001])
    func readsAsMuchAsTheRequestAllows(_ length: Int) throws {
        let body = [UInt8](repeating: 120, count: length)
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            connection.send(body)
            connection.waitForEnd()
        }
        let reply = try PollLoop().reply(UplinkRequest(url: server.url, body: [1], replyLimit: 100_000))
        #expect(reply.body.count == 100_000)
        #expect(reply.bodyIncomplete == (length > 100_000))
    }

    @Test(arguments: [65_536, 65_537, 100 << 20])
    func readsAtMost64KiBOfAnAnswer(_ length: Int) throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n")
            var left = length
            while left > 0, connection.send([UInt8](repeating: 120, count: min(left, 32_768))) { left -= 32_768 }
            connection.waitForEnd()
        }
        let outcome = try PollLoop().outcome(UplinkRequest(url: server.url, body: [1]))
        let reply = try #require(outcome.reply)
        #expect(reply.status == 200 && reply.body.count == 65_536)
        #expect(reply.bodyIncomplete == (length > 65_536) && outcome.bytesReceived < 200_000)
    }

    enum LongHead: CaseIterable {
        case longLine, manyLines, manyBytes

        var text: String {
            switch self {
            case .longLine: "X: \(String(repeating: "y", count: 17_000))\r\n"
            case .manyLines: String(repeating: "X-A: y\r\n", count: 101)
            case .manyBytes: String(repeating: "X-A: \(String(repeating: "y", count: 1000))\r\n", count: 17)
            }
        }
    }

    @Test(arguments: LongHead.allCases)
    func stopsAtAHeadThatIsTooLong(_ head: LongHead) throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\n" + head.text + "\r\n")
            connection.waitForEnd()
        }
        let failure = try PollLoop().failure(UplinkRequest(url: server.url, body: [1]))
        #expect(failure.word == "reset" && failure.message.contains("head"), "\(failure)")
    }

    @Test func stopsAtAnEndlessLine() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 503 Busy\r\nX: ")
            while connection.send([UInt8](repeating: 120, count: 32_768)) {}
        }
        let outcome = try PollLoop().outcome(UplinkRequest(url: server.url, body: [1]))
        #expect(outcome.reply?.status == 503 && outcome.reply?.bodyIncomplete == true)
        #expect(outcome.bytesReceived < 200_000)
    }

    @Test func stopsAtEndlessInterimAnswers() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            while connection.send("HTTP/1.1 102 Processing\r\n\r\n") {}
        }
        let outcome = try PollLoop().outcome(UplinkRequest(url: server.url, body: [1]))
        #expect(outcome.failure?.word == "reset", "\(outcome)")
    }

    @Test func passesOverInterimAnswers() throws {
        let server = try ScriptedServer(
            answering: "HTTP/1.1 103 Early\r\nX: 1\r\n\r\nHTTP/1.1 201 Made\r\nY: 2\r\nContent-Length: 0\r\n\r\n")
        let reply = try PollLoop().reply(UplinkRequest(url: server.url, body: [1]))
        #expect(reply == UplinkReply(status: 201, headers: [.init("y", "2"), .init("content-length", "0")]))
    }

    @Test func takesAnAnswerThatComesBeforeTheUploadIsDone() throws {
        let server = try ScriptedServer { connection in
            connection.waitForBytes()
            connection.send("HTTP/1.1 413 Too large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.waitForEnd()
        }
        let reply = try PollLoop().reply(
            UplinkRequest(url: server.url, body: [UInt8](repeating: 1, count: 32 << 20)))
        #expect(reply.status == 413)
    }

    /// It cannot be about a request that the kernel does not have in full, whether or not the rest is read later.
    @Test(arguments: [true, false]) func aSuccessBeforeTheUploadIsDoneIsNone(_ readsTheRest: Bool) throws {
        let hasFailed = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            connection.waitForBytes()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            // A close with bytes unread resets the connection, and the reset may overtake the answer.
            if readsTheRest { connection.waitForEnd() } else { hasFailed.wait() }
        }
        defer { hasFailed.signal() }
        let failure = try PollLoop().failure(
            UplinkRequest(url: server.url, body: [UInt8](repeating: 1, count: 32 << 20)))
        #expect(failure == .broken("127.0.0.1:\(server.port) answered before it had the whole request (status 200)"))
    }

    @Test(arguments: ["http", "https"])
    func hidesSecretsInEveryFailure(_ scheme: String) throws {
        let server = try ScriptedServer { connection in
            connection.waitForBytes()
            connection.send("nonsense\r\n\r\n")
        }
        let request = UplinkRequest(
            url: "\(scheme)://127.0.0.1:\(server.port)/\(secret)?key=\(secret)",
            headers: [.init("Authorization", secret)], body: [1])
        let failure = try PollLoop().failure(request)
        #expect(failure.word == (scheme == "http" ? "reset" : "tls"))
        #expect(failure.message.hasPrefix("127.0.0.1:\(server.port)") && !failure.message.contains(secret))
    }
}

@Suite struct TimeLimitTests {
    /// The time to begin an answer, and that for the whole request.
    @Test(arguments: [nil, 5]) func endsARequestThatIsNeverAnswered(timeout: Int?) throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.waitForEnd()
        }
        let loop = try PollLoop()
        var failure: TransportFailure?
        var request = UplinkRequest(url: server.url, body: [1])
        if let timeout { request.timeout = .seconds(timeout) }
        loop.uplink.send(request) { failure = $0.failure }
        loop.run { server.requests.count == 1 }
        // Once libcurl's own timers for the connection have passed, nothing wakes it meanwhile.
        let rest = Double(timeout == nil ? 20 : 4)
        loop.run { loop.uplink.nextDeadline.map { $0.seconds(since: loop.now) > rest } == true }
        loop.advance(by: .seconds(timeout == nil ? 29 : 4))
        #expect(failure == nil)
        loop.advance(by: .seconds(2))
        let words = timeout == nil ? "30 s" : "5 s"
        #expect(failure == .timeout("127.0.0.1:\(server.port) did not begin to answer within \(words)"))
        #expect(loop.watched.isEmpty)
    }

    static let slowAnswers: [(String, Int?)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nxxxx", nil), ("HTTP/1.1 503 Busy\r\nX-Slow: yyyy", 503),
        ("HTTP/1.1 2", nil),
    ]

    @Test(arguments: slowAnswers) func endsAnAnswerThatTricklesIn(_ text: String, _ status: Int?) throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            connection.send(text)
            while connection.send("z") { usleep(1000) }
        }
        let loop = try PollLoop()
        var outcome: UplinkOutcome?
        let start = loop.now
        loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { outcome = $0 }
        loop.run { loop.uplink.bytesArrivedInFlight > 0 || (status == nil && server.requests.count == 1) }
        while outcome == nil, loop.now < start + .seconds(90) {
            loop.turn(atMost: .milliseconds(1))
            loop.advance(by: .milliseconds(500))
        }
        #expect(loop.now < start + .seconds(62))
        #expect(outcome?.reply?.status == status && outcome?.reply?.bodyIncomplete != false)
        #expect((outcome?.failure?.word == "timeout") == (status == nil))
    }

    @Test func givesUpAConnectionThatDoesNotComeAbout() throws {
        // A listener whose queue is full drops further connection requests without a word.
        let (listener, port) = try listenOnLoopback(backlog: 0)
        defer { Glibc.close(listener) }
        let fillers = try (0..<3).map { _ in try PollLoop() }
        for loop in fillers {
            loop.uplink.send(UplinkRequest(url: "http://127.0.0.1:\(port)", body: [1])) { _ in }
            loop.turn(atMost: .milliseconds(20))
            loop.turn(atMost: .milliseconds(20))
        }
        let loop = try PollLoop()
        var failure: TransportFailure?
        loop.uplink.send(UplinkRequest(url: "http://127.0.0.1:\(port)", body: [1])) { failure = $0.failure }
        loop.turn(atMost: .milliseconds(20))
        loop.advance(by: .seconds(9))
        #expect(failure == nil)
        loop.advance(by: .seconds(2))
        #expect(failure == .unreachable("127.0.0.1:\(port): no connection within 10 s"))
    }

    @Test func givesUpAHandshakeThatDoesNotEnd() throws {
        let server = try ScriptedServer { connection in connection.waitForEnd() }
        let loop = try PollLoop()
        var failure: TransportFailure?
        loop.uplink.send(UplinkRequest(url: "https://127.0.0.1:\(server.port)", body: [1])) { failure = $0.failure }
        loop.run { server.connections == 1 }
        for _ in 0..<3 { loop.turn(atMost: .milliseconds(20)) }
        loop.advance(by: .seconds(9))
        #expect(failure == nil)
        loop.advance(by: .seconds(3))
        #expect(failure == .tls("127.0.0.1:\(server.port): no TLS handshake within 10 s"))
    }
}
