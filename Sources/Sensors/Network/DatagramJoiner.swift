import WaypostCore
import WaypostNMEA

/// Joins sentences that a bridge from a serial line cut where its packets ended.
///
/// Of each datagram the whole lines are passed on at once. A rest that is no whole sentence waits for the next datagram of its
/// sender.
struct DatagramJoiner {
    static let sendersMax = 8
    /// Of a rest.
    static let bytesMax = 4096
    static let patience = Duration.seconds(1)

    private struct Rest {
        var sender: SocketAddress
        var bytes: [UInt8]
        var until: EventTime
    }

    /// The oldest first.
    private var rests: [Rest] = []

    /// When a rest has waited long enough; nil while none waits.
    var nextDeadline: EventTime? { rests.first?.until }

    /// - Parameters:
    ///   - sender: address and port.
    ///   - take: gets bytes that nothing continues, in order.
    mutating func received(
        _ datagram: Span<UInt8>, from sender: SocketAddress, at now: EventTime, _ take: (Span<UInt8>) -> Void
    ) {
        deadlineReached(at: now, take)
        guard !datagram.isEmpty else { return }
        guard let index = rests.firstIndex(where: { $0.sender == sender }) else {
            return split(datagram, from: sender, at: now, take)
        }
        var joined = rests[index].bytes
        rests.remove(at: index)
        if Self.isStart(datagram[0]) {
            take(joined.span)
            return split(datagram, from: sender, at: now, take)
        }
        for index in datagram.indices { joined.append(datagram[index]) }
        split(joined.span, from: sender, at: now, take)
    }

    mutating func deadlineReached(at now: EventTime, _ take: (Span<UInt8>) -> Void) {
        while let rest = rests.first, now >= rest.until {
            rests.removeFirst()
            take(rest.bytes.span)
        }
    }

    /// Nothing will come any more.
    mutating func end(_ take: (Span<UInt8>) -> Void) {
        for rest in rests { take(rest.bytes.span) }
        rests.removeAll()
    }

    private mutating func split(
        _ bytes: Span<UInt8>, from sender: SocketAddress, at now: EventTime, _ take: (Span<UInt8>) -> Void
    ) {
        let start = Self.startOfRest(bytes)
        if start > 0 { take(bytes.extracting(0..<start)) }
        guard start < bytes.count else { return }
        let rest = bytes.extracting(start..<bytes.count)
        guard rest.count <= Self.bytesMax else { return take(rest) }
        if rests.count == Self.sendersMax {
            let oldest = rests.removeFirst().bytes
            take(oldest.span)
        }
        var kept: [UInt8] = []
        kept.reserveCapacity(rest.count)
        for index in rest.indices { kept.append(rest[index]) }
        rests.append(Rest(sender: sender, bytes: kept, until: now + Self.patience))
    }

    /// Where the sentence begins that the bytes end within; their count where they end with a line end or a whole sentence.
    private static func startOfRest(_ bytes: Span<UInt8>) -> Int {
        // Programs that send a C string with its end.
        var end = bytes.count
        while end > 0, bytes[end - 1] == 0 || bytes[end - 1] == 0x20 { end -= 1 }
        var index = end
        while index > 0 {
            let byte = bytes[index - 1]
            if byte == 0x0A || byte == 0x0D { return index == end ? bytes.count : index }
            index -= 1
            guard isStart(byte) else { continue }
            let isWhole = NMEADecoder.endsWithSentence(bytes.extracting(0..<end), from: index)
            return isWhole ? bytes.count : index
        }
        return end == 0 ? bytes.count : 0
    }

    private static func isStart(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "$") || byte == UInt8(ascii: "!") || byte == UInt8(ascii: "{")
    }
}
