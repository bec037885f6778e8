@testable import Protocols
@testable import WaypostCore

/// libFuzzer entry: whatever a server sends, in whatever pieces, and whatever the owner does, each publish is settled
/// once or named as unsettled at the end, the window holds, what goes out are whole packets, and a deadline that was
/// reached does not come again.
///
/// The input is a script: a byte that chooses what is done next, and what it is done with.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMQTT(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    var rig = rigs[Int(input.byte() & 15)]
    while !input.isOver, rig.actsAfterEnd < 8 {
        rig.act(input.byte(), &input)
        rig.check()
    }
    rig.end()
    return 0
}

/// The beginnings that there are.
private let rigs = (0..<16).map { Rig(choice: $0) }

private struct Rig: Sendable {
    private var twins: Twins<MQTTClient>
    private let version: MQTTVersion
    private var window = 0
    private var waiting: Set<UInt16> = []
    private var hasEnded = false
    /// What is done with what is over, which soon says nothing new.
    private(set) var actsAfterEnd = 0

    init(choice: UInt8) {
        var settings = MQTTClient.Settings(clientID: "van")
        version = choice & 1 == 0 ? .v5 : .v3
        settings.version = version
        settings.packetBytesMax = choice & 2 == 0 ? 100 : 65_536
        settings.keepAlive = choice & 4 == 0 ? 300 : 0
        guard let client = try? MQTTClient(settings, at: .zero) else { fatalError("settings that make no CONNECT") }
        twins = Twins(client)
        if choice & 8 == 0 { receive(version == .v5 ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]) }
    }

    mutating func act(_ choice: UInt8, _ input: inout Input) {
        switch choice & 15 {
        case 0: receive(input.bytes(Int(input.byte())))
        case 1, 2:
            let body = input.bytes(Int(choice >> 4))
            receive([input.byte(), UInt8(body.count)] + body)
        // PUBACK of something that may be in flight, and a message.
        case 3: receive([0x40, 2, 0, choice >> 4])
        case 4: receive([0x40, 3, 0, choice >> 4, input.byte()])
        case 5: receive([0x32, 7 + (version == .v5 ? 1 : 0), 0, 1, 0x61, 0, 9] + (version == .v5 ? [0] : []) + [1, 2])
        case 6, 7: publish(&input)
        case 8:
            let filters = (0...(choice >> 6)).map { _ in MQTTSubscription(input.byte() & 1 == 0 ? "a/#" : "b") }
            twins.same { (try? $0.subscribe(filters, at: $1)).map { [$0] } ?? [] }
        case 9: twins.same { (try? $0.unsubscribe(["a"], at: $1)).map { [$0] } ?? [] }
        case 10: receive([0x90, version == .v5 ? 4 : 3, 0, choice >> 4] + (version == .v5 ? [0] : []) + [input.byte()])
        case 11: receive([0xD0, 0])
        case 12: take(twins.passed(.seconds(Int64(input.byte()))))
        case 13: take(twins.reachedDeadline())
        case 14: takeOutput()
        default: stop(choice >> 4)
        }
    }

    private mutating func stop(_ choice: UInt8) {
        if choice == 0 { take(twins.same { $0.connectionLost(at: $1) }) }
        if choice == 1 { take(twins.same { client, _ in client.disconnect(withWill: false) }) }
        if choice == 2 { take(twins.same { client, _ in client.disconnect(withWill: true) }) }
    }

    private mutating func publish(_ input: inout Input) {
        let choice = input.byte()
        var message = MQTTMessage(
            topic: choice & 1 == 0 ? "a" : String(decoding: input.bytes(3), as: UTF8.self),
            payload: input.bytes(Int(choice >> 4)), qos: choice & 2 == 0 ? .atLeastOnce : .atMostOnce,
            isRetained: choice & 4 != 0)
        if choice & 8 != 0 { message.contentType = "x" }
        let room = twins.one.room
        let id = twins.same { try? $0.publish(message, at: $1) }
        guard let id = id ?? nil else { return }
        demand(room > 0 && id != 0 && message.qos == .atLeastOnce, "a publish without room")
        demand(waiting.insert(id).inserted, "the packet id \(id) twice")
    }

    private mutating func receive(_ bytes: [UInt8]) { take(twins.received(bytes)) }

    /// What goes out are whole packets.
    private mutating func takeOutput() {
        var rest = twins.same { client, _ in client.takeOutput() }[...]
        while let first = rest.popFirst() {
            demand([0x10, 0x30, 0x40, 0x80, 0xA0, 0xC0, 0xE0].contains(first & 0xF0), "a packet that no client sends")
            var length = 0
            var shift = 0
            while let byte = rest.popFirst() {
                length |= Int(byte & 0x7F) << shift
                shift += 7
                if byte & 0x80 == 0 { break }
            }
            demand(length <= rest.count, "half a packet")
            rest = rest.dropFirst(length)
        }
    }

    private mutating func take(_ events: [MQTTClient.Event]) {
        for event in events {
            demand(!hasEnded, "an event after the end")
            switch event {
            case .connected(let welcome):
                window = welcome.window
                demand(window <= 20, "a window of \(window)")
            case .settled(let id, _, _): demand(waiting.remove(id) != nil, "\(id) settled, but not in flight")
            case .ended(_, let unsettled):
                hasEnded = true
                demand(unsettled.count == waiting.count && Set(unsettled) == waiting, "unsettled are others")
                waiting = []
            case .message(let message):
                demand(MQTTTopic.problem(of: message.topic) == nil, "a message of an impossible topic")
            case .subscribed, .unsubscribed: break
            }
        }
    }

    mutating func check() {
        twins.check()
        let room = twins.same { client, _ in client.room }
        demand(waiting.count <= window && room == (hasEnded ? 0 : window - waiting.count), "the window")
        guard hasEnded else { return }
        demand(twins.one.nextDeadline == nil, "a deadline after the end")
        actsAfterEnd += 1
    }

    mutating func end() {
        take(twins.same { $0.connectionLost(at: $1) })
        takeOutput()
        demand(hasEnded && waiting.isEmpty, "it never ends")
    }
}
