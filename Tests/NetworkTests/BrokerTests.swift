import Foundation
import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import Network

/// MQTT over the real connection with a real broker. `scripts/live/broker` runs it.
@Suite("With mosquitto", .enabled(if: Broker.program != nil), .serialized) struct BrokerTests {
    private static let topic = "fleet/van/location"

    static let ways: [(MQTTVersion, Bool)] = [(.v5, false), (.v3, false), (.v5, true), (.v3, true)]

    @Test(arguments: ways) func everyMessageIsSettledAndArrives(version: MQTTVersion, overWebSocket: Bool) throws {
        let broker = try Broker()
        let client = try BrokerClient(broker, version, overWebSocket: overWebSocket)
        try client.connect()
        try client.subscribe(Self.topic)
        var sent: Set<UInt16> = []
        var number = 0
        client.run {
            while client.machine.room > 0, number < 500 {
                let message = MQTTMessage(topic: Self.topic, payload: Array("\(number)".utf8))
                guard let id = try? client.machine.publish(message, at: client.now) else { break }
                sent.insert(id)
                number += 1
            }
            return client.settled.count == 500 && client.messages.count == 500
        }
        #expect(client.settled.allSatisfy { $0.reason == .success })
        let texts: [String] = client.messages.map { String(decoding: $0.payload, as: UTF8.self) }
        let numbers: [String] = (0..<500).map { (number: Int) -> String in "\(number)" }
        #expect(texts == numbers)
        client.end()
        #expect(client.ending == .disconnected)
    }

    @Test func theServerSaysWhatItTakes() throws {
        let broker = try Broker()
        let client = try BrokerClient(broker, .v5)
        try client.connect()
        #expect(client.machine.room == 10, "max_inflight_messages of the broker")
        #expect(try client.answer(to: "nobody/here") == .noMatchingSubscribers)
        #expect(try client.answer(to: "secret/x") == .notAuthorised)
        try client.subscribe(Self.topic)
        #expect(try client.answer(to: Self.topic) == .success)
    }

    @Test func anotherClientTakesTheClientID() throws {
        let broker = try Broker()
        let first = try BrokerClient(broker, .v5)
        try first.connect()
        let second = try BrokerClient(broker, .v5)
        try second.connect()
        first.run { first.ending != nil }
        // The standard has 0x8E for it, but mosquitto 2.0.11 closes the connection of a clean session without a word.
        #expect(first.ending == .lost || first.ending?.meaning == .taken)
        second.passTime(.seconds(1))
        #expect(second.ending == nil)
    }

    @Test func aWillComesOnlyWithoutFarewell() throws {
        let broker = try Broker()
        let watcher = try BrokerClient(broker, .v5, id: "watcher")
        try watcher.connect()
        try watcher.subscribe("will/#")
        for (name, withFarewell) in [("polite", true), ("rude", false)] {
            let client = try BrokerClient(broker, .v5, id: name) {
                $0.will = MQTTMessage(topic: "will/\(name)", payload: [1])
            }
            try client.connect()
            if withFarewell { client.end() } else { client.cut() }
        }
        watcher.run { !watcher.messages.isEmpty }
        #expect(watcher.messages.map(\.topic) == ["will/rude"])
    }

    @Test func theKeepaliveIsThatOfTheServer() throws {
        let broker = try Broker()
        let client = try BrokerClient(broker, .v5)
        try client.connect()
        let due = try #require(client.machine.nextDeadline)
        #expect(due.seconds(since: client.now) <= 60, "max_keepalive of the broker")
        client.passTime(.seconds(60))
        // The answer has come when the next deadline is another keepalive away again.
        client.run { client.machine.nextDeadline.map { $0.seconds(since: client.now) > 55 } == true && client.hasHeard }
        #expect(client.ending == nil)
    }

    @Test func aBrokerThatDiesLeavesTheRestUnsettled() throws {
        let broker = try Broker()
        let client = try BrokerClient(broker, .v5)
        try client.connect()
        broker.freeze()
        var ids: [UInt16] = []
        for _ in 0..<5 {
            let message = MQTTMessage(topic: Self.topic, payload: [1])
            ids.append(try #require(try client.machine.publish(message, at: client.now)))
        }
        client.pump()
        broker.kill()
        client.run { client.ending != nil }
        #expect(client.ending == .lost && client.unsettled == ids)
    }
}

/// A mosquitto of its own, with a listener for MQTT and one for MQTT over WebSocket.
private final class Broker {
    static let program = ProcessInfo.processInfo.environment["WAYPOST_LIVE_BROKER"]

    let port: Int
    let webSocketPort: Int
    private let process = Process()
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        port = try LocalServer().port
        webSocketPort = try LocalServer().port
        let path = directory.path
        let settings = """
            user root
            persistence false
            max_inflight_messages 10
            max_keepalive 60
            allow_anonymous true
            acl_file \(path)/acl
            listener \(port) 127.0.0.1
            listener \(webSocketPort) 127.0.0.1
            protocol websockets
            """
        try Data(settings.utf8).write(to: URL(fileURLWithPath: "\(path)/mosquitto.conf"))
        let access = "topic readwrite fleet/#\ntopic readwrite nobody/#\ntopic readwrite will/#\n"
        try Data(access.utf8).write(to: URL(fileURLWithPath: "\(path)/acl"))
        process.executableURL = URL(fileURLWithPath: Self.program ?? "")
        process.arguments = ["-c", "\(path)/mosquitto.conf"]
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    func freeze() { Foundation.kill(process.processIdentifier, SIGSTOP) }

    func kill() {
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    deinit { kill() }
}

/// The machine on a connection, as a daemon would join them.
private final class BrokerClient {
    var machine: MQTTClient
    private var webSocket: WebSocketClient?
    private let loop: ConnectionLoop
    private(set) var settled: [(id: UInt16, reason: MQTTReason)] = []
    private(set) var messages: [MQTTMessage] = []
    private(set) var ending: MQTTClient.Ending?
    private(set) var unsettled: [UInt16] = []
    private(set) var hasHeard = false
    private var isConnected = false
    private var isSubscribed = false
    private var mask = SeededGenerator(seed: 1)

    var now: EventTime { loop.now }

    init(
        _ broker: Broker, _ version: MQTTVersion, id: String = "van", overWebSocket: Bool = false,
        _ change: (inout MQTTClient.Settings) -> Void = { _ in }
    ) throws {
        var settings = MQTTClient.Settings(clientID: id)
        settings.version = version
        change(&settings)
        let port = overWebSocket ? broker.webSocketPort : broker.port
        loop = try ConnectionLoop("http://127.0.0.1:\(port)")
        machine = try MQTTClient(settings, at: loop.now)
        if overWebSocket {
            var settings = WebSocketClient.Settings(host: "127.0.0.1:\(port)", target: "/mqtt")
            settings.subprotocols = ["mqtt"]
            webSocket = try WebSocketClient(settings, nonce: InlineArray(repeating: 7), at: loop.now)
        }
        loop.react = { [unowned self] in react($0) }
    }

    func connect() throws {
        // The broker may be about to listen.
        for _ in 0..<200 where !loop.connection.isOpen {
            loop.connection.open()
            loop.turn()
            if !loop.connection.isOpen { usleep(20_000) }
        }
        run { isConnected || ending != nil }
        try #require(isConnected, "\(String(describing: ending))")
    }

    func subscribe(_ filter: String) throws {
        isSubscribed = false
        _ = try machine.subscribe([MQTTSubscription(filter)], at: now)
        run { isSubscribed }
    }

    func answer(to topic: String) throws -> MQTTReason? {
        let id = try machine.publish(MQTTMessage(topic: topic, payload: [1]), at: now)
        run { settled.contains { $0.id == id } }
        return settled.first { $0.id == id }?.reason
    }

    func end() {
        take(machine.disconnect())
        pump()
        loop.connection.close()
    }

    func cut() { loop.connection.close() }

    func passTime(_ duration: Duration) {
        hasHeard = false
        loop.advance(by: duration)
        take(machine.deadlineReached(at: now))
        pump()
    }

    func run(until condition: () -> Bool) {
        loop.run {
            let isOver = condition()
            pump()
            return isOver
        }
    }

    func pump() {
        while loop.connection.isOpen, loop.connection.unsentBytes == 0, let piece = nextPiece() {
            loop.connection.send(piece)
        }
    }

    private func nextPiece() -> [UInt8]? {
        if webSocket == nil {
            let bytes = machine.takeOutput()
            return bytes.isEmpty ? nil : bytes
        }
        if let piece = webSocket?.nextOutput(mask: UInt32.random(in: 0...UInt32.max, using: &mask)) { return piece }
        guard isUpgraded else { return nil }
        let bytes = machine.takeOutput()
        guard !bytes.isEmpty, webSocket?.send(binary: bytes) == true else { return nil }
        return webSocket?.nextOutput(mask: UInt32.random(in: 0...UInt32.max, using: &mask))
    }

    private var isUpgraded = false

    private func react(_ event: LiveConnection.Event) {
        switch event {
        case .opened, .written: pump()
        case .received(let bytes):
            hasHeard = true
            guard webSocket != nil else { return take(machine.received(bytes[...], at: now)) }
            for event in webSocket?.received(bytes[...], at: now) ?? [] { react(event) }
        case .ended:
            // Before it has connected it is tried again.
            if isConnected { take(machine.connectionLost(at: now)) }
        }
    }

    private func react(_ event: WebSocketClient.Event) {
        switch event {
        case .opened(let subprotocol): isUpgraded = subprotocol == "mqtt"
        case .binary(let bytes): take(machine.received(bytes[...], at: now))
        case .text, .oversized, .ended: Issue.record("\(event)")
        }
    }

    private func take(_ events: [MQTTClient.Event]) {
        for event in events {
            switch event {
            case .connected: isConnected = true
            case .settled(let id, let reason, _): settled.append((id, reason))
            case .subscribed: isSubscribed = true
            case .unsubscribed: break
            case .message(let message): messages.append(message)
            case .ended(let ending, let unsettled):
                self.ending = ending
                self.unsettled = unsettled
            }
        }
    }
}
