import CSimDisk
import Delivery
import Profiles
import Queue
import Synchronization
import Testing
import WaypostCore

@testable import Simworld

extension SimulatedDiskTests {
    /// A read that fails says nothing about the file, wherever it happens.
    @Suite(.serialized) struct FailedReadTests {
        private let path = "/sim/outbox.db"

        /// Boot clock, nanoseconds.
        private final class Clock: Sendable {
            let now = Mutex<Int64>(0)

            func wait(hours: Double) { now.withLock { $0 += Int64(hours * 3_600_000_000_000) } }
        }

        private func open(
            life: UInt8 = 9, _ clock: Clock = Clock(), endpoints: [String] = ["main"], worksWithoutDisk: Bool = true
        ) throws(OutboxError) -> Outbox {
            try Outbox(
                OutboxSettings(path: path),
                endpoints: endpoints.map { EndpointSettings(name: $0, baseURL: "http://a", device: "d") },
                bootID: nil, newUUID: [UInt8](repeating: life, count: 16), worksWithoutDisk: worksWithoutDisk,
                locksExclusively: true,
                medium: SimulatedMedium { clock.now.withLock { $0 } })
        }

        /// A page of rows in the middle of the queue, which nobody has open, from 1 on.
        private func middlePage() throws -> Int {
            let connection = try #require(Handle(path))
            try #require(connection.run("PRAGMA wal_checkpoint(TRUNCATE)"))
            let root = try #require(connection.integer("SELECT rootpage FROM sqlite_schema WHERE name = 'segment'"))
            connection.close()
            let bytes = contents
            func integer(at place: Int, _ count: Int) -> Int {
                bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
            }
            // The page that a cell of the first one leads to: https://www.sqlite.org/fileformat2.html
            let start = (root - 1) * 512
            try #require(bytes[start] == 5 && integer(at: start + 3, 2) > 1)
            return integer(at: start + integer(at: start + 12 + 2, 2), 4)
        }

        private var contents: [UInt8] {
            Array(UnsafeBufferPointer(start: simdisk_contents(path), count: Int(simdisk_size(path))))
        }

        /// 400 rows, by a process that has ended.
        private func writeQueue(_ clock: Clock) throws {
            let before = try open(life: 9, clock)
            for start in stride(from: 0, to: 400, by: 50) {
                _ = try before.commit(Commit(rows: rows(start..<start + 50)))
            }
            before.close()
            simdisk_kill()
        }

        private func spoil() throws {
            let page = try middlePage()
            var bytes = contents
            bytes.replaceSubrange((page - 1) * 512..<page * 512, with: [UInt8](repeating: 0xAA, count: 512))
            simdisk_plant(path, bytes, Int64(bytes.count))
        }

        /// It would keep the queue in memory, and what waits from being sent, for ever.
        @Test func aPageThatCannotBeReadIsLeftBehindAfterAnHour() throws {
            simdisk_reset(1)
            let clock = Clock()
            try writeQueue(clock)
            simdisk_wear(path, Int64(try middlePage() - 1), 1_000_000)
            let outbox = try open(life: 8, clock)
            var sent: Set<Double> = []
            var recoveredAt: Int?
            for minute in 0..<180 {
                clock.wait(hours: 1.0 / 60)
                var commit = Commit(forms: [FormRequest(endpoint: "main", limit: 50, sentMs: nil)])
                commit.answers = outbox.inFlight().map { BatchAnswer(endpoint: "main", batchID: $0.id) }
                sent.formUnion(outbox.inFlight().flatMap { $0.rows.map(\.location.odometer) })
                let reply = try outbox.commit(commit)
                if reply.recovery.corruptRecovered > 0, recoveredAt == nil { recoveredAt = minute }
            }
            let recovery = outbox.current.recovery
            #expect((58...90).contains(recoveredAt ?? 0) && outbox.refusal == nil, "\(String(describing: recoveredAt))")
            // The page has the beginnings of two segments.
            #expect(sent.count == 300 && recovery.lostRows == 0 && recovery.missing == 100, "\(sent.count) \(recovery)")
            #expect(recovery.incomplete == [path + ".corrupt-1"] && recovery.corruptRecovered == 1)
        }

