import CSimDisk
import Delivery
import Outbox
import Positioning
import Testing

@testable import Simworld

extension SimulatedDiskTests {
    /// A read that fails says nothing about the file, wherever it happens.
    @Suite(.serialized) struct FailedReadTests {
        private let path = "/sim/outbox.db"

        private func open() throws(OutboxError) -> Outbox {
            try Outbox(
                OutboxSettings(path: path),
                endpoints: [EndpointSettings(name: "main", baseURL: "http://a", device: "d")],
                bootID: nil, newUUID: [UInt8](repeating: 9, count: 16), worksWithoutDisk: true, locksExclusively: true,
                medium: SimulatedMedium { 0 })
        }

        private func rows(_ numbers: Range<Int>) -> [NewRow] {
            numbers.map { number in
                NewRow(
                    Location(
                        trackable: nil, time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000),
                        at: .zero,
                        coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), mode: .threeD,
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
            try work(before, 0..<200, taken: &taken)
            before.close()
            simdisk_kill()
            simdisk_set(Int32(simdisk_reads_left), number)
            let outbox = try open()
            try work(outbox, 200..<300, taken: &taken)
            let failed = simdisk_get(Int32(simdisk_reads_left)) == 0
            simdisk_set(Int32(simdisk_reads_left), 0)
            for _ in 0..<60 {
                let reply = try outbox.commit(Commit(forms: [FormRequest(endpoint: "main", limit: 100, sentMs: nil)]))
                guard let batch = reply.formed.first else { continue }
                for row in batch.rows {
                    #expect(taken.updateValue(row.seq, forKey: row.location.time.milliseconds) == nil)
                }
                _ = try outbox.commit(Commit(answers: [BatchAnswer(endpoint: "main", batchID: batch.id)]))
            }
            #expect(taken.count == 300 && Set(taken.values).count == 300, "read \(number): \(taken.count) rows")
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
