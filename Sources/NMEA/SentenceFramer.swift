import WaypostCore

/// Finds sentences in a stream of bytes, however it is cut into chunks and whatever is between them.
///
/// A sentence within one chunk is handed out in place; only one that is cut by the end of a chunk is copied.
/// Memory is bounded by one sentence.
struct SentenceFramer: Sendable {
    /// The longest sentence that any setting allows, from `$` to the last hex digit.
    static let capacity = 256

    /// A sentence found by `next`. Its bytes, from `$` to the one before `*`, are in `carried` or in the chunk.
    struct Frame {
        enum Holding {
            case chunk
            /// In `carried`; it began before the chunk.
            case carried
            /// In `carried`, in upper case; it began in the chunk.
            case raised
        }

        var holding: Holding
        /// Index of `$` or `!`.
        var start: Int
        /// Index of `*`, or of the line end of a sentence without checksum.
        var contentEnd: Int
        /// Index after the last byte of the sentence, relative to the chunk in both cases.
        var chunkEnd: Int
        /// false: the line ended without a checksum.
        var hasChecksum: Bool
    }

    struct Defects: Sendable {
        var checksum = 0
        var tooLong = 0
        var badBytes = 0
        /// Bytes of broken sentences and between sentences, line ends apart.
        var strayBytes = 0
    }

    private let maximumLength: Int
    private(set) var carried = InlineArray<256, UInt8>(repeating: 0)
    /// Bytes of the unfinished sentence at the end of the last chunk; 0 outside a sentence.
    private(set) var carriedCount = 0
    /// Set while the carried sentence is handed out: its bytes are given up at the next call.
    private var carriedIsSpent = false
    private(set) var defects = Defects()

    init(maximumLength: Int) {
        self.maximumLength = max(16, min(Self.capacity, maximumLength))
    }

    /// Nothing will continue an unfinished sentence.
    mutating func abandon() {
        if carriedCount > 0, !carriedIsSpent {
            defects.badBytes += 1
            defects.strayBytes += carriedCount
        }
        forgetCarried()
    }

    private mutating func forgetCarried() {
        carriedCount = 0
        carriedIsSpent = false
    }

    /// The next sentence with a valid or a missing checksum; nil when the chunk is used up.
    @inline(__always)
    mutating func next(in chunk: Span<UInt8>, from position: inout Int) -> Frame? {
        if carriedCount > 0, let frame = finishCarried(in: chunk, from: &position) { return frame }
        while true {
            guard let start = firstStart(in: chunk, from: position) else {
                position = chunk.count
                return nil
            }
            let found = Self.scan(chunk, from: start, maximumLength: maximumLength)
            switch found.outcome {
            case .complete, .unchecked:
                position = found.next
                let isLowered = found.outcome == .complete && Self.isLowered(chunk, start..<found.contentEnd)
                if isLowered { carryRaised(chunk, start..<found.contentEnd) }
                return Frame(
                    holding: isLowered ? .raised : .chunk, start: start, contentEnd: found.contentEnd,
                    chunkEnd: found.next, hasChecksum: found.outcome == .complete)
            case .unfinished:
                carry(chunk, from: start)
                position = chunk.count
                return nil
            case .checksumError, .cut, .tooLong:
                position = found.next
                if found.outcome == .checksumError, Self.isLoweredAsAWhole(chunk, start, found) {
                    carryRaised(chunk, start..<found.contentEnd)
                    return Frame(
                        holding: .raised, start: start, contentEnd: found.contentEnd, chunkEnd: found.next,
                        hasChecksum: true)
                }
                count(found.outcome, bytes: found.next - start)
            }
        }
    }

    private mutating func carry(_ chunk: Span<UInt8>, from start: Int) {
        // An unfinished sentence is shorter than the maximum, and so than the buffer.
        let length = min(chunk.count - start, Self.capacity)
        for i in 0..<length { carried[i] = chunk[start + i] }
        carriedCount = length
    }