        /// It is read well between: nothing is wrong with what it holds.
        @Test func aPageThatIsReadNowAndThenIsWaitedFor() throws {
            simdisk_reset(1)
            let clock = Clock()
            try writeQueue(clock)
            let connection = try #require(Handle(path))
            try #require(connection.run("PRAGMA wal_checkpoint(TRUNCATE)"))
            connection.close()
            // One that says which tables there are. It is read by each opening, and never written.
            let page = contents[108..<112].reduce(0) { $0 << 8 | Int64($1) }
            let outbox = try open(life: 8, clock)
            simdisk_wear(path, page - 1, 900_000)
            var refusals = 0
            for number in 400..<700 {
                clock.wait(hours: 1.0 / 60)
                outbox.readerCame()
                let reply = try outbox.commit(Commit(rows: rows(number..<number + 1)))
                refusals += reply.refusal == nil ? 0 : 1
                #expect(reply.recovery.corruptRecovered == 0)
            }
            #expect((150..<300).contains(refusals), "\(refusals)")
            simdisk_wear(path, page - 1, 0)
            let reply = try outbox.commit(Commit(forms: [FormRequest(endpoint: "main", limit: 999, sentMs: nil)]))
            #expect(reply.refusal == nil && reply.formed.first?.rows.count == 700)
        }

        /// What is missing in a damaged queue is given up once it was read as wrong three times, an hour apart, by two processes.
        @Test func givesUpWhatIsReadAsWrongAgainAndAgain() throws {
            simdisk_reset(1)
            let clock = Clock()
            var taken: [Int64: Int64] = [:]
            func takeAll(_ outbox: Outbox) throws -> [Location] {
                var gaps: [Location] = []
                for _ in 0..<20 {
                    var commit = Commit(forms: [FormRequest(endpoint: "main", limit: 50, sentMs: nil)])
                    commit.ages = AgeReference(now: .zero, started: .zero, trusted: UTCTime(milliseconds: 1234))
                    let reply = try outbox.commit(commit)
                    guard let batch = reply.formed.first else { continue }
                    for row in batch.rows where row.location.event == .none {
                        #expect(taken.updateValue(row.seq, forKey: row.location.time.milliseconds) == nil)
                    }
                    gaps += batch.rows.map(\.location).filter { $0.event == .gap }
                    _ = try outbox.commit(Commit(answers: [BatchAnswer(endpoint: "main", batchID: batch.id)]))
                }
                return gaps
            }
            try writeQueue(clock)
            try spoil()
            let first = try open(life: 9, clock)
            #expect(try takeAll(first) == [])
            var recovery = first.current.recovery
            #expect(recovery.corruptRecovered == 1 && !recovery.isSalvaging && (200..<400).contains(taken.count))
            #expect(recovery.nextStepIn == .seconds(3600))
            for _ in 0..<4 {
                clock.wait(hours: 1.1)
                #expect(try takeAll(first) == [] && first.current.recovery.lostRows == 0)
            }
            #expect((recovery.nextStepIn ?? .zero) > .seconds(1800))
            first.close()
            simdisk_kill()
            let second = try open(life: 8, clock)
            #expect(try takeAll(second) == [])
            clock.wait(hours: 0.5)
            #expect(try takeAll(second) == [] && second.current.recovery.lostRows == 0)
            clock.wait(hours: 0.6)
            let gaps = try takeAll(second)
            recovery = second.current.recovery
            #expect(recovery.lostRows == 400 - taken.count && recovery.nextStepIn == nil, "\(recovery), \(taken.count)")
            #expect(gaps.map(\.reason) == ["lost"])
            second.close()
            simdisk_kill()
            let third = try open(life: 7, clock)
            #expect(third.current.recovery.lostRows == 400 - taken.count)
            #expect(third.current.recovery.lostAt == UTCTime(milliseconds: 1234))
            third.close()
        }

