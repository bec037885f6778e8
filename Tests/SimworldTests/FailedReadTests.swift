import CSimDisk
import Delivery
import Outbox
import Positioning
import Synchronization
import Testing

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

        private func open(life: UInt8 = 9, _ clock: Clock = Clock()) throws(OutboxError) -> Outbox {
            try Outbox(
                OutboxSettings(path: path),
                endpoints: [EndpointSettings(name: "main", baseURL: "http://a", device: "d")],
                bootID: nil, newUUID: [UInt8](repeating: life, count: 16), worksWithoutDisk: true,
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

        private func spoil() throws {
            let page = try middlePage()
            var bytes = contents
            bytes.replaceSubrange((page - 1) * 512..<page * 512, with: [UInt8](repeating: 0xAA, count: 512))
            simdisk_plant(path, bytes, Int64(bytes.count))
        }

        /// What is missing in a damaged queue is given up once it was read as wrong three times, an hour apart, by two processes.
        @Test func givesUpWhatIsReadAsWrongAgainAndAgain() throws {
            simdisk_reset(1)
            let clock = Clock()
            var taken: [Int64: Int64] = [:]
            func takeAll(_ outbox: Outbox) throws -> [Location] {
                var gaps: [Location] = []
                for _ in 0..<20 {
                    let reply = try outbox.commit(
                        Commit(forms: [FormRequest(endpoint: "main", limit: 50, sentMs: nil)]))
                    guard let batch = reply.formed.first else { continue }
                    for row in batch.rows where row.location.event == .none {
                        #expect(taken.updateValue(row.seq, forKey: row.location.time.milliseconds) == nil)
                    }
                    gaps += batch.rows.map(\.location).filter { $0.event == .gap }
                    _ = try outbox.commit(Commit(answers: [BatchAnswer(endpoint: "main", batchID: batch.id)]))
                }
                return gaps
            }
            let before = try open(life: 9, clock)
            for start in stride(from: 0, to: 400, by: 50) {
                _ = try before.commit(Commit(rows: rows(start..<start + 50)))
            }
            before.close()
            simdisk_kill()
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
        }

        /// The same, while reads of the copy fail: nothing of it was read as wrong.
        @Test func givesNothingUpThatCouldNotBeRead() throws {
            simdisk_reset(1)
            let clock = Clock()
            let before = try open(life: 9, clock)
            for start in stride(from: 0, to: 400, by: 50) {
                _ = try before.commit(Commit(rows: rows(start..<start + 50)))
            }
            before.close()
            simdisk_kill()
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
            for _ in 0..<12 {
                let reply = try outbox.commit(Commit(forms: [FormRequest(endpoint: "main", limit: 100, sentMs: nil)]))
                guard let batch = reply.formed.first else { continue }
                for row in batch.rows {
                    #expect(taken.updateValue(row.seq, forKey: row.location.time.milliseconds) == nil)
                }
                _ = try outbox.commit(Commit(answers: [BatchAnswer(endpoint: "main", batchID: batch.id)]))
            }
            #expect(taken.count == 120 && Set(taken.values).count == 120, "read \(number): \(taken.count) rows")
            #expect(outbox.current.recovery.corruptRecovered == 0, "read \(number): the queue was set aside")
            #expect(outbox.refusal == nil)
            outbox.close()
            return failed
        }

        @Test func setsNoSoundQueueAside() throws {
            var number: Int64 = 1
            while try survives(number) { number += 1 }
            #expect(number > 60)
        }
    }
}
