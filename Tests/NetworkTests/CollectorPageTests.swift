import Foundation
import Glibc
import Protocols
import TestSupport
import Testing

@testable import Network

/// The page of the built collector, and the events that it is sent.
@Suite struct CollectorPageTests {
    @Test func servesThePageForThisMachineOnly() throws {
        let collector = try CollectorProcess()
        for path in ["/", "/common/map.js", "/live/main.js", "/live/live.css"] {
            let head = try EventConnection(collector.port, path).head()
            let parts = [
                "HTTP/1.1 200 ", "Content-Security-Policy: default-src 'none'; script-src 'self';",
                "Cache-Control: no-store",
            ]
            #expect(head.hasPrefix(parts[0]) && parts.allSatisfy { head.contains($0) }, "\(path): \(head)")
        }
        let hosts: [(status: Int, names: [String])] = [
            (200, ["127.0.0.1", "localhost:9", "LOCALHOST", "[::1]:8080"]),
            (
                421,
                [
                    "evil.example", "127.0.0.1.evil.example", "localhost:8080.evil.example", "localhost@evil.example",
                    "[::1].evil.example", "",
                ]
            ),
        ]
        for row in hosts {
            for host in row.names {
                for path in ["/", "/stats", "/events"] {
                    let head = try EventConnection(collector.port, path, host: host).head()
                    #expect(head.hasPrefix("HTTP/1.1 \(row.status) "), "\(host)\(path): \(head)")
                }
            }
        }
        // Nor may a page of another site upload.
        var request = collector.request(NativeBody(seqs: 1..<4))
        request.headers.append(.init("Origin", "https://evil.example"))
        #expect(try PollLoop().reply(request).status == 403)
        request.headers.removeLast()
        #expect(try PollLoop().reply(request).status == 200)
    }

    @Test func continuesAfterTheLastEvent() throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        _ = try loop.reply(collector.request(NativeBody(seqs: 1..<4)))
        let first = try EventConnection(collector.port, "/events")
        #expect(try first.event().name == "reset")
        func has(_ event: EventConnection.Event, _ name: String, _ parts: String...) -> Bool {
            event.name == name && parts.allSatisfy { event.data.contains($0) }
        }
        let rows = try first.event()
        let locations = #""device":"van-7","outbox":"7f3a91c2","locations":[[1,1700000000123,52.5200066,"#
        #expect(has(rows, "rows", locations), "\(rows)")
        let request = try first.event()
        let counts = #""rows":3,"new":3,"repeated":0,"oldest":1700000000123,"newest":1700000002123"#
        #expect(has(request, "request", counts, #""status":200,"counters":{"requests":1,"#), "\(request)")

        _ = try loop.reply(collector.request(NativeBody(seqs: 4..<6)))
        let next = try EventConnection(collector.port, "/events", last: request.id)
        let more = try next.event()
        #expect(more.name == "rows" && more.data.contains("[[4,") && more.id != rows.id)
        // The other one was open all the while.
        #expect(try first.event() == more)
    }

    @Test func beginsFromTheStartForAPositionOfAnotherLife() throws {
        let collector = try CollectorProcess()
        _ = try PollLoop().reply(collector.request(NativeBody(seqs: 1..<4)))
        for id in ["0-0", "x", "", "-1", "other-5"] {
            let connection = try EventConnection(collector.port, "/events", last: id)
            let reset = try connection.event()
            let devices = #""devices":[{"device":"van-7","outbox":"7f3a91c2","locations":3,"#
            #expect(reset.name == "reset" && reset.data.contains(devices), "\(id): \(reset)")
            #expect(try connection.event().name == "rows")
        }
    }

    @Test func namesFaultsRepeatsAndRefusals() throws {
        let collector = try CollectorProcess("--answer", "503", "--first", "1")
        let loop = try PollLoop()
        let request = collector.request(NativeBody(seqs: 1..<4))
        for _ in 0..<3 { _ = try loop.reply(request) }
        _ = try loop.reply(UplinkRequest(url: collector.url, body: Array("\u{1b}[31m".utf8)))
        let connection = try EventConnection(collector.port, "/events")
        let requests = try (0..<6).map { _ in try connection.event() }.filter { $0.name == "request" }.map(\.data)
        #expect(requests[0].contains(#""new":0,"repeated":0"#) && requests[0].contains(#""fault":"answer 503""#))
        #expect(requests[1].contains(#""new":3,"repeated":0"#))
        #expect(requests[2].contains(#""new":0,"repeated":3"#))
        #expect(requests[3].contains(#""status":400,"problem":"not JSON"#))
    }
}

/// One response, read as it comes.
final class EventConnection {
    struct Event: Equatable {
        var name = ""
        var id: String?
        var data = ""
    }

    private let descriptor: Int32
    private var unread: [UInt8] = []

    init(_ port: UInt16, _ path: String, host: String = "127.0.0.1", last: String? = nil) throws {
        descriptor = try #require(connectToLoopback(Int(port)))
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let position = last.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        let text = "GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(position)\r\n"
        try #require(send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
    }

    deinit { close(descriptor) }

    /// Status line and headers.
    func head() throws -> String {
        var lines: [String] = []
        while let line = try line(), line != "\r" { lines.append(line) }
        return lines.joined(separator: "\n")
    }

    /// The next one that is no sign of life. Sizes of chunks stand on lines of their own and are passed over.
    func event() throws -> Event {
        var event = Event()
        while let line = try line() {
            if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
            if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
            if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
            if line.isEmpty, !event.name.isEmpty {
                if event.name != "beat" { return event }
                event = Event()
            }
        }
        throw CocoaError(.fileReadUnknown)
    }

    private func line() throws -> String? {
        while true {
            if let end = unread.firstIndex(of: 0x0A) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            unread += buffer[..<count]
        }
    }
}
