import WaypostCore

/// Which commands a receiver understands.
package enum ReceiverProfile: Hashable, Sendable {
    /// Nothing is written to it.
    case none
    /// gpsd is asked to set the cycle, and knows the commands of the receiver.
    case gpsdCycle
    /// Of u-blox: the message of the generations up to 8, then the one from 9 on; each refuses the other's.
    case ublox
    /// MediaTek and what speaks its PMTK commands.
    case mtk
    /// Zhongke Micro (AT6558 and such).
    case casic
    /// The LC76G class of Quectel.
    case quectel
    case custom(CustomReceiverCommands)

    /// Intervals between fixes that it can be set to, in milliseconds; nil = the rate cannot be set.
    package var intervals: ClosedRange<Int64>? {
        switch self {
        case .none: nil
        case .gpsdCycle, .ublox: 50...65_535
        case .mtk: 100...10_000
        // Never slower than once a second.
        case .casic, .quectel: 100...1000
        case .custom(let commands): commands.rate.isEmpty ? nil : 50...86_400_000
        }
    }

    /// Whether commands go to the line of the receiver itself.
    package var writesToLine: Bool { self != .none && self != .gpsdCycle }

    /// Commands for a fix every `interval` milliseconds; in this order, with a pause between them.
    func rateCommands(_ interval: Int64) -> [[UInt8]] {
        let interval = intervals.map { min($0.upperBound, max($0.lowerBound, interval)) } ?? interval
        switch self {
        case .none, .gpsdCycle: return []
        case .ublox:
            return [
                // CFG-RATE: time between measurements, one measurement a fix, aligned to UTC.
                UBX.frame(0x06, 0x08, UBX.u16(interval) + [1, 0, 0, 0]),
                // CFG-VALSET: version 0, to the RAM, the key CFG-RATE-MEAS.
                UBX.frame(0x06, 0x8A, [0, 1, 0, 0] + UBX.u32(0x3021_0001) + UBX.u16(interval)),
            ]
        case .mtk: return [NMEASentence.bytes("PMTK220,\(interval)")]
        case .casic: return [NMEASentence.bytes("PCAS02,\(interval)")]
        case .quectel: return [NMEASentence.bytes("PAIR050,\(interval)")]
        case .custom(let commands): return commands.rate.map { $0.bytes(milliseconds: interval) }
        }
    }

    /// What puts the receiver to sleep; empty = it cannot sleep.
    ///
    /// - Parameter milliseconds: how long, for those that wake by themselves; nil = until they are woken.
    func standbyCommands(_ milliseconds: Int64?) -> [[UInt8]] {
        switch self {
        case .none, .gpsdCycle, .casic, .quectel: []
        // RXM-PMREQ: 0 ms is for ever; the flag says backup.
        case .ublox: [UBX.frame(0x02, 0x41, UBX.u32(max(0, milliseconds ?? 0)) + UBX.u32(2))]
        case .mtk: [NMEASentence.bytes("PMTK161,0")]
        case .custom(let commands): commands.standby.map { $0.bytes(milliseconds: milliseconds ?? 0) }
        }
    }

    /// What wakes it; empty for those that do not sleep. A receiver that is awake ignores it.
    var wakeCommands: [[UInt8]] {
        switch self {
        case .none, .gpsdCycle, .casic, .quectel: []
        // Any byte; these are no beginning of a command.
        case .ublox: [[0xFF, 0xFF]]
        case .mtk: [[0x0D, 0x0A]]
        case .custom(let commands): commands.wake.map { $0.bytes(milliseconds: 0) }
        }
    }
}

/// The frames of u-blox.
enum UBX {
    /// With the two sync characters, and the 8-bit Fletcher checksum over class, id, length and payload.
    static func frame(_ type: UInt8, _ id: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let body = [type, id] + u16(Int64(payload.count)) + payload
        var a: UInt8 = 0
        var b: UInt8 = 0
        for byte in body {
            a &+= byte
            b &+= a
        }
        return [0xB5, 0x62] + body + [a, b]
    }

    /// Little endian; what does not fit is the largest that does.
    static func u16(_ value: Int64) -> [UInt8] {
        let value = UInt16(clamping: value)
        return [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
    }

    static func u32(_ value: Int64) -> [UInt8] {
        let value = UInt32(clamping: value)
        return [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}

/// Sentences that are written rather than read.
enum NMEASentence {
    /// - Parameter body: what is between `$` and `*`.
    static func bytes(_ body: String) -> [UInt8] {
        let checksum = body.utf8.reduce(0, ^)
        let digits = Array("0123456789ABCDEF".utf8)
        return Array("$\(body)*".utf8) + [digits[Int(checksum >> 4)], digits[Int(checksum & 15)], 0x0D, 0x0A]
    }
}
