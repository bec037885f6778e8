@testable import Protocols
@testable import WaypostCore

/// libFuzzer entry: whatever a server sends, in whatever pieces, and whatever the owner does, messages are whole and
/// bounded, what goes out are whole masked frames, the end comes once, and a deadline that was reached does not come
/// again.
///
/// The input is a script: a byte that chooses what is done next, and what it is done with.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWebSocket(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    var rig = rigs[Int(input.byte() & 7)]
    while !input.isOver, rig.actsAfterEnd < 8 {
        rig.act(input.byte(), &input)
        rig.check()
    }
    rig.end()
    return 0
}

private let messageBytesMax = 40
private let unsentBytesMax = 300

/// The beginnings that there are: making a handshake anew costs as much as all of a run.
private let rigs = (0..<8).map { Rig(choice: $0) }

private let opcodes: [UInt8] = [
    0x00, 0x80, 0x01, 0x81, 0x02, 0x82, 0x89, 0x8A, 0x88, 0x89, 0x01, 0x00, 0x80, 0x81, 0xC1, 0x83,
]

private struct Rig: Sendable {
    private var twins: Twins<WebSocketClient>
    private let skipsOversized: Bool
    private var isOpen = false
    private var isRequestTaken = false
    private var hasEnded = false
    /// What is done with what is over, which soon says nothing new.
    private(set) var actsAfterEnd = 0
    private var isCloseSaid = false

    init(choice: UInt8) {
        var settings = WebSocketClient.Settings(host: "h", target: "/")
        settings.subprotocols = ["mqtt"]
        settings.messageBytesMax = messageBytesMax
        settings.unsentBytesMax = unsentBytesMax
        skipsOversized = choice & 4 != 0
        settings.skipsOversizedMessages = skipsOversized
        if choice & 1 != 0 { settings.pingAfter = nil }
        guard let client = try? WebSocketClient(settings, nonce: InlineArray(repeating: 0), at: .zero) else {
            fatalError("settings that make no request")
        }
        twins = Twins(client)
        guard choice & 2 == 0 else { return }
        takeOutput()
        receive(
            Array(
                ("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n").utf8))
        demand(isOpen, "the handshake of the standard does not open")
    }

    mutating func act(_ choice: UInt8, _ input: inout Input) {
        switch choice & 7 {
        case 0: receive(input.bytes(Int(input.byte())))
        case 1, 2: receiveFrame(choice, &input)
        case 3: send(choice, input.bytes(Int(input.byte())))
        case 4:
            take(twins.passed(.seconds(Int64(input.byte()))))
        case 5: take(twins.reachedDeadline())
        case 6: takeOutput()
        default:
            if choice >> 3 == 0 { take(twins.same { $0.connectionLost(at: $1) }) }
            if choice >> 3 < 8 { take(twins.same { $0.close(.goingAway, reason: "bye", at: $1) }) }
        }
    }

    private mutating func receiveFrame(_ choice: UInt8, _ input: inout Input) {
        let payload = input.bytes(Int(input.byte()))
        let length: [UInt8] = payload.count < 126 ? [UInt8(payload.count)] : [126, 0, UInt8(payload.count)]
        receive([opcodes[Int(choice >> 4)]] + length + payload)
    }

    private mutating func send(_ choice: UInt8, _ payload: [UInt8]) {
        let before = twins.one.unsentBytes
        let text = String(decoding: payload, as: UTF8.self)
        let isTaken = twins.same { client, _ in
            choice & 8 == 0 ? client.send(binary: payload) : client.send(text: text)
        }
        demand(!isTaken || isOpen, "taken while it is not open")
        let count = choice & 8 == 0 ? payload.count : text.utf8.count
        demand(twins.one.unsentBytes == before + (isTaken ? count : 0), "what waits is counted wrong")
    }

    private mutating func receive(_ bytes: [UInt8]) { take(twins.received(bytes)) }

    /// What goes out is the request, then whole frames, masked, none after a close frame.
    private mutating func takeOutput() {
        let mask: UInt32 = 0x0102_0304
        while let piece = twins.same({ client, _ in client.nextOutput(mask: mask) }) {
            if !isRequestTaken, piece.first == UInt8(ascii: "G") {
                isRequestTaken = true
                continue
            }
            demand(piece.count >= 6 && [0x81, 0x82, 0x88, 0x89, 0x8A].contains(piece[0]), "no frame of a client")
            demand(!isCloseSaid, "a frame after the close frame")
            isCloseSaid = piece[0] == 0x88
            demand(piece[1] & 0x80 != 0, "a frame without a mask")
            let short = Int(piece[1] & 0x7F)
            let header = short < 126 ? 2 : 4
            let length = short < 126 ? short : Int(piece[2]) << 8 | Int(piece[3])
            demand(piece.count == header + 4 + length && length <= unsentBytesMax, "a frame of another length")
            demand(Array(piece[header..<(header + 4)]) == [1, 2, 3, 4], "another mask")
        }
        demand(twins.one.unsentBytes == 0, "bytes that wait for nothing")
    }

    private mutating func take(_ events: [WebSocketClient.Event]) {
        for event in events {
            demand(!hasEnded, "an event after the end")
            switch event {
            case .opened:
                demand(!isOpen, "opened twice")
                isOpen = true
            case .text(let text): demand(isOpen && text.utf8.count <= messageBytesMax, "a text that is too long")
            case .binary(let bytes): demand(isOpen && bytes.count <= messageBytesMax, "a message that is too long")
            case .oversized: demand(isOpen && skipsOversized, "a message that was skipped")
            case .ended: hasEnded = true
            }
        }
    }

    mutating func check() {
        twins.check()
        demand(twins.one.unsentBytes <= unsentBytesMax, "\(twins.one.unsentBytes) bytes wait")
        demand((twins.one.nextDeadline == nil) == hasEnded || isOpen, "a deadline is missing, or one after the end")
        guard hasEnded else { return }
        demand(twins.one.nextDeadline == nil && twins.one.unsentBytes == 0, "something is kept after the end")
        actsAfterEnd += 1
    }

    mutating func end() {
        take(twins.same { $0.connectionLost(at: $1) })
        takeOutput()
        demand(hasEnded, "it never ends")
    }
}
