import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import Network

@Suite struct CancelTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test func whatHasNotBegunIsNotSent() throws {
        let server = try ScriptedServer(answering: Self.ok)
        let loop = try PollLoop()
        let transfer = loop.uplink.send(UplinkRequest(url: server.url + "/first", body: [1])) { _ in
            Issue.record("called back")
        }
        loop.uplink.cancel(transfer)
        #expect(loop.uplink.requestsInFlight == 0 && loop.uplink.nextDeadline == nil)
        #expect(try loop.reply(UplinkRequest(url: server.url + "/second", body: [1])).status == 200)
        #expect(server.requests.map { $0.head[0] } == ["POST /second HTTP/1.1"])
    }

    @Test func whatIsOnItsWayCallsBackNoMoreAndLosesItsConnection() throws {
        let server = try ScriptedServer { connection in
            _ = connection.request()
            if connection.number == 1 { connection.waitForEnd() }
            connection.send(Self.ok)
        }
        let loop = try PollLoop()
        let transfer = loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { _ in Issue.record("called back") }
        loop.run { server.requests.count == 1 }
        loop.uplink.cancel(transfer)
        #expect(loop.uplink.requestsInFlight == 0 && loop.watched.isEmpty)
        #expect(loop.uplink.counters.requests == 1)
        // Nor does its time limit come round.
        loop.advance(by: .seconds(120))
        #expect(try loop.reply(UplinkRequest(url: server.url, body: [1])).status == 200)
        #expect(server.connections == 2)
        // To give up what has ended is nothing.
        loop.uplink.cancel(transfer)
    }

    @Test func anAnswerMayGiveUpAnotherRequest() throws {
        let server = try ScriptedServer(answering: Self.ok)
        let loop = try PollLoop()
        var transfers: [UplinkTransfer] = []
        var ended = 0
        for _ in 0..<2 {
            transfers.append(
                loop.uplink.send(UplinkRequest(url: server.url, body: [1])) { _ in
                    ended += 1
                    for transfer in transfers { loop.uplink.cancel(transfer) }
                })
        }
        loop.run { ended > 0 }
        for _ in 0..<5 { loop.turn(atMost: .milliseconds(10)) }
        #expect(ended == 1 && loop.uplink.requestsInFlight == 0)
    }
}