    @inline(never)
    private mutating func finishCarried(in chunk: Span<UInt8>, from position: inout Int) -> Frame? {
        if carriedIsSpent {
            forgetCarried()
            return nil
        }
        let before = carriedCount
        let added = min(chunk.count - position, maximumLength - before)
        for i in 0..<max(0, added) { carried[before + i] = chunk[position + i] }
        carriedCount = before + max(0, added)
        let found = Self.scan(
            carried.span.extracting(0..<carriedCount), from: 0, maximumLength: maximumLength)
        switch found.outcome {
        case .unfinished:
            position = chunk.count
            return nil
        case .complete, .unchecked:
            position += found.next - before
            carriedIsSpent = true
            if found.outcome == .complete, Self.isLowered(carried.span, 0..<found.contentEnd) {
                raise(0..<found.contentEnd)
            }
            return Frame(
                holding: .carried, start: 0, contentEnd: found.contentEnd, chunkEnd: position,
                hasChecksum: found.outcome == .complete)
        case .checksumError, .cut, .tooLong:
            position += found.next - before
            if found.outcome == .checksumError, Self.isLoweredAsAWhole(carried.span, 0, found) {
                carriedIsSpent = true
                raise(0..<found.contentEnd)
                return Frame(
                    holding: .carried, start: 0, contentEnd: found.contentEnd, chunkEnd: position, hasChecksum: true)
            }
            count(found.outcome, bytes: found.next)
            forgetCarried()
            return nil
        }
    }

    private mutating func count(_ outcome: Outcome, bytes: Int) {
        defects.strayBytes += bytes
        switch outcome {
        case .checksumError: defects.checksum += 1
        case .tooLong: defects.tooLong += 1
        case .cut: defects.badBytes += 1
        case .complete, .unchecked, .unfinished: break
        }
    }
}

extension SentenceFramer {
    enum Outcome: Sendable {
        case complete
        /// A line end before any checksum.
        case unchecked
        case checksumError
        /// A byte that no sentence holds, or a new start.
        case cut
        case tooLong
        /// The bytes end before the sentence does.
        case unfinished
    }

    struct Scan {
        var outcome: Outcome
        /// Index of `*`, or of the byte that ended the sentence.
        var contentEnd: Int
        /// Where to look for the next start. Nothing before it can be one, because a start ends the sentence before it.
        var next: Int
    }

    private static let dollar = UInt8(ascii: "$")
    private static let exclamation = UInt8(ascii: "!")
    private static let star = UInt8(ascii: "*")

    @inline(__always)
    private mutating func firstStart(in bytes: Span<UInt8>, from position: Int) -> Int? {
        var index = position
        while index < bytes.count {
            let byte = bytes[index]
            if byte == Self.dollar || byte == Self.exclamation { return index }
            if byte != 0x0D && byte != 0x0A { defects.strayBytes += 1 }
            index += 1
        }
        return nil
    }

    /// Whether the bytes end with a whole sentence and its checksum.
    static func endsWithSentence(_ bytes: Span<UInt8>, from start: Int) -> Bool {
        let found = scan(bytes, from: start, maximumLength: capacity)
        return found.outcome == .complete && found.next == bytes.count
    }

