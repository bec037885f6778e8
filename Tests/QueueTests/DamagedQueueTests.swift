import Glibc
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

/// Whatever a card makes of the file, the daemon starts, and brings back what can be read.
@Suite struct DamagedQueueTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private static let small = Result { try image(600) }
    private static let large = Result { try image(3000) }

    /// A queue of 600 rows with events, some acknowledged, part of it in the log only.
    private func makeQueue(isLarge: Bool = false) throws -> CrashImage {
        let image = try (isLarge ? Self.large : Self.small).get()
        image.write(to: scratch.path)
        return image
    }

    private static func image(_ rows: Int) throws -> CrashImage {
        let scratch = try Scratch()
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: rows, by: 50) {
            _ = try outbox.commit(
                Commit(
                    rows: (start..<start + 50).map { NewRow(.numbered($0)) },
                    parts: .init(tracker: [1, 2, 3], source: [4])))
            if start % 200 == 150 { try outbox.acknowledge(try #require(try outbox.form(20))) }
        }
        _ = try outbox.form(10)
        outbox.close()
        return CrashImage(of: scratch.path)
    }

    /// The file is changed while nobody has it.
    private func spoil(_ change: (inout [UInt8], Connection) throws -> Void) throws {
        var image: CrashImage
        do {
            let connection = try Connection(path: scratch.path, access: .readWrite)
            try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            image = CrashImage(of: scratch.path)
            try change(&image.database, connection)
        }
        image.write(to: scratch.path)
    }

    /// The pages from this one on.
    private func overwrite(_ page: Int64, _ pages: Int = 1, of bytes: inout [UInt8]) {
        let start = Int(page - 1) * 512
        bytes.replaceSubrange(start..<start + pages * 512, with: [UInt8](repeating: 0xAA, count: pages * 512))
    }

    private func leaf(_ number: Int, _ connection: Connection) throws -> Int64 {
        try connection.integer(
            """
            SELECT pageno FROM dbstat WHERE name = 'segment' AND pagetype = 'leaf' ORDER BY path
            LIMIT 1 OFFSET \(number)
            """)
    }

    /// The queue is opened, found damaged at once, and brought back.
    private func recovered() throws -> Outbox {
        let outbox = try Outbox.open(scratch)
        #expect(outbox.current.recovery.corruptRecovered == 1)
        try bringAllBack(outbox)
        return outbox
    }

    /// Commits until everything that can be read is back.
    private func bringAllBack(_ outbox: Outbox) throws {
        for round in 0..<200 {
            let reply = try outbox.commit(Commit(parts: .init(tracker: [UInt8(round % 200)])))
            if !reply.recovery.isSalvaging { return }
        }
        Issue.record("it is never done")
    }

    private func rows(_ outbox: Outbox) throws -> [QueuedLocation] {
        try OutboxReader(path: outbox.settings.path).oldest(100_000)
    }

    private func numbers(_ outbox: Outbox) throws -> [Int] { try rows(outbox).map { Int($0.location.odometer) } }

    private func isInOrder(_ rows: [QueuedLocation]) -> Bool {
        zip(rows, rows.dropFirst()).allSatisfy { $0.seq < $1.seq }
    }

    private func clear(_ directory: String) {
        for name in Scratch.contents(of: directory) { unlink("\(directory)/\(name)") }
    }

    @Test(arguments: testSeeds(1...4))
    func startsOnAnyDamage(seed: UInt64) throws {
        let image = try makeQueue()
        var generator = SeededGenerator(seed: seed)
        let damaged = try Scratch()
        for round in 0..<30 {
            var copy = image
            let note = Comment(rawValue: "seed \(seed), round \(round): \(damage(&copy, &generator))")
            clear(damaged.directory)
            copy.write(to: damaged.path)
            let outbox = try Outbox.open(damaged)
            // As the daemon does first.
            _ = outbox.inFlight()
            try bringAllBack(outbox)
            let last = try outbox.append(10_000..<10_005).lastSeq
            try bringAllBack(outbox)
            let found = try rows(outbox)
            #expect(found.suffix(5).map(\.location) == samples(10_000..<10_005), note)
            #expect(found.last?.seq == last && isInOrder(found), note)
            while let batch = try outbox.form(100) { try outbox.acknowledge(batch) }
            outbox.close()
        }
    }

    /// Bytes, pages, a part cut off: somewhere in the database or in its log.
    private func damage(_ image: inout CrashImage, _ generator: inout SeededGenerator) -> String {
        func mangle(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) -> String {
            guard !bytes.isEmpty else { return "nothing" }
            switch Int.random(in: 0..<5, using: &generator) {
            case 0:
                let count = Int.random(in: 1...20, using: &generator)
                for _ in 0..<count {
                    bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(
                        in: 0...255, using: &generator)
                }
                return "\(count) bytes"
            case 1:
                let page = Int.random(in: 0..<max(1, bytes.count / 512), using: &generator) * 512
                for index in page..<min(bytes.count, page + 512) {
                    bytes[index] = UInt8.random(in: 0...255, using: &generator)
                }
                return "the page at \(page)"
            case 2:
                bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
                return "all behind \(bytes.count)"
            case 3:
                let index = Int.random(in: 0..<min(100, bytes.count), using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
                return "byte \(index)"
            default:
                let start = Int.random(in: bytes.indices, using: &generator)
                for index in start..<min(bytes.count, start + 8192) { bytes[index] = 0 }
                return "8192 zeros at \(start)"
            }
        }
        return Bool.random(using: &generator)
            ? "database: " + mangle(&image.database, &generator) : "log: " + mangle(&image.log, &generator)
    }

    /// CORRUPT, NOTADB, FORMAT and TOOBIG, and ERROR where the schema is wrong. Not NOMEM, MISUSE, PROTOCOL or CONSTRAINT.
    @Test func onlyTheseCodesMayBeDamage() {
        let codes = (1...28 as ClosedRange<Int32>).filter {
            OutboxError(code: $0, path: "", message: "", sql: nil).mayBeDamage
        }
        #expect(codes == [1, 11, 18, 24, 26])
    }

    @Test func startsOnFilesThatAreNoDatabase() throws {
        for bytes: [UInt8] in [[UInt8](repeating: 0x41, count: 5000), [0], Array("SQLite format 3\0".utf8), []] {
            clear(scratch.directory)
            Scratch.write(bytes, to: scratch.path)
            let outbox = try Outbox.open(scratch)
            #expect(try outbox.append(0..<3).rows == 3)
            // Less than a page may be what a file has whose making was interrupted.
            if bytes.count >= 512 { #expect(Scratch.read(scratch.path + ".corrupt-1") == bytes) }
            outbox.close()
        }
    }

    /// The byte of the header that says by which SQLite a file may be written, or a table that is not there.
    @Test(arguments: [nil, "trip", "batch"]) func setsAFileAsideThatCannotBeUsed(_ table: String?) throws {
        _ = try makeQueue()
        try spoil { bytes, _ in if table == nil { bytes[18] = 3 } }
        if let table { try scratch.execute("DROP TABLE \(table)") }
        let outbox = try recovered()
        #expect(try outbox.append(10_000..<10_005).refusal == nil)
        #expect(try rows(outbox).count == 545)
    }

    /// Whatever one byte of the header, or of the pages that name the tables, says: the file is as sound as before, or what is wrong
    /// with it is called damage, never a fault of the program.
    @Test(arguments: [0x01, 0xFF] as [UInt8])
    func aWrongByteOfHeaderOrTablesIsNoFaultOfTheProgram(mask: UInt8) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 100, by: 10) { try outbox.append(start..<start + 10) }
        outbox.close()
        var pages: [Int64] = []
        try spoil { _, connection in
            #expect(try Schema.hasFirstTables(connection))
            pages = try connection.rows("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'") { $0.integer(0) }
        }
        let image = CrashImage(of: scratch.path)
        let damaged = try Scratch()
        for place in pages.flatMap({ Int($0 - 1) * 512..<Int($0) * 512 }) {
            let note = Comment(rawValue: "byte \(place)")
            var copy = image
            copy.database[place] ^= mask
            clear(damaged.directory)
            copy.write(to: damaged.path)
            do throws(OutboxError) {
                let database = try Database(path: damaged.path)
                let rows = try database.rows.rows(RowRange(0, .max), limit: 1000)
                let (uuid, names) = (try database.blob(.uuid), try database.names())
                #expect(rows.count == 100 && uuid == testUUID && names.reasons.count == 1, note)
            } catch {
                let isDamage =
                    try error.isOfSchema
                    ? !Schema.isComplete(Connection(path: damaged.path, access: .readWrite)) : error.mayBeDamage
                #expect(isDamage, "byte \(place): \(error)")
            }
            // The rest is slow: a part of it is enough.
            guard place < 100 || place % 23 == Int(mask % 23) else { continue }
            clear(damaged.directory)
            copy.write(to: damaged.path)
            let outbox = try Outbox.open(damaged, worksWithoutDisk: true)
            #expect(outbox.refusal == nil, note)
            try bringAllBack(outbox)
            for start in [100, 105] { try outbox.append(start..<start + 5) }
            try bringAllBack(outbox)
            #expect(try Set(numbers(outbox)) == Set(0..<110), note)
            outbox.close()
        }
    }

    /// Whole pages of rows are overwritten: everything else comes back, once, behind, with its own time.
    @Test func bringsBackWhatCanBeRead() throws {
        _ = try makeQueue(isLarge: true)
        try spoil { overwrite(try leaf(12, $1), 2, of: &$0) }
        let outbox = try Outbox.open(scratch)
        // Damage in the middle is not looked for at the start.
        #expect(outbox.current.recovery.corruptRecovered == 0)
        var before = try #require(try outbox.form(50))
        while let next = try? outbox.form(500), outbox.current.recovery.corruptRecovered == 0 {
            try outbox.acknowledge(next)
            before = next
        }
        #expect(outbox.current.recovery.corruptRecovered == 1)
        #expect(access(scratch.path + ".corrupt-1", F_OK) == 0)
        try bringAllBack(outbox)
        let found = try rows(outbox)
        let numbers = found.map { Int($0.location.odometer) }
        #expect(numbers == Set(numbers).sorted())
        // Two pages of a segment each are gone.
        let expected = 3000 - Int(before.rows.last!.location.odometer) - 1
        #expect(numbers.count >= expected - 4 * SegmentCoding.rowsMax)
        #expect(numbers.count < expected)
        #expect(found.map(\.location) == numbers.map { .numbered($0) })
        #expect(found.first!.seq > before.rows.last!.seq)
        #expect(outbox.current.recovery.salvaged == numbers.count && outbox.current.recovery.inversions == 0)
    }

    /// Whatever a page leads to or says of others, its loss costs the rows on it alone.
    @Test(arguments: [1, 8]) func aDamagedPageCostsTheRowsOnIt(pages: Int) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 1000, by: 50) { try outbox.append(start..<start + 50) }
        outbox.close()
        var leaves: Set<Int64> = []
        try spoil { _, connection in
            let found = try connection.rows("SELECT pageno FROM dbstat WHERE name = 'segment' AND pagetype = 'leaf'") {
                $0.integer(0)
            }
            leaves = Set(found)
        }
        let image = CrashImage(of: scratch.path)
        let damaged = try Scratch()
        let count = image.database.count / 512
        for first in stride(from: 1, through: count, by: pages) {
            var copy = image
            let numbers = first..<min(first + pages, count + 1)
            overwrite(Int64(first), numbers.count, of: &copy.database)
            clear(damaged.directory)
            copy.write(to: damaged.path)
            let salvage = try #require(
                try Salvage(
                    path: damaged.path, part: .init(copy: 1, next: 0, through: Ledger.seqMax), before: nil,
                    isDamaged: true))
            var found: [QueuedLocation] = []
            while !salvage.isFinished { found += try salvage.rows(250, for: [.test()]).map(\.row) }
            let most = numbers.count { leaves.contains(Int64($0)) } * SegmentCoding.rowsMax
            #expect(isInOrder(found) && 1000 - found.count <= most, "pages \(numbers)")
        }
    }

    /// However few are kept in mind, all are found, in order and once.
    @Test(arguments: [7, 60]) func moreSegmentsThanAreKeptInMindAreFound(knownMax: Int) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 6000, by: 1000) { try outbox.append(start..<start + 1000) }
        outbox.close()
        let connection = try Connection(path: scratch.path, access: .readWrite)
        try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        var pages = SegmentPages(knownMax: knownMax)
        var found: [Int64] = []
        while true {
            let rows = pages.rows(from: (found.last ?? 0) + 1, before: 5900, limit: 250, of: connection)
            if rows.isEmpty { break }
            found += rows.map(\.seq)
        }
        #expect(found == Array(1..<5900))
    }

    /// SQLite calls it a mistake in the statement.
    @Test func aSchemaFormatThatIsUnknownIsDamage() throws {
        try Outbox.open(scratch, rows: 100).close()
        try spoil { bytes, _ in bytes[47] = 5 }
        let outbox = try Outbox.open(scratch)
        #expect(outbox.current.recovery.corruptRecovered == 1)
        try bringAllBack(outbox)
        #expect(try rows(outbox).count == 100)
    }

    /// The header, and most of what says which tables there are.
    @Test func bringsBackAQueueWhoseFirstSectorIsLost() throws {
        _ = try makeQueue()
        try spoil { bytes, _ in bytes.replaceSubrange(0..<4096, with: [UInt8](repeating: 0, count: 4096)) }
        // Names of reasons are in the sector as well.
        #expect(try numbers(try recovered()) == Array(60..<600))
    }

    /// No table can be found any more.
    @Test func bringsBackSegmentsWithoutAnyTable() throws {
        _ = try makeQueue(isLarge: true)
        try spoil { bytes, _ in bytes.replaceSubrange(0..<20480, with: [UInt8](repeating: 0, count: 20480)) }
        let outbox = try Outbox.open(scratch)
        try bringAllBack(outbox)
        let found = try rows(outbox).map(\.location)
        let numbers = found.map { Int($0.odometer) }
        #expect(found.count > 1200 && numbers == Set(numbers).sorted())
        // What was crossed is in a table of its own.
        #expect(numbers.contains { $0 % 40 == 7 } && found.allSatisfy { $0.geofence == nil && $0.event == .none })
    }

    /// A disk that lied may have kept an old page in the place of a new one. SQLite goes from page to page and does not see it.
    @Test(.bug(id: 11)) func rowsInTheWrongPlaceAreDamage() throws {
        _ = try makeQueue(isLarge: true)
        try spoil { bytes, connection in
            let (from, to) = try (Int(leaf(8, connection)), Int(leaf(16, connection)))
            bytes.replaceSubrange((to - 1) * 512..<to * 512, with: bytes[(from - 1) * 512..<from * 512])
        }
        let outbox = try Outbox.open(scratch)
        var sent = 0
        while let batch = try? outbox.form(100), outbox.current.recovery.corruptRecovered == 0 {
            #expect(isInOrder(batch.rows))
            try outbox.acknowledge(batch)
            sent += batch.rows.count
        }
        #expect(sent > 0 && outbox.current.recovery.corruptRecovered == 1)
        try bringAllBack(outbox)
        let numbers = try numbers(outbox)
        #expect(Set(numbers).count == numbers.count && numbers.max() == 2999)
        #expect(numbers.count > 3000 - 300 - sent - 4 * SegmentCoding.rowsMax)
    }

    @Test func goesOnBringingBackAfterARestart() throws {
        _ = try makeQueue(isLarge: true)
        // The application id: everything else is good.
        try spoil { bytes, _ in bytes.replaceSubrange(68..<72, with: [0, 0, 0, 0]) }
        var outbox = try Outbox.open(scratch)
        #expect(outbox.name != "" && outbox.parts.tracker == [1, 2, 3] && outbox.parts.source == [4])
        var rounds = 0
        while outbox.current.recovery.isSalvaging, rounds < 50 {
            _ = try outbox.commit(Commit(parts: .init(tracker: [UInt8(rounds)])))
            outbox.close()
            outbox = try Outbox.open(scratch)
            rounds += 1
        }
        #expect(rounds > 3)
        let numbers = try numbers(outbox)
        #expect(numbers.count > 1000 && numbers == Array(numbers[0]..<numbers.count + numbers[0]))
    }

    private var copies: [String] {
        Scratch.contents(of: scratch.directory).filter {
            $0.contains("corrupt") && !$0.contains("-wal") && !$0.contains("-shm")
        }.sorted().map { String($0.suffix(9)) }
    }

    /// All its rows are back: the newest two are kept for a report.
    @Test func keepsTwoCopiesWhoseRowsAreBack() throws {
        for round in 0..<5 {
            let outbox = try Outbox.open(scratch)
            try bringAllBack(outbox)
            try outbox.append(round * 10..<round * 10 + 10)
            try spoilHeader(outbox)
            outbox.close()
        }
        let outbox = try Outbox.open(scratch)
        try bringAllBack(outbox)
        _ = try outbox.commit(Commit())
        #expect(copies == ["corrupt-4", "corrupt-5"])
        #expect(try numbers(outbox) == Array(0..<50) && outbox.current.recovery.lostRows == 0)
    }

    /// Nothing of them was ever read, and the oldest go when all together are larger than the queue may be.
    @Test func keepsCopiesThatWereNotReadWhileThereIsSpace() throws {
        for round in 0..<12 {
            try Outbox.open(scratch).close()
            unlink(scratch.path + "-wal")
            Scratch.write([UInt8](repeating: UInt8(round + 1), count: 2000), to: scratch.path)
        }
        let outbox = try Outbox.open(scratch)
        try bringAllBack(outbox)
        #expect(copies.count == 12 && outbox.current.recovery.lostRows == 0)
        outbox.close()
        let small = try Outbox.open(scratch, maxBytes: 8000)
        for _ in 0..<12 { _ = try small.commit(Commit()) }
        #expect(copies == ["orrupt-12"])
        #expect(small.current.recovery.lostRows > 0)
    }

    /// The power may go between the two renames, or the file was cut off.
    @Test(arguments: [true, false]) func neverLosesALogWhoseDatabaseIsGone(isMoved: Bool) throws {
        let image = try makeQueue()
        if isMoved { rename(scratch.path, scratch.path + ".corrupt-1") } else { Scratch.write([], to: scratch.path) }
        try Outbox.open(scratch).close()
        #expect(Scratch.read(scratch.path + ".corrupt-1-wal") == image.log)
    }

    /// SQLite takes a frame that is not as it was written for the end of the log. The header, the first frame, one in the middle.
    @Test(arguments: [20, 700, 25_000]) func aLogThatEndsBeforeTheLastCommitIsKept(place: Int) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 200, by: 10) { try outbox.append(start..<start + 10) }
        var log = Scratch.read(scratch.path + "-wal")
        try #require(log.count > 25_000)
        log[place] ^= 0xFF
        let file = try #require(fopen(scratch.path + "-wal", "r+"))
        fseek(file, place, SEEK_SET)
        fputc(Int32(log[place]), file)
        fclose(file)
        outbox.letReadersIn()
        try outbox.append(200..<210)
        #expect(outbox.current.recovery.reason?.contains("ends before the last commit") == true)
        // Its checksums are written anew there.
        #expect(Scratch.read(scratch.path + ".corrupt-1-wal").count == log.count)
        // What follows in the log is found by itself.
        try bringAllBack(outbox)
        let numbers = try numbers(outbox)
        #expect(numbers.count >= 200 && Set(numbers).count == numbers.count, "\(numbers.count)")
    }

    /// Nobody knows how far the log of an earlier process has to reach, but what was flushed behind a wrong frame is there: in the
    /// header, in the first frame, in one in the middle, in its checksum.
    @Test(arguments: [20, 60, 700, 25_000, 32 + 40 * 536 + 17])
    func aLogThatWasChangedBeforeAStartIsKept(place: Int) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 200, by: 10) { try outbox.append(start..<start + 10) }
        try outbox.acknowledge(try #require(try outbox.form(30)))
        let batch = try #require(try outbox.form(20))
        try outbox.append(200..<210)
        outbox.close()
        // Else it would be known how far it reached.
        unlink(scratch.path + "-lock")
        var log = Scratch.read(scratch.path + "-wal")
        try #require(log.count > 25_000)
        #expect(try OutboxReader(path: scratch.path).verify() == [])
        log[place] ^= 0xFF
        Scratch.write(log, to: scratch.path + "-wal")
        if place > 1000 {
            let reader = try OutboxReader(path: scratch.path)
            #expect(try reader.verify().first?.contains("its log is damaged") == true)
            _ = try reader.oldest(1000)
            #expect(reader.hasPassedDamage)
        } else {
            let error = #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path) }
            #expect(error?.cause == .corrupt && error?.message.contains("its log is damaged") == true)
        }
        let next = try Outbox.open(scratch, random: [UInt8](repeating: 9, count: 16))
        #expect(next.current.recovery.reason?.contains("its log is damaged before at least") == true)
        // With the tables come the batches, and what the server has. The page that is wrong may have been of segments.
        if place < 1000 { #expect(next.inFlight() == [batch]) }
        try next.append(210..<220)
        try bringAllBack(next)
        let found = try rows(next)
        let numbers = found.map { Int($0.location.odometer) }
        #expect(Set(numbers).count == numbers.count && Set(numbers).isSubset(of: 30..<220))
        #expect(numbers.count >= 190 - (place < 1000 ? 0 : 20), "\(numbers.count)")
        #expect(
            found.allSatisfy {
                $0.location.trackable == "van-7" && $0.location.reason == "displacement" && $0.bootID == testBoot
            })
    }

    /// What belongs to one row has the number of a later one.
    @Test(arguments: ["geofence", "trip", "network", "settings"])
    func aWrongNumberInATableWithoutChecksumsKeepsNoRowOut(_ table: String) throws {
        var row = Location.sample(1)
        switch table {
        case "geofence": row = Location.awkward[0]
        case "trip": row = Location.awkward[1]
        case "network": row.network = NetworkContext(ssid: "yard", bssid: nil, ip: nil)
        default: row.settings = "interval = 10"
        }
        let first = try Outbox.open(scratch)
        _ = try first.commit(Commit(rows: [NewRow(row)]))
        first.close()
        try scratch.execute("UPDATE \(table) SET seq = \(2 + testLeap)")
        let next = try Outbox.open(scratch, random: testUUID)
        #expect(try next.commit(Commit(rows: [NewRow(row)])).lastSeq == 2 + testLeap)
        #expect(next.newest(1).first?.location == row)
    }

    /// A disk that has lost some writes shows frames of an earlier log there, which continue each other.
    @Test func nothingOfAnEarlierLogComesBack() throws {
        let first = try Outbox.open(scratch)
        for start in stride(from: 0, to: 400, by: 5) { try first.append(start..<start + 5) }
        first.close()
        let earlier = Scratch.read(scratch.path + "-wal")
        try Connection(path: scratch.path, access: .readWrite).execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let second = try Outbox.open(scratch)
        for start in stride(from: 400, to: 800, by: 5) { try second.append(start..<start + 5) }
        second.close()
        var log = Scratch.read(scratch.path + "-wal")
        let lost = 32 + 30 * LogFrame.size..<32 + 33 * LogFrame.size
        try #require(log.count > lost.upperBound + 10 * LogFrame.size && earlier.count > lost.upperBound)
        try #require(log[16..<24] != earlier[16..<24])
        log.replaceSubrange(lost, with: earlier[lost])
        Scratch.write(log, to: scratch.path + "-wal")
        try LogRepair.putBack(at: scratch.path, isPatient: false, medium: SystemMedium())
        let repaired = Scratch.read(scratch.path + "-wal")
        for frame in stride(from: lost.lowerBound, to: lost.upperBound, by: LogFrame.size) {
            let content = frame + LogFrame.headSize..<frame + LogFrame.size
            #expect(repaired[content] != earlier[content], "frame at \(frame)")
        }
    }

    /// A page that leads to others is as it was before: it leaves out rows that are sound, without an error.
    @Test(arguments: [0, 1, 2]) func rowsThatAnOlderPageLeavesOutAreFound(_ back: Int) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 210, by: 3) { try outbox.append(start..<start + 3) }
        outbox.close()
        var log = Scratch.read(scratch.path + "-wal")
        let frames = (0..<(log.count - 32) / LogFrame.size).map { 32 + $0 * LogFrame.size + LogFrame.headSize }
        let interior = frames.filter { log[$0] == 5 }
        let place = try #require(interior.dropLast(back).last)
        log[place + 300] ^= 1
        Scratch.write(log, to: scratch.path + "-wal")
        let next = try recovered()
        let found = try numbers(next)
        #expect(
            Set(found).count + next.current.recovery.missing == 210 && found.count == Set(found).count, "\(found.count)"
        )
        #expect(next.current.recovery.missing == 0)
    }

    /// The log has begun again, and of the first commit some sectors were written. The database has what the log had before.
    @Test(arguments: [1, 2, 3]) func aLogThatHadJustBegunAgainIsSound(lost sectors: Int) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 60, by: 5) { try outbox.append(start..<start + 5) }
        try #require(outbox.database).restartLog()
        let before = CrashImage(of: scratch.path)
        try outbox.append(60..<65)
        outbox.close()
        for part in ["-lock", "-shm"] { unlink(scratch.path + part) }
        var log = Scratch.read(scratch.path + "-wal")
        try #require(log.count == before.log.count && log[16..<24] != before.log[16..<24])
        log.replaceSubrange(0..<sectors * 512, with: before.log[0..<sectors * 512])
        Scratch.write(log, to: scratch.path + "-wal")
        Scratch.write(before.database, to: scratch.path)
        let next = try Outbox.open(scratch)
        #expect(next.current.recovery.corruptRecovered == 0 && next.current.rows == 60)
    }

    /// A log whose header is damaged names its frames by most of them, and any page number.
    @Test(
        arguments: [(0..<40, 0), (0..<512, 0), (0..<512, 0xFF), (0..<4096, 0), (16..<40, 0)] as [(Range<Int>, UInt8)])
    func framesBehindADamagedHeaderComeBack(_ range: Range<Int>, _ byte: UInt8) throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 300, by: 5) { try outbox.append(start..<start + 5) }
        outbox.close()
        unlink(scratch.path + "-lock")
        var log = Scratch.read(scratch.path + "-wal")
        log.replaceSubrange(range, with: repeatElement(byte, count: range.count))
        Scratch.write(log, to: scratch.path + "-wal")
        #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path).verify() }
        let next = try recovered()
        let found = try numbers(next)
        // The pages of the tables are in the first frames.
        #expect(found.suffix(200) == Array(100..<300)[...] && Set(found).count == found.count, "\(found.count)")
    }

    /// A command that only reads leaves the log to the daemon.
    @Test(arguments: [0, 1, 511]) func readingLeavesTheLogOfALostDatabase(bytes: Int) throws {
        try Outbox.open(scratch, rows: 30).close()
        truncate(scratch.path, off_t(bytes))
        let log = Scratch.read(scratch.path + "-wal")
        #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path).verify() }
        #expect(Scratch.read(scratch.path + "-wal") == log && !log.isEmpty)
        #expect(try numbers(recovered()) == Array(0..<30))
    }

    /// Until a person removes the link.
    @Test func aLinkToNothingLeavesTheLogWhereItIs() throws {
        try Outbox.open(scratch, rows: 30).close()
        rename(scratch.path, scratch.path + ".away")
        symlink(scratch.path + ".nowhere", scratch.path)
        #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        unlink(scratch.path)
        rename(scratch.path + ".away", scratch.path)
        #expect(try numbers(Outbox.open(scratch)) == Array(0..<30))
    }

    /// Batches of two endpoints have the same rows: those count once.
    @Test func rowsOfTwoBatchesAreMissedOnce() throws {
        let settings = EndpointSettings.both
        let outbox = try Outbox.open(scratch, settings)
        for start in stride(from: 0, to: 600, by: 30) { try outbox.append(start..<start + 30) }
        try outbox.acknowledge(try #require(try outbox.form(100, endpoint: "a")))
        _ = try outbox.form(100, endpoint: "a")
        _ = try outbox.form(100, endpoint: "b")
        outbox.close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        try spoilPage(of: "segment")
        // So that a start finds it.
        try scratch.execute("UPDATE state SET value = 2 WHERE name = 'rows'")
        let next = try Outbox.open(scratch, settings)
        try bringAllBack(next)
        let recovery = next.current.recovery
        #expect(recovery.corruptRecovered == 1 && recovery.missing > 0)
        let kept = try Set(numbers(next)).count
        #expect(recovery.missing == 600 - kept, "\(recovery.missing) of \(600 - kept)")
    }

    /// - Parameter run: of the last read that failed, see `FailedReads.run`.
    @Test func readsThatFailNowAndThenAreWaitedFor() {
        /// - Parameter last: see `FailedReads.run`; nil = no read of the place has succeeded since.
        func isLasting(runsOf length: Int, every minutes: Int64, last: Int? = nil) -> Bool {
            var reads = FailingReads()
            var now: Int64 = 0
            for number in 0..<100 {
                now += minutes * 60_000_000_000
                reads.failed(FailedReads(count: number, reason: EIO, run: 1 + number / length), at: now)
            }
            return reads.areLasting(FailedReads(count: 100, reason: EIO, run: last ?? 1 + 99 / length), at: now)
        }
        #expect(isLasting(runsOf: 100, every: 1))
        #expect(!isLasting(runsOf: 50, every: 1))
        #expect(!isLasting(runsOf: 100, every: 1, last: 0))
        #expect(!isLasting(runsOf: 100, every: 11))
    }

    /// Somebody removes the database between two runs, or a power cut leaves nothing of it; its log is sound.
    @Test(arguments: [nil, 0, 1, 100, 511])
    func aLogWithoutItsDatabaseIsReadByItself(bytes: Int?) throws {
        let first = try Outbox.open(scratch)
        for start in stride(from: 0, to: 300, by: 50) { try first.append(start..<start + 50) }
        try first.acknowledge(try #require(try first.form(40)))
        let batch = try #require(try first.form(20))
        first.close()
        loseDatabase(keeping: bytes)
        let next = try recovered()
        #expect(next.inFlight() == [batch])
        #expect(try numbers(next) == Array(40..<300) && next.current.depths[0].waiting == 240)
        #expect(next.current.recovery.lostRows == 0 && next.current.recovery.missing == 0)
        #expect(next.current.replacement.count == 0)
        #expect(next.current.recovery.reason == "\(scratch.path): lost, and its log is not")
    }

    /// What the log no longer had.
    @Test(arguments: [nil, 0, 511])
    func whatOnlyTheLostDatabaseHadIsMissed(bytes: Int?) throws {
        let first = try Outbox.open(scratch)
        for start in stride(from: 0, to: 300, by: 50) { try first.append(start..<start + 50) }
        first.close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let second = try Outbox.open(scratch)
        try second.append(300..<350)
        try second.append(350..<400)
        second.close()
        loseDatabase(keeping: bytes)
        let next = try recovered()
        #expect(try numbers(next) == Array(300..<400))
        // How many there were stood in the database.
        #expect(next.current.recovery.incomplete == [scratch.path + ".corrupt-1"])
    }

    @Test func aQueueThatWasRemovedIsNamed() throws {
        try Outbox.open(scratch, rows: 10, random: testUUID.reversed()).close()
        loseDatabase(keeping: nil)
        unlink(scratch.path + "-wal")
        let next = try Outbox.open(scratch)
        let words = try #require(next.current.replacement.words)
        #expect(words.contains("was removed while waypost was stopped, with all that was queued up to location 10"))
        let replaced = try next.append(10..<20).replacement
        #expect(replaced.count == 1)
        next.close()
        #expect(try Outbox.open(scratch).current.replacement.count == 0)
    }

    private func loseDatabase(keeping bytes: Int?) {
        if let bytes { truncate(scratch.path, off_t(bytes)) } else { unlink(scratch.path) }
    }

    /// Its tables no longer lead to the last rows, and the lock file says that there were some.
    @Test func rowsOfTheLastPageAreMissed() throws {
        let first = try Outbox.open(scratch)
        for start in stride(from: 0, to: 600, by: 30) { try first.append(start..<start + 30) }
        first.close()
        try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        let page = try Connection(path: scratch.path, access: .readWrite).integer(
            "SELECT pageno FROM dbstat WHERE name = 'segment' AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1")
        var bytes = Scratch.read(scratch.path)
        bytes.replaceSubrange(Int(page - 1) * 512..<Int(page) * 512, with: repeatElement(0, count: 512))
        Scratch.write(bytes, to: scratch.path)
        let next = try recovered()
        // It had two segments.
        #expect(try numbers(next) == Array(0..<540) && next.current.recovery.missing == 60)
    }

    /// The frame that is wrong is of the last commit, and it is known that this was flushed.
    @Test func theLastCommitOfAQueueThatWasClosedIsMissed() throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 100, by: 10) { try outbox.append(start..<start + 10) }
        let before = Scratch.read(scratch.path + "-wal")
        try outbox.append(100..<140)
        outbox.close()
        var log = Scratch.read(scratch.path + "-wal")
        log[before.count + 40] ^= 0xFF
        Scratch.write(log, to: scratch.path + "-wal")
        let next = try Outbox.open(scratch)
        #expect(next.current.recovery.corruptRecovered == 1)
        try bringAllBack(next)
        #expect(try numbers(next).count >= 100)
    }

    /// What a power cut leaves of the last commit is no damage, and does not stay: the next one may leave as much again.
    @Test func whatPowerCutsLeaveOfCommitsIsNoDamage() throws {
        var rows = 0
        for (round, count) in [60, 40, 20, 1].enumerated() {
            let outbox = try Outbox.open(scratch)
            #expect(outbox.current.recovery.corruptRecovered == 0 && outbox.current.rows == rows, "\(round)")
            try outbox.append(rows..<rows + 10)
            rows += 10
            let whole = Scratch.read(scratch.path + "-wal").count
            try outbox.append(1000..<1000 + count)
            outbox.close()
            unlink(scratch.path + "-lock")
            var log = Scratch.read(scratch.path + "-wal")
            try #require(log.count > whole)
            log[whole + 40] ^= 0xFF
            Scratch.write(log, to: scratch.path + "-wal")
        }
        let next = try Outbox.open(scratch)
        #expect(next.current.recovery.corruptRecovered == 0 && next.current.rows == rows)
    }

    /// Of a frame of an unflushed commit, the sector with the salts may be all that reached the medium.
    @Test func aFrameOfAnEarlierLogWithTheSaltsOfThisOneIsNoCommit() throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 150, by: 5) { try outbox.append(start..<start + 5) }
        try #require(outbox.database).restartLog()
        try outbox.append(150..<155)
        let before = CrashImage(of: scratch.path)
        try outbox.append(155..<255)
        outbox.close()
        for part in ["-lock", "-shm"] { unlink(scratch.path + part) }
        let after = CrashImage(of: scratch.path)
        var log = after.log
        let first = try #require(after.firstDifference(from: before))
        log[first + 40] ^= 0xFF
        // Where a commit of the earlier log ends.
        var place = log.count - LogFrame.size
        while !LogFrame(bytes: log[place..<place + LogFrame.size]).isCommit { place -= LogFrame.size }
        try #require(place > first + LogFrame.size && log[place + 8..<place + 16] != log[16..<24])
        log.replaceSubrange(place + 8..<place + 16, with: log[16..<24])
        Scratch.write(log, to: scratch.path + "-wal")
        let next = try Outbox.open(scratch)
        #expect(next.current.recovery.corruptRecovered == 0 && next.current.rows == 155)
    }

    /// The numbers that the missing rows had are not given to others, and it is said.
    @Test func anOlderCopyThatWasPutInPlaceIsSaid() throws {
        try Outbox.open(scratch, rows: 10).close()
        let old = CrashImage(of: scratch.path)
        let newer = try Outbox.open(scratch, rows: 100)
        let last = newer.current.lastSeq
        newer.close()
        old.write(to: scratch.path)
        let next = try Outbox.open(scratch, random: [UInt8](repeating: 0, count: 16))
        #expect(next.current.rows == 10 && next.current.recovery.corruptRecovered == 0)
        #expect(next.current.replacement.words?.contains("ends with location 10, and") == true)
        #expect(try next.append(10..<11).lastSeq > last)
        next.close()
        #expect(try Outbox.open(scratch).current.replacement.count == 0)
    }

    /// One table of names is damaged: the others count.
    @Test func rowsThatAreBroughtBackKeepTheNamesThatCanBeRead() throws {
        _ = try makeQueue()
        try spoil { overwrite(try root(of: "reason", $1), of: &$0) }
        let found = try rows(try recovered())
        #expect(found.count == 540)
        #expect(
            found.allSatisfy {
                $0.location.trackable == "van-7" && $0.location.reason == nil && $0.bootID == testBoot
            })
    }

    /// Where each new file is read as wrongly as the last one, no more are set aside for a while.
    @Test func aMediumThatReadsWronglyMakesFewCopies() throws {
        let outbox = try Outbox.open(scratch, rows: 10, worksWithoutDisk: true)
        for _ in 0..<6 {
            try spoilHeader(outbox)
            try outbox.append(0..<1)
        }
        #expect(copies.count == 2 && outbox.refusal?.cause == .corrupt)
        var pace = SetAsidePace()
        let minute: Int64 = 60_000_000_000
        var (now, times) = (minute, 0)
        while now < 24 * 60 * minute {
            if pace.mayBegin(at: now) {
                pace.begun(at: now)
                times += 1
            }
            now += minute
        }
        #expect((20...32).contains(times), "\(times)")
    }

    /// Others may copy the log back and delete it, or leave a part of it to be copied.
    @Test func aLogThatWasCopiedBackHasNotEndedEarly() throws {
        let outbox = try Outbox.open(scratch)
        for start in stride(from: 0, to: 3000, by: 10) {
            try outbox.append(start..<start + 10)
            guard start % 70 == 0 else { continue }
            outbox.letReadersIn()
            switch start / 70 % 4 {
            case 0: _ = try OutboxReader(path: scratch.path).rowCount()
            case 1: try scratch.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            case 2: try scratch.execute("PRAGMA wal_checkpoint(PASSIVE)")
            default: outbox.failed(OutboxError(.io, path: "", message: ""))
            }
        }
        #expect(outbox.current.recovery.corruptRecovered == 0 && outbox.current.rows == 3000)
    }

    private func setAside(_ numbers: Range<Int>) throws {
        let outbox = try Outbox.open(scratch)
        try outbox.append(numbers)
        outbox.close()
        for part in ["", "-wal"] { rename(scratch.path + part, scratch.path + ".corrupt-1" + part) }
        unlink(scratch.path + "-shm")
    }

    /// The power may go behind the renames: with nothing in their place, with an empty file, with tables and no plan.
    @Test(arguments: [nil, false, true])
    func bringsBackACopyThatNobodyPlannedFor(hasTables: Bool?) throws {
        try setAside(0..<300)
        if hasTables == true { _ = try Database(path: scratch.path) }
        if hasTables == false { Scratch.write([], to: scratch.path) }
        let again = try Outbox.open(scratch)
        #expect(again.current.recovery.corruptRecovered == 1 && again.current.recovery.isSalvaging)
        try bringAllBack(again)
        let found = try rows(again)
        #expect(found.map(\.location) == samples(0..<300))
        #expect(found.first!.seq == 301)
        again.close()
        // And only once.
        let later = try Outbox.open(scratch)
        #expect(later.current.recovery.corruptRecovered == 0 && !later.current.recovery.isSalvaging)
        #expect(try rows(later).count == 300)
    }

    /// Meanwhile another program put a backup in the place of the queue that was not finished, which was set aside as well.
    @Test func bringsBackEachCopyThatNobodyPlannedFor() throws {
        let other = try Scratch()
        let backup = try Outbox.open(other)
        try backup.append(300..<310)
        backup.close()
        try setAside(0..<300)
        for part in ["", "-wal"] { rename(other.path + part, scratch.path + ".corrupt-2" + part) }
        _ = try Database(path: scratch.path)
        let again = try Outbox.open(scratch)
        try bringAllBack(again)
        #expect(try numbers(again).sorted() == Array(0..<310))
    }

    /// A disk that is full, say, refused the new queue once the damaged one was set aside.
    @Test func remembersTheCopyWhenItsReplacementFailedOnce() throws {
        try setAside(0..<300)
        _ = try Database(path: scratch.path)
        let queue = try QueueOpening(
            settings: OutboxSettings(path: scratch.path), endpoints: [.test()], newUUID: testUUID, lastSeq: 280,
            damage: OutboxError(.corrupt, path: scratch.path, message: "")
        ).open()
        #expect(queue.plan.parts == [SalvagePlan.Part(copy: 1, next: 0, through: 280)])
    }

    /// A backup for another has no cursor of its own.
    @Test(.bug(id: 11)) func whatIsBroughtBackWaitsForAnEndpointThatHasASpare() throws {
        let outbox = try Outbox.open(scratch, [.test(), .spare], rows: 100)
        try spoilHeader(outbox)
        _ = try outbox.append(100..<101)
        try bringAllBack(outbox)
        #expect(outbox.current.depths.map(\.waiting) == [101, 0])
    }

    /// Only a queue that is short of room drops them.
    @Test func rowsThatOnlyAnOptionalEndpointWaitsForComeBack() throws {
        var settings = EndpointSettings.both
        let first = try Outbox.open(scratch, settings, rows: 100)
        try first.acknowledge(try #require(try first.form(20, endpoint: settings[0].name)))
        try spoilHeader(first)
        first.close()
        settings[1].required = false
        let outbox = try Outbox.open(scratch, settings)
        try bringAllBack(outbox)
        let depth = outbox.current.depths[1]
        #expect(depth.waiting == 100 && depth.finishedUnsent == [:])
        #expect(outbox.current.recovery.missing == 0 && outbox.current.recovery.incomplete == [])
    }

    /// A queue of this many rows is damaged, and its endpoint is for another device at the next start.
    private func reboundAfterDamage(_ rows: Int) throws -> EndpointSettings {
        var settings = EndpointSettings.test()
        let outbox = try Outbox.open(scratch, [settings])
        try outbox.append(0..<rows)
        try spoilHeader(outbox)
        outbox.close()
        settings.device = "van-8"
        return settings
    }

    /// Rows of another device wait for an operator, wherever they lie. No order decides on half of them.
    @Test(.bug(id: 11)) func whatIsBroughtBackKeepsItsBinding() throws {
        let settings = try reboundAfterDamage(300)
        let outbox = try Outbox.open(scratch, [settings])
        #expect(outbox.current.depths[0].state == .rebind && outbox.current.depths[0].boundTo != nil)
        _ = try outbox.commit(Commit())
        let early = try outbox.commit(Commit(orders: [.drop(endpoint: "main")]))
        guard case .refused = early.orders.first else { return _ = Issue.record("\(early.orders)") }
        try bringAllBack(outbox)
        #expect(try outbox.form(9) == nil)
        outbox.close()
        let second = try Outbox.open(scratch, [settings])
        try second.append(300..<301)
        #expect(second.current.depths[0].waiting == 301)
        let depth = try second.commit(Commit(orders: [.drop(endpoint: "main")])).depths[0]
        #expect(depth.state == .active && depth.waiting == 1 && depth.finishedUnsent["dropped"] == 300)
    }

    /// Until all of it is there it is not known whether any of it is for this endpoint.
    @Test(.bug(id: 11)) func whoHadEverythingIsHeldOnlyWhileRowsComeBack() throws {
        var settings = EndpointSettings.both
        let first = try Outbox.open(scratch, settings, rows: 600)
        try first.acknowledge(try #require(try first.form(600, endpoint: "b")))
        try spoilHeader(first)
        _ = try first.commit(Commit(parts: .init(tracker: [1])))
        #expect(first.current.recovery.isSalvaging)
        first.close()
        settings[1].device = "van-8"
        let outbox = try Outbox.open(scratch, settings)
        #expect(outbox.current.depths.map(\.state) == [.active, .rebind])
        // Nor does more damage change that.
        try spoilHeader(outbox)
        var released = try outbox.commit(Commit(parts: .init(tracker: [2]))).released
        #expect(released == [] && outbox.current.depths.map(\.state) == [.active, .rebind])
        try outbox.append(600..<601)
        while outbox.current.recovery.isSalvaging {
            released += try outbox.commit(Commit(parts: .init(tracker: [2]))).released
        }
        released += try outbox.commit(Commit(parts: .init(tracker: [3]))).released
        #expect(released == ["b"])
        #expect(outbox.current.depths.map(\.state) == [.active, .active])
        #expect(outbox.current.depths.map(\.waiting) == [601, 1])
    }

    /// Nothing was accepted at the address before: once all is there, it goes to the new one.
    @Test func whatIsBroughtBackGoesToAnotherAddress() throws {
        let settings = EndpointSettings.test(baseURL: "http://elsewhere")
        let before = try Outbox.open(scratch, rows: 300)
        let batch = try #require(try before.form(9))
        try spoilHeader(before)
        before.close()
        let outbox = try Outbox.open(scratch, [settings])
        #expect(outbox.current.depths[0].state == .rebind)
        var released: [String] = []
        while outbox.current.recovery.isSalvaging {
            released += try outbox.commit(Commit(parts: .init(tracker: [2]))).released
        }
        released += try outbox.commit(Commit(parts: .init(tracker: [3]))).released
        let depth = outbox.current.depths[0]
        #expect(released == ["main"] && depth.state == .active && depth.isMoved)
        #expect(depth.waiting + depth.inFlight == 300 && outbox.inFlight().map(\.id) == [batch.id + "-g2"])
    }

    /// Only the last step of bringing rows back reads them again, and their endpoint is held until it is done.
    @Test(.bug(id: 11)) func damageThatOnlyTheRecoveryMeetsIsNotTriedForEver() throws {
        let settings = try reboundAfterDamage(600)
        let before = try Outbox.open(scratch, [settings])
        while before.current.recovery.salvaged < 500 { _ = try before.commit(Commit(parts: .init(tracker: [1]))) }
        before.close()
        try spoilPage(of: "segment")
        let outbox = try Outbox.open(scratch, [settings])
        try bringAllBack(outbox)
        #expect(outbox.current.recovery.corruptRecovered == 1)
        #expect(outbox.current.depths[0].state == .rebind && outbox.current.depths[0].waiting > 400)
    }

    @Test(.bug(id: 11), arguments: [Int64.min, -1, 0, .max])
    func batchesThatCannotBeAreNotGoneBy(first: Int64) throws {
        let before = try Outbox.open(scratch, rows: 10)
        _ = try before.form(5)
        try spoilHeader(before)
        before.close()
        try scratch.execute("UPDATE batch SET first = \(first), last = \(first)")
        // That cannot be read from a copy in a sound way: all of it comes back, or what is behind the cursor.
        let next = try Outbox.open(scratch)
        try bringAllBack(next)
        #expect([5, 10].contains(next.current.depths[0].waiting))
    }

    @Test(.bug(id: 11)) func noMorePagesAreFreeThanThereAre() throws {
        try Outbox.open(scratch).append(0..<10)
        try spoil { bytes, _ in bytes.replaceSubrange(36..<40, with: [0x7F, 0, 0, 0]) }
        #expect(try Outbox.open(scratch).append(10..<11).bytes >= 0)
    }

    private func root(of table: String, _ connection: Connection) throws -> Int64 {
        try connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'")
    }

    /// Damages a leaf in the middle of a table.
    private func spoilPage(of table: String) throws {
        try spoil { bytes, connection in
            let page = (Int(try root(of: table, connection)) - 1) * 512
            func integer(at place: Int, _ count: Int) -> Int {
                bytes[page + place..<page + place + count].reduce(0) { $0 << 8 | Int($1) }
            }
            let cells = integer(at: 3, 2)
            overwrite(Int64(integer(at: integer(at: 12 + cells / 2 * 2, 2), 4)), of: &bytes)
        }
    }

    @Test func eachThingThatIsWrongHasALine() throws {
        _ = try makeQueue()
        var page: Int64 = 0
        try spoil { bytes, connection in
            page = try root(of: "segment", connection)
            overwrite(page, of: &bytes)
        }
        let problems = try OutboxReader(path: scratch.path).verify()
        #expect(problems.count > 5 && problems[0].hasPrefix("Page \(page): "), "\(problems)")
        #expect(problems.allSatisfy { !$0.contains("\n") })
    }

    /// A segment is believed only as a whole: one that seems to begin elsewhere must not end the search.
    @Test(.bug(id: 16), arguments: ["first = 1 << 50", "first = 1", "rows = 0", "rows = 1 << 40", "published = 0"])
    func aColumnOfASegmentThatIsWrongIsDamage(_ change: String) throws {
        _ = try makeQueue()
        let connection = try Connection(path: scratch.path, access: .readWrite)
        let (last, rows) = try #require(
            try connection.rows("SELECT last, rows FROM segment ORDER BY last LIMIT 1 OFFSET 3") {
                ($0.integer(0), Int($0.integer(1)))
            }.first)
        try connection.execute("UPDATE segment SET \(change) WHERE last = \(last)")
        let problems = try OutboxReader(path: scratch.path).verify()
        #expect(problems.count == 1 && problems[0].contains("to \(last) is damaged"), "\(problems)")
        let outbox = try Outbox.open(scratch)
        while let batch = try outbox.form(100), outbox.current.recovery.corruptRecovered == 0 {
            try outbox.acknowledge(batch)
        }
        #expect(outbox.current.recovery.corruptRecovered == 1)
        try bringAllBack(outbox)
        let numbers = try numbers(outbox)
        #expect(numbers.max() == 599 && Set(numbers).count == numbers.count)
        #expect(numbers.count >= 600 - Int(numbers[0]) - rows)
    }

    /// Steps that grow would go from one damaged segment to another over all of these.
    @Test(.bug(id: 16)) func whatLiesBetweenDamagedSegmentsComesBack() throws {
        let before = try Outbox.open(scratch)
        for start in stride(from: 0, to: 640, by: 16) { try before.append(start..<start + 16) }
        try spoilHeader(before)
        before.close()
        try scratch.execute(
            "UPDATE segment SET data = zeroblob(8) WHERE last / 16 % 4 <> 3; PRAGMA wal_checkpoint(TRUNCATE)")
        let outbox = try Outbox.open(scratch)
        try bringAllBack(outbox)
        #expect(try numbers(outbox) == (0..<640).filter { $0 / 16 % 4 == 2 })
    }

    /// A file system that lost its end, or a copy that was broken off.
    @Test(.bug(id: 16), arguments: [1, 20]) func aFileThatWasCutShortGivesWhatIsLeft(pages: Int) throws {
        _ = try makeQueue(isLarge: true)
        let whole = try OutboxReader(path: scratch.path).oldest(100_000).map { Int($0.location.odometer) }
        try spoil { bytes, connection in
            // Not what it has in advance.
            let used = Int(try connection.integer("SELECT max(pageno) FROM dbstat WHERE name = 'segment'"))
            bytes.removeSubrange((used - pages) * 512..<bytes.count)
        }
        let found = try numbers(try recovered())
        #expect(found == found.sorted() && Set(found).isStrictSubset(of: whole))
        #expect(found.count > whole.count - (pages + 2) * SegmentCoding.rowsMax, "\(found.count) of \(whole.count)")
    }

    /// The names of later tables are gone, those of earlier ones count.
    @Test(.bug(id: 16)) func aSchemaThatIsReadInPartGivesWhatItNames() throws {
        _ = try makeQueue()
        try spoil { bytes, connection in
            let last = try connection.integer(
                "SELECT pageno FROM dbstat WHERE name = 'sqlite_schema' AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1"
            )
            overwrite(last, of: &bytes)
        }
        #expect(try Outbox.open(scratch).parts.tracker == [1, 2, 3])
    }

    /// What comes back takes no more room than it did.
    @Test(.bug(id: 16)) func rowsThatAreBroughtBackBecomeSegments() throws {
        _ = try makeQueue(isLarge: true)
        func size() throws -> Int64 {
            try Connection(path: scratch.path, access: .readOnly).integer("SELECT sum(length(data)) FROM segment")
        }
        let before = try size()
        try spoil { bytes, _ in bytes.replaceSubrange(68..<72, with: [0, 0, 0, 0]) }
        let outbox = try Outbox.open(scratch)
        try bringAllBack(outbox)
        let after = try size()
        #expect(after < before * 5 / 4, "\(before) bytes became \(after)")
    }

    /// It has no rows that could be held.
    @Test(.bug(id: 11)) func aSpareIsNotHeldForAnOldBinding() throws {
        var spare = EndpointSettings.spare
        let before = try Outbox.open(scratch, [.test(), spare], rows: 600)
        try spoilHeader(before)
        _ = try before.commit(Commit(parts: .init(tracker: [1])))
        before.close()
        spare.device = "van-8"
        let outbox = try Outbox.open(scratch, [.test(), spare])
        #expect(outbox.current.recovery.isSalvaging)
        #expect(outbox.current.depths.map(\.state) == [.active, .active])
    }

    /// The disk stored nothing that was accepted while it refused, and is damaged when it works again.
    @Test(.bug(id: 11)) func whatWasAcceptedWhileTheDiskRefusedIsNotBroughtBack() throws {
        let outbox = try Outbox.open(scratch, rows: 100, worksWithoutDisk: true)
        try outbox.beginInMemory(OutboxError(.io, path: scratch.path, message: "made up"))
        let batch = try #require(try outbox.keep(Commit(forms: [.of(60)])).formed.first)
        let answer = BatchAnswer(endpoint: "main", batchID: batch.id)
        let next = try #require(try outbox.keep(Commit(answers: [answer], forms: [.of(60)])).formed.first)
        #expect(next.rows.count == 40)
        try spoilHeader(outbox)
        let reply = try outbox.commit(Commit(parts: .init(tracker: [1])))
        #expect(reply.refusal == nil && reply.dissolved == [])
        #expect(outbox.inFlight() == [next])
        try bringAllBack(outbox)
        #expect(try numbers(outbox) == Array(60..<100))
        #expect(outbox.current.depths[0].finishedUnsent == [:])
    }

    @Test(.bug(id: 11)) func whatTheCommitThatMeetsTheDamageAcceptsIsNotBroughtBack() throws {
        let settings = EndpointSettings.both
        let outbox = try Outbox.open(scratch, settings, rows: 100)
        let batch = try #require(try outbox.form(60, endpoint: "a"))
        let other = try #require(try outbox.form(30, endpoint: "b"))
        try spoilHeader(outbox)
        let again = Set(batch.rows[..<10].map(\.seq))
        let reply = try outbox.acknowledge(batch, .partly(refused: [:], again: again))
        #expect(reply.dissolved == [] && outbox.inFlight().contains(other))
        try bringAllBack(outbox)
        #expect(outbox.current.depths.map(\.waiting) == [40, 70])
        #expect(outbox.current.depths.map(\.inFlight) == [10, 30])
    }

    /// The server may have stored it: it goes out again with the same rows under the same id.
    @Test(arguments: [false, true]) func aBatchKeepsItsIDWhenTheFileIsSetAside(restarts: Bool) throws {
        var outbox = try Outbox.open(scratch, rows: 600)
        let batch = try #require(try outbox.form(30))
        try spoilHeader(outbox)
        if restarts {
            outbox.close()
            outbox = try Outbox.open(scratch, random: [UInt8](repeating: 3, count: 16))
        }
        let reply = try outbox.commit(Commit(parts: .init(tracker: [1])))
        #expect(reply.recovery.corruptRecovered == 1 && reply.dissolved == [] && outbox.inFlight() == [batch])
        if restarts {
            // What was kept is known from the plan alone.
            outbox.close()
            outbox = try Outbox.open(scratch, random: [UInt8](repeating: 4, count: 16))
        }
        try bringAllBack(outbox)
        #expect(try numbers(outbox) == Array(0..<600))
        #expect(try outbox.acknowledge(batch).depths[0].waiting == 570)
        #expect(try numbers(outbox) == Array(30..<600))
    }

    /// Rows are sent ahead of the cursor while others cannot be read: then they are in a batch as well.
    @Test(.bug(id: 11)) func whatIsInFlightAheadOfTheCursorComesBack() throws {
        let before = try Outbox.open(scratch, rows: 10)
        _ = try before.form(5)
        before.close()
        try scratch.execute(
            "UPDATE endpoint SET formed = 0; INSERT INTO ahead (endpoint, first, last) VALUES (1, 1, 5), (1, 9, 10)",
            changing: [.endpoint, .ahead])
        let outbox = try Outbox.open(scratch)
        #expect(outbox.current.depths[0].inFlight == 5)
        try spoilHeader(outbox)
        // After a restart only the copy has it.
        outbox.close()
        let next = try Outbox.open(scratch)
        try bringAllBack(next)
        #expect(next.current.depths[0].waiting == 3 && next.current.depths[0].inFlight == 5)
        let endpoint = try #require(outbox.ledger.endpoints.first)
        #expect((1...12).filter(endpoint.hasHad) == [9, 10])
    }

    /// The older half of a batch is on its way, and the other one was refused in part. The quarantine stays in the copy.
    @Test(.bug(id: 11)) func onlyWhatAnEndpointNeedsComesBack() throws {
        let settings = EndpointSettings.both
        let outbox = try Outbox.open(scratch, settings, rows: 100)
        try outbox.acknowledge(try #require(try outbox.form(100, endpoint: "b")))
        try outbox.acknowledge(try #require(try outbox.form(20, endpoint: "a")), .split)
        let halves = outbox.inFlight()
        #expect(halves.map(\.rows.count) == [10, 10])
        let refused = halves[1].rows[..<4].map { ($0.seq, Refusal(reason: "made up")) }
        try outbox.acknowledge(halves[1], .partly(refused: Dictionary(uniqueKeysWithValues: refused), again: []))
        try spoilHeader(outbox)
        try bringAllBack(outbox)
        #expect(outbox.current.recovery.salvaged == 80)
        #expect(outbox.current.depths.map(\.waiting) == [80, 0] && outbox.inFlight() == [halves[0]])
    }

    /// An endpoint sends rows ahead of its cursor, and others are on their way.
    @Test(.bug(id: 11)) func whatWasSentAheadIsNotBroughtBack() throws {
        let settings = EndpointSettings.both
        let before = try Outbox.open(scratch, settings, rows: 100)
        _ = try before.form(10, endpoint: "a")
        before.close()
        try scratch.execute("INSERT INTO ahead (endpoint, first, last) VALUES (1, 31, 50)", changing: [.ahead])
        let next = try spoiledAndRecovered(settings)
        #expect(next.current.depths.map(\.waiting) == [70, 100] && next.current.depths[0].inFlight == 10)
    }

    /// What was brought back once is noted row by row.
    @Test(.bug(id: 11)) func damageAfterDamageRepeatsNothing() throws {
        let settings = EndpointSettings.both
        let first = try Outbox.open(scratch, settings, rows: 100)
        try first.acknowledge(try #require(try first.form(100, endpoint: "b")))
        first.close()
        for _ in 0..<2 {
            let next = try spoiledAndRecovered(settings)
            #expect(next.current.depths.map(\.waiting) == [100, 0])
            next.close()
        }
    }

    /// The damage is in the table of endpoints.
    @Test(.bug(id: 11)) func whatIsHeldStaysHeldWhateverIsDamaged() throws {
        var settings = EndpointSettings.test()
        try Outbox.open(scratch, [settings], rows: 100).close()
        settings.device = "van-8"
        let outbox = try Outbox.open(scratch, [settings])
        #expect(outbox.current.depths[0].state == .rebind)
        outbox.failed(OutboxError(.io, path: "", message: ""))
        try scratch.execute("DROP TABLE endpoint")
        try outbox.append(100..<101)
        try bringAllBack(outbox)
        #expect(outbox.current.depths[0].state == .rebind && outbox.current.depths[0].waiting == 101)
        #expect(try outbox.form(9) == nil)
    }

    /// The file was set aside by a commit that failed, and the disk refused from then on.
    @Test(.bug(id: 11)) func aCopyThatWasSetAsideInVainIsReadAllTheSame() {
        let before = SalvagePlan(parts: [.init(copy: 1, next: 20, through: 90)])
        let disk = SalvagePlan(parts: [.init(copy: 1, next: 70, through: 90), .init(copy: 2, next: 0, through: 900)])
        #expect(before.adding(disk).parts == [.init(copy: 1, next: 20, through: 90), disk.parts[1]])
    }

    /// The commit that brought rows back was stored, although the disk called it failed, and then refuses.
    @Test(.bug(id: 11)) func whatTheDiskDisownsIsBroughtBackOnce() throws {
        let first = try Outbox.open(scratch, rows: 600)
        try spoilHeader(first)
        #expect(try first.append(600..<601).recovery.salvaged == 250)
        first.close()
        let stored = try scratch.image(after: {
            let second = try Outbox.open(scratch)
            _ = try second.commit(Commit())
            return second
        })
        let outbox = try Outbox.open(scratch, worksWithoutDisk: true)
        try outbox.beginInMemory(OutboxError(.io, path: "", message: "made up"))
        try outbox.keep(Commit(rows: [NewRow(.sample(601))]))
        stored.write(to: scratch.path)
        try bringAllBack(outbox)
        #expect(try numbers(outbox).sorted() == Array(0...601))
    }

    /// Another program has the copy open, or its sectors can be read a moment later.
    @Test(.bug(id: 11)) func aCopyThatCannotBeReadJustNowIsReadLater() throws {
        let outbox = try Outbox.open(scratch, rows: 600)
        try spoilHeader(outbox)
        #expect(try outbox.append(600..<601).recovery.salvaged == 250)
        outbox.salvaging.closeReader()
        do {
            let other = try Connection(path: scratch.path + ".corrupt-1", access: .readWrite)
            try other.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
            #expect(try outbox.append(601..<602).recovery.nextStepIn == .seconds(60))
            #expect(outbox.current.recovery.salvaged == 250)
            try other.execute("ROLLBACK")
        }
        for number in 602..<605 { try outbox.append(number..<number + 1) }
        try bringAllBack(outbox)
        #expect(try numbers(outbox).sorted() == Array(0..<605))
    }

    /// The copy takes the room that its rows need.
    @Test(.bug(id: 11)) func aFullDiskDelaysWhatIsBroughtBack() throws {
        let outbox = try Outbox.open(scratch, rows: 6000)
        try spoilHeader(outbox)
        try outbox.append(6000..<6001)
        let database = try #require(outbox.database)
        try database.connection.execute("PRAGMA max_page_count = 1")
        for number in 0..<20 { _ = try outbox.commit(Commit(parts: .init(tracker: [UInt8(number)]))) }
        let recovery = outbox.current.recovery
        #expect(recovery.isSalvaging && (250..<6000).contains(recovery.salvaged), "\(recovery)")
        try database.connection.execute("PRAGMA max_page_count = 100000")
        try bringAllBack(outbox)
        #expect(try rows(outbox).count == 6001)
    }

    /// The next run meets the damage.
    private func spoiledAndRecovered(_ endpoints: [EndpointSettings]) throws -> Outbox {
        let outbox = try Outbox.open(scratch, endpoints)
        try spoilHeader(outbox)
        outbox.close()
        let next = try Outbox.open(scratch, endpoints)
        try bringAllBack(next)
        return next
    }

    /// While it runs.
    private func spoilHeader(_ outbox: Outbox) throws {
        outbox.failed(OutboxError(.io, path: "", message: ""))
        try scratch.execute(
            "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA application_id = 5; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    @Test func doesNotBringBackWhatAnEndpointHasAlready() throws {
        let outbox = try Outbox.open(scratch, rows: 100)
        try outbox.acknowledge(try #require(try outbox.form(60)))
        try spoilHeader(outbox)
        _ = try outbox.append(100..<101)
        try bringAllBack(outbox)
        let found = try rows(outbox)
        let expected: [Int] = [100] + Array(60..<100)
        #expect(found.map { Int($0.location.odometer) } == expected)
        #expect(outbox.current.recovery.inversions == 1)
        #expect(found.first!.seq == 101)
    }
}

extension Location {
    /// The odometer shows which one it is.
    static func numbered(_ number: Int) -> Location {
        var location = Location.sample(number, event: number % 40 == 7 ? .geofence : .none)
        if location.event == .geofence {
            location.geofence = GeofenceCrossing(id: "f-\(number)", name: "Depot", action: .enter)
        }
        return location
    }
}