        /// The disk is well again soon: what of a copy could not be read comes back within a minute, and not within an hour.
        @Test(arguments: 1...5 as ClosedRange<UInt64>) func readsACopyAgainSoonAfterReadsOfItFailed(seed: UInt64) throws
        {
            simdisk_reset(seed)
            let clock = Clock()
            try writeQueue(clock)
            let connection = try #require(Handle(path))
            try #require(connection.run("PRAGMA application_id = 5; PRAGMA wal_checkpoint(TRUNCATE)"))
            connection.close()
            let page = try middlePage()
            let outbox = try open(clock)
            #expect(outbox.current.recovery.corruptRecovered == 1)
            // It is read by no try, until all that is to be read has been.
            simdisk_wear(path + ".corrupt-1", Int64(page - 1), 1_000_000)
            for _ in 0..<100 { _ = try outbox.commit(Commit(parts: .init(tracker: [1]))) }
            #expect(outbox.current.recovery.missing > 0)
            simdisk_wear(path + ".corrupt-1", Int64(page - 1), 0)
            for _ in 0..<60 {
                clock.wait(hours: 1.0 / 3600)
                _ = try outbox.commit(Commit(parts: .init(tracker: [2])))
            }
            let rows = try outbox.commit(Commit(forms: [FormRequest(endpoint: "main", limit: 999, sentMs: nil)]))
                .formed
                .first?.rows.map(\.location.odometer)
            #expect(Set(rows ?? []).count == 400, "\(outbox.current.recovery)")
            outbox.close()
        }

        /// The same, while reads of the copy fail: nothing of it was read as wrong.
        @Test(arguments: 1...5 as ClosedRange<UInt64>) func givesNothingUpThatCouldNotBeRead(seed: UInt64) throws {
            simdisk_reset(seed)
            let clock = Clock()
            try writeQueue(clock)
            let connection = try #require(Handle(path))
            try #require(connection.run("PRAGMA application_id = 5; PRAGMA wal_checkpoint(TRUNCATE)"))
            connection.close()
            var outbox = try open(life: 9, clock)
            #expect(outbox.current.recovery.corruptRecovered == 1)
            for life in 1...4 as ClosedRange<UInt8> {
                simdisk_set(Int32(simdisk_fail_read), 300_000)
                for _ in 0..<60 {
                    _ = try outbox.commit(Commit(parts: .init(tracker: [life])))
                    clock.wait(hours: 0.4)
                }
                simdisk_set(Int32(simdisk_fail_read), 0)
                for _ in 0..<20 { _ = try outbox.commit(Commit(parts: .init(tracker: [life]))) }
                outbox.close()
                simdisk_kill()
                outbox = try open(life: life, clock)
            }
            for _ in 0..<300 {
                _ = try outbox.commit(Commit(parts: .init(tracker: [0])))
                clock.wait(hours: 0.4)
            }
            let numbers = try outbox.commit(Commit(forms: [FormRequest(endpoint: "main", limit: 999, sentMs: nil)]))
                .formed
                .first?.rows.map(\.location.odometer)
            #expect(Set(numbers ?? []).count == 400 && outbox.current.recovery.lostRows == 0)
        }

        private func rows(_ numbers: Range<Int>) -> [NewRow] {
            numbers.map { number in
                NewRow(
                    Location(
                        trackable: nil, time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000),
                        at: .zero,
                        coordinate: Coordinate(
                            latitudeE7: 525_200_066 + Int32(number * 791_923 % 100_000),
                            longitudeE7: 134_049_540 + Int32(number * 379_721 % 100_000)),
                        mode: .threeD,
                        moving: true, reason: "displacement", odometer: Double(number)))
            }
        }

