import WaypostCore

/// Local time of one place: what the clocks there show at any UTC.
///
/// Read from a file of the tz database and held as a value: glibc knows one zone in a process, by an environment
/// variable, which also moves the stamps of the log and reports no unknown zone.
package struct TimeZoneRules: Hashable, Sendable {
    /// Unix times at which the clocks changed, rising, and seconds east of UTC from each on.
    private var changes: [Change] = []
    /// Before the first change.
    private var first: Int64
    /// After the last change; nil = as it left the clocks.
    private var rule: PosixZone?

    private struct Change: Hashable {
        var at: Int64
        var offset: Int64
    }

    package static let utc = TimeZoneRules(first: 0)

    private init(first: Int64) { self.first = first }

    /// A zone by its rule alone: `CET-1CEST,M3.5.0,M10.5.0/3`. nil when the text is not of this form.
    package init?(posix text: String) {
        guard let rule = PosixZone(Array(text.utf8)) else { return nil }
        first = rule.offset
        self.rule = rule
    }

    /// - Parameter bytes: of a file in the form of RFC 9636 (TZif), version 1 to 4. Leap seconds are not counted.
    package init?(tzif bytes: [UInt8]) {
        guard bytes.count <= Self.bytesMax, let old = Header(bytes, at: 0) else { return nil }
        guard old.version >= UInt8(ascii: "2") else {
            self.init(bytes, Block(old, timeSize: 4))
            return
        }
        guard let start = Block(old, timeSize: 4).end(in: bytes), let header = Header(bytes, at: start) else {
            return nil
        }
        let block = Block(header, timeSize: 8)
        self.init(bytes, block)
        guard let end = block.end(in: bytes) else { return nil }
        let footer = bytes[end...].dropFirst().prefix { $0 != UInt8(ascii: "\n") }
        guard bytes[end...].first == UInt8(ascii: "\n"), end + 1 + footer.count < bytes.count else { return nil }
        if footer.isEmpty { return }
        guard let rule = PosixZone(footer) else { return nil }
        self.rule = rule
    }

    /// Files are below 4 KiB.
    package static let bytesMax = 1 << 17

    private init?(_ bytes: [UInt8], _ block: Block) {
        guard block.end(in: bytes) != nil, block.header.types > 0 else { return nil }
        var offsets: [Int64] = []
        for type in 0..<block.header.types {
            offsets.append(Self.integer(bytes, at: block.types + 6 * type, size: 4))
        }
        guard offsets.allSatisfy({ abs($0) < 26 * 3600 }) else { return nil }
        first = offsets[0]
        changes.reserveCapacity(block.header.times)
        for index in 0..<block.header.times {
            let type = Int(bytes[block.indices + index])
            let at = Self.integer(bytes, at: block.times + block.timeSize * index, size: block.timeSize)
            guard type < offsets.count, changes.last.map({ $0.at < at }) ?? true else { return nil }
            changes.append(Change(at: at, offset: offsets[type]))
        }
    }

    private struct Header {
        var start: Int
        var version: UInt8
        var times, types, characters, leaps, standards, universals: Int

        init?(_ bytes: [UInt8], at start: Int) {
            guard start >= 0, bytes.count >= start + 44, bytes[start..<start + 4].elementsEqual("TZif".utf8) else {
                return nil
            }
            func count(_ index: Int) -> Int { Int(TimeZoneRules.integer(bytes, at: start + 20 + 4 * index, size: 4)) }
            self.start = start
            version = bytes[start + 4]
            (universals, standards, leaps) = (count(0), count(1), count(2))
            (times, types, characters) = (count(3), count(4), count(5))
            guard [universals, standards, leaps, times, types, characters].allSatisfy({ (0...65_536).contains($0) })
            else { return nil }
        }
    }

    /// The offsets of the tables after a header.
    private struct Block {
        var header: Header
        var timeSize: Int
        var times: Int { header.start + 44 }
        var indices: Int { times + header.times * timeSize }
        var types: Int { indices + header.times }

        init(_ header: Header, timeSize: Int) {
            self.header = header
            self.timeSize = timeSize
        }

        /// nil when the tables are longer than the file.
        func end(in bytes: [UInt8]) -> Int? {
            let end =
                types + 6 * header.types + header.characters + header.leaps * (timeSize + 4) + header.standards
                + header.universals
            return end <= bytes.count ? end : nil
        }
    }

    /// Big-endian, two's complement.
    private static func integer(_ bytes: [UInt8], at start: Int, size: Int) -> Int64 {
        let bits = bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return size == 4 ? Int64(Int32(truncatingIfNeeded: bits)) : Int64(bitPattern: bits)
    }
}

extension TimeZoneRules {
    /// - Parameter time: seconds since 1970 UTC.
    /// - Returns: seconds east of UTC, and when that changes next (nil = never).
    func offset(at time: Int64) -> (seconds: Int64, until: Int64?) {
        guard let last = changes.last, time < last.at else {
            return ruled(at: time) ?? (changes.last?.offset ?? first, nil)
        }
        var (low, high) = (0, changes.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if changes[middle].at <= time { low = middle + 1 } else { high = middle }
        }
        return (low == 0 ? first : changes[low - 1].offset, changes[low].at)
    }

    private func ruled(at time: Int64) -> (seconds: Int64, until: Int64?)? {
        guard let rule else { return nil }
        guard rule.daylight != nil else { return (rule.offset, nil) }
        // Beyond the years that a receiver may report the clocks do not change.
        let day = Int(max(-1_000_000, min(time / 86_400, 10_000_000)))
        let year = CivilDate(daysSince1970: day).year
        // A change that comes with another in the same second (daylight time all year) gives way to the later one.
        // Where daylight time is longer than a year, the last change before may belong to the year before the last.
        let around = (year - 2...year + 2).flatMap { rule.changes(year: $0) }.sorted { $0.at < $1.at }
        let before = around.last { $0.at <= time }
        let next = around.first { $0.at > time }
        return (before?.offset ?? rule.offset, next?.at)
    }
}
