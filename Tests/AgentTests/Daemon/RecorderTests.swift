import Delivery
import Glibc
import Logging
import Outbox
import Positioning
import TestSupport
import Testing

@testable import Agent

@Suite struct RecorderTests {
    /// A recorder over a real queue, with the loop that it lives on.
    private final class Bench {
        let directory: String
        let loop: EventLoop
        let recorder: Recorder
        private(set) var stored: [Int64] = []
        private(set) var refusals = 0

        init(
            commitWindow: Duration, doubt: Duration = .zero, storedPatience: Duration = .zero, damaged: Bool = false,
            endpoints: [EndpointSettings] = [.init(name: "main", baseURL: "http://127.0.0.1:9", device: "d")]
        ) throws {
            directory = try makeTemporaryDirectory()
            if damaged {
                let file = try #require(fopen(directory + "/outbox.db", "w"))
                for _ in 0..<1000 { fputs("not a database ", file) }
                fclose(file)
            }
            loop = try EventLoop()
            let outbox = try Outbox(
                OutboxSettings(path: directory + "/outbox.db"),
                endpoints: endpoints, bootID: nil,
                newUUID: [UInt8](repeating: 7, count: 16))
            let current = outbox.current
            recorder = try Recorder(
                settings: .init(
                    commitWindow: commitWindow, endpoints: endpoints, doubt: doubt, storedPatience: storedPatience),
                writer: try OutboxWriter(outbox), current: current,
                log: AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false),
                loop: loop)
            recorder.committed = { [unowned self] reply, _, _ in stored.append(reply.lastSeq) }
            recorder.refused = { [unowned self] _, _ in refusals += 1 }
        }

        deinit {
            recorder.close(patience: .seconds(10))
            for name in ["", "-wal", "-shm", "-lock", ".corrupt-1"] { unlink("\(directory)/outbox.db\(name)") }
            rmdir(directory)
        }

