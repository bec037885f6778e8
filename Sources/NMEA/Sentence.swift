import WaypostCore

/// The sentences that are read.
enum SentenceType: Sendable {
    case rmc, gga, gns, gll, gst, gbs, zda, vtg, gsa, pgrme, pubx00, gsv, txt, unknown

    /// What a sentence means for the epochs of its stream.
    enum Role {
        /// It has a position. Its time, or a second one of its kind without a time, begins another epoch, which is emitted.
        case position
        /// It belongs to the receiver's cycle and adds to a fix. With a time it begins an epoch like a position, without one
        /// it joins the open epoch or, after a pause, the next. It may be learnt as the last sentence of the cycle, and one
        /// that comes after the learnt last is late and makes `CycleEnd` forget it: epochs then wait for silence until the
        /// cycle is learnt again. Therefore only for sentences that the receiver itself sends in a fixed place of its cycle.
        case accessory
        /// It is not in the receiver's cycle, like GSV, which comes now and then, and sentences of other devices on the line
        /// such as a compass. It is counted, but neither begins nor ends an epoch.
        case outside
    }

    var role: Role {
        switch self {
        case .rmc, .gga, .gns, .gll: .position
        case .gst, .gbs, .zda, .vtg, .gsa, .pgrme, .pubx00: .accessory
        case .gsv, .txt, .unknown: .outside
        }
    }

    /// Whether it adds to an epoch. What does not needs no checksum, and is then skipped.
    var isRead: Bool { role != .outside }
}

/// Address of a sentence: two letters of talker and three of type, or a vendor's own.
struct SentenceAddress: Sendable {
    var type: SentenceType
    /// The first two letters, little-endian.
    var talker: UInt16
    /// The bytes of the address as one number, unique for addresses of up to seven letters.
    var packed: UInt64
    /// Index of the first byte of the first field.
    var fields: Int

    private static let unknown = SentenceAddress(type: .unknown, talker: 0, packed: 0, fields: 0)

    /// - Parameter sentence: from `$` to the byte before `*`.
    @inline(__always)
    init(_ sentence: Span<UInt8>) {
        guard sentence.count >= 9, sentence[0] == UInt8(ascii: "$") else {
            self = Self.unknown
            return
        }
        let word = UInt64(littleEndian: sentence.bytes.unsafeLoadUnaligned(fromByteOffset: 1, as: UInt64.self))
        self.init(word: word)
    }

    private init(type: SentenceType, talker: UInt16, packed: UInt64, fields: Int) {
        self.type = type
        self.talker = talker
        self.packed = packed
        self.fields = fields
    }

    /// - Parameter word: the eight bytes after `$`.
    @inline(__always)
    private init(word: UInt64) {
        let first = UInt8(truncatingIfNeeded: word)
        if first == UInt8(ascii: "P") {
            // Vendor addresses are matched whole: Garmin's PGRMC is no RMC.
            if word & 0xFFFF_FFFF_FFFF == letters("PGRME,") {
                self.init(type: .pgrme, talker: 0, packed: word & 0xFF_FFFF_FFFF, fields: 7)
            } else if word == letters("PUBX,00,") {
                self.init(type: .pubx00, talker: 0, packed: word, fields: 9)
            } else {
                self = Self.unknown
            }
            return
        }
        let second = UInt8(truncatingIfNeeded: word >> 8)
        guard (word >> 40) & 0xFF == UInt64(UInt8(ascii: ",")), first &- UInt8(ascii: "A") < 26,
            second &- UInt8(ascii: "A") < 26
        else {
            self = Self.unknown
            return
        }
        let type: SentenceType
        switch (word >> 16) & 0xFF_FFFF {
        case letters("GSV"): type = .gsv
        case letters("RMC"): type = .rmc
        case letters("GGA"): type = .gga
        case letters("GSA"): type = .gsa
        case letters("VTG"): type = .vtg
        case letters("GLL"): type = .gll
        case letters("GNS"): type = .gns
        case letters("GST"): type = .gst
        case letters("ZDA"): type = .zda
        case letters("GBS"): type = .gbs
        case letters("TXT"): type = .txt
        default: type = .unknown
        }
        self.init(
            type: type, talker: UInt16(truncatingIfNeeded: word), packed: word & 0xFF_FFFF_FFFF, fields: 7)
    }
}

/// The bytes of a short ASCII text as one number, little-endian as in memory.
@inline(__always)
private func letters(_ text: StaticString) -> UInt64 {
    var word: UInt64 = 0
    for i in (0..<text.utf8CodeUnitCount).reversed() { word = word << 8 | UInt64(text.utf8Start[i]) }
    return word
}

/// The mode letter of RMC, GNS and GLL (NMEA 2.3 and later).
enum ModeLetter {
    static let notValid = UInt8(ascii: "N")

    /// nil for N and for letters that the standard does not know.
    @inline(__always)
    static func quality(_ letter: UInt8) -> FixQuality? {
        switch letter {
        case UInt8(ascii: "A"): .gps
        case UInt8(ascii: "D"): .dgps
        case UInt8(ascii: "P"): .pps
        case UInt8(ascii: "R"): .rtk
        case UInt8(ascii: "F"): .rtkFloat
        case UInt8(ascii: "E"): .deadReckoning
        case UInt8(ascii: "M"): .manual
        case UInt8(ascii: "S"): .simulated
        default: nil
        }
    }
}