    /// Follows the sentence that starts at `start` to its end, eight bytes at a time.
    @inline(__always)
    static func scan(_ bytes: Span<UInt8>, from start: Int, maximumLength: Int) -> Scan {
        let limit = min(bytes.count, start + maximumLength)
        let atLimit: Outcome = limit < start + maximumLength ? .unfinished : .tooLong
        let raw = bytes.bytes
        var lanes: UInt64 = 0
        var index = start + 1
        while true {
            if index + 8 <= limit {
                let word = UInt64(littleEndian: raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
                let special = specialBytes(in: word)
                if special == 0 {
                    lanes ^= word
                    index += 8
                    continue
                }
                let plainBits = UInt64(special.trailingZeroBitCount) & ~7
                lanes ^= word & ((1 << plainBits) &- 1)
                index += Int(plainBits >> 3)
            } else if index >= limit {
                return Scan(outcome: atLimit, contentEnd: limit, next: limit)
            }
            let byte = bytes[index]
            if byte == star {
                return finish(bytes, star: index, limit: limit, atLimit: atLimit, checksum: folded(lanes))
            }
            if byte < 0x20 || byte > 0x7E || byte == dollar || byte == exclamation {
                let isLineEnd = byte == 0x0D || byte == 0x0A
                return Scan(outcome: isLineEnd ? .unchecked : .cut, contentEnd: index, next: index)
            }
            lanes ^= UInt64(byte)
            index += 1
        }
    }

    /// High bit set in each byte below 0x2B (which holds `$`, `!`, `*` and the control bytes) or above 0x7E. Bits above
    /// the lowest one set may be wrong, because a borrow or carry runs upward.
    @inline(__always)
    private static func specialBytes(in word: UInt64) -> UInt64 {
        let low = (word &- 0x2B2B_2B2B_2B2B_2B2B) & ~word
        let high = word | (word &+ 0x0101_0101_0101_0101)
        return (low | high) & 0x8080_8080_8080_8080
    }

    @inline(__always)
    private static func folded(_ lanes: UInt64) -> UInt8 {
        var value = lanes ^ (lanes >> 32)
        value ^= value >> 16
        value ^= value >> 8
        return UInt8(truncatingIfNeeded: value)
    }

    @inline(__always)
    private static func finish(
        _ bytes: Span<UInt8>, star: Int, limit: Int, atLimit: Outcome, checksum: UInt8
    ) -> Scan {
        guard star + 1 < limit else { return Scan(outcome: atLimit, contentEnd: star, next: limit) }
        guard let high = hexDigit(bytes[star + 1]) else {
            return Scan(outcome: .checksumError, contentEnd: star, next: star + 1)
        }
        guard star + 2 < limit else { return Scan(outcome: atLimit, contentEnd: star, next: limit) }
        guard let low = hexDigit(bytes[star + 2]) else {
            return Scan(outcome: .checksumError, contentEnd: star, next: star + 2)
        }
        let matches = high << 4 | low == checksum
        return Scan(outcome: matches ? .complete : .checksumError, contentEnd: star, next: star + 3)
    }

    @inline(__always)
    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// Some programs write a log in lower case throughout, with the checksums of the original or with new ones.
extension SentenceFramer {
    private static let lowerCase = UInt8(ascii: "a")...UInt8(ascii: "z")
    private static let upperCase = UInt8(ascii: "A")...UInt8(ascii: "Z")
    private static let caseBit: UInt8 = 0x20

    /// Whether the sentence at `range` begins with a small letter and has no capital.
    @inline(__always)
    private static func isLowered(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard range.count > 1, lowerCase.contains(bytes[range.lowerBound + 1]) else { return false }
        return hasNoCapital(bytes, range)
    }

    @inline(never)
    private static func hasNoCapital(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        for index in range where upperCase.contains(bytes[index]) { return false }
        return true
    }

    /// Whether the checksum, which is wrong as it stands, is that of the sentence in upper case.
    @inline(never)
    private static func isLoweredAsAWhole(_ bytes: Span<UInt8>, _ start: Int, _ found: Scan) -> Bool {
        let end = found.contentEnd
        guard found.next == end + 3, isLowered(bytes, start..<end), let high = hexDigit(bytes[end + 1]),
            let low = hexDigit(bytes[end + 2])
        else { return false }
        var checksum: UInt8 = 0
        for index in start + 1..<end { checksum ^= raised(bytes[index]) }
        return checksum == high << 4 | low
    }

    private static func raised(_ byte: UInt8) -> UInt8 { lowerCase.contains(byte) ? byte ^ caseBit : byte }

    private mutating func carryRaised(_ chunk: Span<UInt8>, _ range: Range<Int>) {
        for index in range { carried[index - range.lowerBound] = Self.raised(chunk[index]) }
        carriedCount = range.count
        carriedIsSpent = true
    }

    private mutating func raise(_ range: Range<Int>) {
        for index in range { carried[index] = Self.raised(carried[index]) }
    }
}

extension SentenceFramer {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(carriedCount >= 0 && carriedCount <= Self.capacity, "\(carriedCount) bytes are carried over")
        invariant(maximumLength <= Self.capacity, "sentences of \(maximumLength) bytes")
    }
}