        func record(_ number: Int) {
            let location = Location(
                trackable: nil, time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number)), at: .zero,
                coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), altitudeMSL: nil, horizontalAccuracy: nil,
                speed: nil, course: nil, satellitesUsed: nil, mode: nil, quality: nil, moving: true, event: .none,
                reason: nil, odometer: 0, power: PowerState(), published: true)
            recorder.record(NewRow(location), at: loop.now)
        }
    }

    @Test func aDamagedQueueIsBroughtBackWhileNothingIsRecorded() throws {
        let bench = try Bench(commitWindow: .seconds(10), damaged: true)
        #expect(bench.recorder.recovery.isSalvaging)
        try bench.loop.run { !bench.recorder.recovery.isSalvaging }
        #expect(!bench.recorder.recovery.isSalvaging)
    }

    @Test func aRowThatComesWhileACommitIsUnderWayIsOnDiskAWindowLater() throws {
        let bench = try Bench(commitWindow: .milliseconds(5))
        bench.record(1)
        bench.recorder.commit(at: bench.loop.now)
        bench.record(2)
        try bench.loop.run { bench.recorder.held == 0 }
        #expect(bench.stored == [1, 2])
    }

    @Test func anAcknowledgementThatWaitsDoesNotMakeALaterRowWait() throws {
        let bench = try Bench(commitWindow: .milliseconds(5))
        bench.recorder.settle(Settlement(endpoint: "main", batchID: "none"), at: bench.loop.now)
        bench.record(1)
        try bench.loop.run { bench.recorder.held == 0 }
        #expect(bench.stored == [1])
    }

    @Test func aDiskThatRefusesIsNotAskedWithoutAPause() throws {
        let bench = try Bench(commitWindow: .zero)
        try breakDescriptors(of: bench.directory + "/outbox.db-wal")
        bench.record(1)
        try bench.loop.run { bench.refusals > 0 }
        let refused = bench.loop.now
        bench.record(2)
        try bench.loop.run { bench.recorder.held == 0 }
        #expect(bench.loop.now.duration(since: refused) > .milliseconds(90))
        #expect(bench.refusals == 1)
        #expect(bench.stored == [2])
    }

    /// While the disk refuses, rows go out from memory under keys of their own, and need no disk any more.
    @Test func sendsFromMemoryWhileTheDiskRefuses() throws {
        let bench = try Bench(commitWindow: .zero)
        let recorder = bench.recorder
        let main = EndpointSettings(name: "main", baseURL: "http://127.0.0.1:9", device: "d")
        let nobody = EndpointSettings(name: "nobody", baseURL: "http://127.0.0.1:9", device: "d")
        #expect(recorder.memoryBatch(for: main, limit: 9, sentMs: nil) == nil)
        try breakDescriptors(of: bench.directory + "/outbox.db-wal")
        bench.record(1)
        try bench.loop.run { bench.refusals > 0 }
        bench.record(2)
        let batch = try #require(recorder.memoryBatch(for: main, limit: 9, sentMs: 5))
        #expect(batch.rows.map(\.seq) == [1, 2])
        #expect(batch.outbox.count == 16 && batch.outbox != [UInt8](repeating: 7, count: 16))
        #expect(batch.id == "\(batch.outboxName)-main-1-2")
        #expect(recorder.memoryBatch(for: main, limit: 9, sentMs: nil) == nil)
        #expect(recorder.memoryBatch(for: nobody, limit: 9, sentMs: nil) == nil)
        // Refused: the same rows again under the same keys.
        recorder.memorySettled("main", accepted: [])
        let again = try #require(recorder.memoryBatch(for: main, limit: 9, sentMs: 5))
        #expect(again == batch)
        // What comes meanwhile waits until it is known what became of these.
        bench.record(3)
        recorder.commit(at: bench.loop.now)
        #expect(recorder.held == 3 && bench.stored.isEmpty)
        recorder.memorySettled("main", accepted: [1, 2])
        #expect(recorder.sentFromRAM == 2)
        try bench.loop.run { recorder.held == 0 }
        #expect(bench.stored.last == 1)
        #expect(recorder.lastError == nil)
        #expect(recorder.memoryBatch(for: main, limit: 9, sentMs: nil) == nil)
    }

    /// A medium that failed may have stored what it says it has not.
    @Test func sendsNothingFromMemoryThatMayBeOnDisk() throws {
        let bench = try Bench(commitWindow: .zero, doubt: .seconds(60))
        try breakDescriptors(of: bench.directory + "/outbox.db-wal")
        bench.record(1)
        try bench.loop.run { bench.refusals > 0 }
        let main = EndpointSettings(name: "main", baseURL: "http://127.0.0.1:9", device: "d")
        #expect(bench.recorder.memoryBatch(for: main, limit: 9, sentMs: nil) == nil)
    }

    /// What a profile says of batches holds in memory as well.
    @Test func keepsTheRulesOfTheProfileInMemory() throws {
        let latest = EndpointSettings(name: "main", baseURL: "http://127.0.0.1:9", device: "d", delivery: .latest)
        let spare = EndpointSettings(name: "spare", baseURL: "http://127.0.0.1:9", device: "d", backupFor: "main")
        let bench = try Bench(commitWindow: .zero, endpoints: [latest, spare])
        let recorder = bench.recorder
        try breakDescriptors(of: bench.directory + "/outbox.db-wal")
        bench.record(1)
        try bench.loop.run { bench.refusals > 0 }
        bench.record(2)
        bench.record(3)
        let batch = try #require(recorder.memoryBatch(for: latest, by: spare, limit: 9, sentMs: nil))
        // The spare's own rules count, and its name.
        #expect(batch.rows.map(\.seq) == [1, 2, 3] && batch.endpoint == "spare")
        recorder.memorySettled("main", accepted: [])
        let newest = try #require(recorder.memoryBatch(for: latest, limit: 9, sentMs: nil))
        #expect(newest.rows.map(\.seq) == [3] && newest.endpoint == "main")
        recorder.memorySettled("main", accepted: [3])
        #expect(recorder.held == 0)
        // One id never names two bodies.
        for number in 4...6 { bench.record(number) }
        let mixed = try #require(recorder.memoryBatch(for: latest, by: spare, limit: 9, sentMs: nil))
        recorder.memorySettled("main", accepted: [5])
        let rest = try #require(recorder.memoryBatch(for: latest, by: spare, limit: 9, sentMs: nil))
        #expect(rest.rows.map(\.seq) == [4, 6] && rest.id == mixed.id + "-g2")
    }
}