        /// Commits rows, forms batches and settles them, and lets a reader in.
        private func work(_ outbox: Outbox, _ numbers: Range<Int>, taken: inout [Int64: Int64]) throws {
            for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 10) {
                var commit = Commit(rows: rows(start..<start + 10))
                commit.forms = [FormRequest(endpoint: "main", limit: 30, sentMs: nil)]
                let reply = try outbox.commit(commit)
                if start % 40 == 20 { outbox.readerCame() }
                guard start % 30 == 0, let batch = reply.formed.first else { continue }
                for row in batch.rows {
                    #expect(taken.updateValue(row.seq, forKey: row.location.time.milliseconds) == nil)
                }
                _ = try outbox.commit(Commit(answers: [BatchAnswer(endpoint: "main", batchID: batch.id)]))
            }
        }

        /// The read with this number fails, at a start and in the work that follows.
        /// - Returns: whether there was such a read.
        private func survives(_ number: Int64) throws -> Bool {
            simdisk_reset(UInt64(number))
            var taken: [Int64: Int64] = [:]
            let before = try open()
            try work(before, 0..<80, taken: &taken)
            before.close()
            simdisk_kill()
            simdisk_set(Int32(simdisk_reads_left), number)
            let outbox = try open()
            try work(outbox, 80..<120, taken: &taken)
            let failed = simdisk_get(Int32(simdisk_reads_left)) == 0
            simdisk_set(Int32(simdisk_reads_left), 0)
            for _ in 0..<12 { try take(100, of: outbox, &taken) }
            #expect(taken.count == 120 && Set(taken.values).count == 120, "read \(number): \(taken.count) rows")
            #expect(outbox.current.recovery.corruptRecovered == 0, "read \(number): the queue was set aside")
            #expect(outbox.refusal == nil)
            outbox.close()
            return failed
        }

        /// The same at a start on a disk that cannot be written to: what was not counted then has not gone (seed 60090556).
        @Test func whatCannotBeCountedIsNotGivenUp() throws {
            var number: Int64 = 0
            var hasFailed = true
            while hasFailed {
                number += 1
                simdisk_reset(UInt64(number))
                var taken: [Int64: Int64] = [:]
                let before = try open()
                for start in stride(from: 0, to: 200, by: 10) {
                    _ = try before.commit(Commit(rows: rows(start..<start + 10)))
                }
                try take(5, of: before, &taken)
                _ = try before.commit(Commit(forms: [FormRequest(endpoint: "main", limit: 180, sentMs: nil)]))
                simdisk_kill()
                simdisk_set(Int32(simdisk_fail_write), 1_000_000)
                simdisk_set(Int32(simdisk_reads_left), number)
                // A new endpoint has to be written down.
                let outbox = try open(life: 8, endpoints: ["main", "new"])
                _ = try outbox.commit(Commit(rows: rows(200..<210)))
                hasFailed = simdisk_get(Int32(simdisk_reads_left)) == 0
                simdisk_set(Int32(simdisk_reads_left), 0)
                simdisk_set(Int32(simdisk_fail_write), 0)
                for _ in 0..<12 { try take(100, of: outbox, &taken) }
                #expect(taken.count == 210, "read \(number)")
                #expect(outbox.current.depths[0].finishedUnsent["evicted"] == nil, "read \(number)")
                outbox.close()
            }
            #expect(number > 30)
        }

        private func take(_ limit: Int, of outbox: Outbox, _ taken: inout [Int64: Int64]) throws {
            let reply = try outbox.commit(Commit(forms: [FormRequest(endpoint: "main", limit: limit, sentMs: nil)]))
            guard let batch = reply.formed.first else { return }
            for row in batch.rows {
                #expect(taken.updateValue(row.seq, forKey: row.location.time.milliseconds) == nil)
            }
            _ = try outbox.commit(Commit(answers: [BatchAnswer(endpoint: "main", batchID: batch.id)]))
        }

        /// Room that a transaction was given on a full disk goes with it: nobody else has cut the file off.
        @Test func whatATransactionLeavesIsNoChangeOfAnother() throws {
            /// - Parameter failing: the number of a commit for which there is room in the file and none in the log.
            /// - Returns: the number of the first commit that lets the file grow.
            func run(failing: Int?) throws -> Int {
                simdisk_reset(1)
                let outbox = try open(worksWithoutDisk: false)
                let size = simdisk_size(path)
                var number = 0
                while simdisk_size(path) == size {
                    let used = size + simdisk_size("\(path)-wal")
                    if number == failing { simdisk_set(Int32(simdisk_capacity), used + 65_536 + 2000) }
                    let stored = try? outbox.commit(Commit(rows: rows(number * 1000..<number * 1000 + 1000)))
                    #expect((stored == nil) == (number == failing))
                    number += 1
                }
                simdisk_set(Int32(simdisk_capacity), 0)
                let grown = simdisk_size(path)
                // Until the log is copied back.
                for next in 0..<500 where simdisk_size(path) == grown {
                    _ = try outbox.commit(Commit(parts: .init(tracker: [UInt8(next % 256)])))
                }
                #expect((simdisk_size(path) < grown) == (failing != nil))
                #expect(outbox.current.replacement.count == 0, "\(outbox.current.replacement.words ?? "")")
                outbox.close()
                return number - 1
            }
            _ = try run(failing: try run(failing: nil))
        }

        @Test func setsNoSoundQueueAside() throws {
            var number: Int64 = 1
            while try survives(number) { number += 1 }
            #expect(number > 60)
        }
    }
}
