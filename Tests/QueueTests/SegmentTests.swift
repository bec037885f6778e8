import Foundation
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

/// Rows of a commit as one row of the database.
@Suite struct SegmentTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func row(_ seq: Int64, using generator: inout SeededGenerator) -> StoredRow {
        var row = StoredRow(seq: seq)
        for place in 0..<StoredRow.columnCount {
            let magnitude = Int64(1) << Int64.random(in: 0...60, using: &generator)
            row[place: place] =
                Int.random(in: 0..<4, using: &generator) == 0
                ? nil : Int64.random(in: -magnitude...magnitude, using: &generator)
        }
        return row
    }

    private func values(_ row: StoredRow) -> [Int64?] {
        [row.seq] + (0..<StoredRow.columnCount).map { row[place: $0] }
    }

    /// `StoredRow.values(of:)` relies on it.
    @Test func theValuesOfARowFollowItsNumber() {
        #expect(MemoryLayout<StoredRow>.offset(of: \.values) == MemoryLayout<Int64>.size)
    }

    @Test(arguments: testSeeds(1...8)) func whatIsWrittenIsReadBack(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var seq: Int64 = 0
        let rows = (0..<200).map { _ in
            seq += Int64.random(in: 1...3, using: &generator)
            if Int.random(in: 0..<20, using: &generator) == 0 { seq += 1 << 40 }
            return row(seq, using: &generator)
        }
        var rest = rows[...]
        while let first = rest.first {
            let (bytes, count) = SegmentCoding.encode(rest)
            let isShort = count == 1 || bytes.count <= SegmentCoding.bytesMax
            let read = bytes.withUnsafeBytes { SegmentCoding.decode($0, first: first.seq, rows: count) }
            let isRight = read?.map(values) == rest.prefix(count).map(values)
            #expect(isRight && isShort && (1...SegmentCoding.rowsMax).contains(count), "rows from \(first.seq)")
            rest = rest.dropFirst(count)
        }
    }

    @Test func theNewestSegmentsAreKeptAsRows() {
        var recent = RecentSegments()
        let segments = (0..<Int64(9)).map { number in (1...40).map { StoredRow(seq: number * 40 + $0) } }
        for (number, rows) in segments.enumerated() { recent.keep(rows, UInt32(number)) }
        func isKept(_ number: Int, _ rows: Int = 40, _ checksum: Int? = nil) -> Bool {
            recent.rows(through: Int64(number + 1) * 40, rows, UInt32(checksum ?? number))?.map(\.seq)
                == segments[number].map(\.seq)
        }
        #expect((0..<9).filter { isKept($0) } == [3, 4, 5, 6, 7, 8])
        // What the table has under the same number is another one.
        #expect(!isKept(8, 39) && !isKept(8, 40, 7))
        recent.keep((1...Int64(300)).map { StoredRow(seq: $0) }, 1)
        #expect(!isKept(8) && recent.rows(through: 300, 300, 1) == nil)
    }

    /// A commit that failed has left nothing behind, in memory either.
    @Test func rowsOfACommitThatFailedAreNotRead() throws {
        let database = try Database(path: scratch.path)
        func rows(_ latitude: Int64) -> [StoredRow] {
            (1...Int64(3)).map { seq in
                var row = StoredRow(seq: seq)
                row[.latE7] = latitude
                return row
            }
        }
        func append(_ latitude: Int64, fails: Bool) throws(OutboxError) {
            try database.transaction { () throws(OutboxError) in
                try database.rows.append(rows(latitude))
                if fails { throw OutboxError(.full, path: "", message: "") }
            }
        }
        #expect(throws: OutboxError.self) { try append(1, fails: true) }
        try append(2, fails: false)
        #expect(try database.rows.rows(RowRange(0, .max), limit: 10).map { $0[.latE7] } == [2, 2, 2])
    }

    /// Its rows in memory are right, and the check is of what the next process will read.
    @Test func aCheckLooksAtTheBytesOfWhatIsInMemory() throws {
        let database = try Database(path: scratch.path)
        try database.rows.append((1...Int64(3)).map { StoredRow(seq: $0) })
        try database.connection.execute("UPDATE segment SET data = substr(data, 1, 4) || x'FFFF' || substr(data, 7)")
        #expect(try database.rows.rows(RowRange(0, .max), limit: 10).map(\.seq) == [1, 2, 3])
        #expect(try database.rows.problems() == ["segment 1 to 3 is damaged"])
    }

    @Test func noDamagedByteIsTakenForData() throws {
        var generator = SeededGenerator(seed: testSeed(1))
        let rows = (1...5).map { row($0, using: &generator) }
        let bytes = SegmentCoding.encode(rows[...], isOne: true).bytes
        func read(_ bytes: [UInt8], first: Int64 = 1, rows: Int = 5) -> [StoredRow]? {
            bytes.withUnsafeBytes { SegmentCoding.decode($0, first: first, rows: rows) }
        }
        #expect(read(bytes) != nil)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= UInt8.random(in: 1...255, using: &generator)
            #expect(read(damaged) == nil, "byte \(index)")
        }
        // A damaged file, or one that was made on purpose: nothing traps, and no value is out of range.
        for _ in 0..<8000 {
            let garbage = (0..<Int.random(in: 1...60, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator) & UInt8.random(in: 0...255, using: &generator)
            }
            let count = Int.random(in: 1...5, using: &generator)
            let first = Int64.random(in: 0...Ledger.highestSeq, using: &generator)
            let rows = read(SegmentCoding.checked(garbage, first: first), first: first, rows: count)
            for row in rows ?? [] {
                let areInRange = values(row).dropFirst().allSatisfy { $0.map(Statement.range.contains) ?? true }
                if !areInRange || !(first...Ledger.highestSeq).contains(row.seq) { Issue.record("\(garbage)") }
            }
        }
        #expect(read(bytes, first: 2) == nil && read(bytes, rows: 4) == nil && read(bytes, rows: 6) == nil)
        #expect(read(Array(bytes.dropLast())) == nil && read([]) == nil)
    }

    @Test(arguments: testSeeds(1...8)) func behavesLikeAList(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        func number(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &generator) }
        var model: [StoredRow] = []
        func plain(_ seq: Int64) -> StoredRow {
            StoredRow(
                NewRow(.sample(Int(seq), published: seq % 3 != 0)), seq: seq, trackable: nil, boot: nil, reason: nil)
        }
        let store = try Database(path: scratch.path).rows
        var next: Int64 = 1
        for _ in 0..<60 {
            switch number(0...5) {
            case 0, 1:
                let rows = (0..<number(1...90)).map { plain(next + $0) }
                try store.append(rows)
                model += rows
                next += Int64(rows.count) + number(0...3)
            case 2:
                let last = number(0...next)
                let before = model.count
                model.removeAll { $0.seq <= last }
                #expect(try store.removeThrough(last) == before - model.count)
            case 3:
                let gone = Set((0..<5).map { _ in number(1...next) })
                try store.change(RowRange(0, .max)) { gone.contains($0.seq) ? .removal : .none }
                model.removeAll { gone.contains($0.seq) }
            case 4:
                let gap = number(1...next)
                try store.change(RowRange(gap, gap)) { row in
                    var row = row
                    row.becomeGap(reason: 7)
                    return .replacement(row)
                }
                for index in model.indices where model[index].seq == gap { model[index].becomeGap(reason: 7) }
            default:
                let last = number(next - 5...next)
                let before = model.count
                model.removeAll { $0.seq > last }
                #expect(try store.removeAfter(last) == before - model.count)
            }
            let range = RowRange(number(0...next), number(0...next), isPublishedOnly: number(0...1) == 0)
            let expected = model.filter(range.contains)
            let limit = Int(number(0...30))
            let place = Int(number(0...50))
            let (oldest, newest) = try (store.rows(range, limit: limit), store.newest(range, limit: limit))
            #expect(oldest.map(values) == expected.prefix(limit).map(values))
            #expect(newest.map(values) == expected.reversed().prefix(limit).map(values))
            let found: [Int64?] = try [
                store.seq(at: place, of: range), store.first, store.last, Int64(store.count(range)),
            ]
            let right: [Int64?] = [
                expected.dropFirst(place).first?.seq, model.first?.seq, model.last?.seq, Int64(expected.count),
            ]
            #expect(found == right)
        }
    }

    /// The program of docs/queue.md.
    @Test func aProgramOfOnesOwnReadsTheQueue() throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 300, by: 30) { try outbox.append(start..<start + 30) }
        let batch = try #require(try outbox.form(47))
        try outbox.acknowledge(batch)
        outbox.close()
        let rows = try OutboxReader(path: scratch.path).oldest(1000)
        let objects = try PublishedProgram.rows(of: "docs/queue.md", path: scratch.path)
        try #require(objects.count == rows.count && rows.count == 253)
        let wrong = zip(objects, rows).filter { !isRow($0, $1) }
        #expect(wrong.isEmpty)
    }

    private func isRow(_ object: [String: Any], _ row: QueuedLocation) -> Bool {
        let location = row.location
        guard object["seq"] as? Int64 == row.seq, object["time_ms"] as? Int64 == location.time.milliseconds,
            object["lat_e7"] as? Int64 == Int64(location.coordinate.latitudeE7),
            object["altitude_cm"] as? Int64 == location.altitudeMSL.map({ Int64(($0 * 100).rounded()) }),
            object["course_ddeg"] as? Int64 == location.course.map({ Int64(($0 * 10).rounded()) })
        else { return false }
        return object["trackable"] as? String == location.trackable && object["boot"] as? String == row.bootID
            && object["reason"] as? String == location.reason
    }
}
