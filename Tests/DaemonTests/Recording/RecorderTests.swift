import Foundation
import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Daemon
@testable import Queue

@Suite struct RecorderTests {
    /// A recorder over a real queue, with the loop that it lives on.
    private final class Bench {
        let directory: TemporaryDirectory
        let loop: EventLoop
        let recorder: Recorder
        private(set) var stored: [Int64] = []
        /// What the disk said to each commit.
        private(set) var refusals: [OutboxError?] = []

        init(
            commitWindow: Duration, ringMax: Int = 10_000, maxRecords: Int? = nil, damaged: Bool = false,
            endpoints: [EndpointSettings] = [.init(name: "main", baseURL: "http://127.0.0.1:9", device: "d")]
        ) throws {
            directory = try TemporaryDirectory()
            if damaged { try directory.write("outbox.db", String(repeating: "not a database ", count: 1000)) }
            loop = try EventLoop()
            let outbox = try Outbox(
                OutboxSettings(path: directory.path + "/outbox.db", maxRecords: maxRecords),
                endpoints: endpoints, bootID: nil,
                newUUID: [UInt8](repeating: 7, count: 16), worksWithoutDisk: true)
            let current = outbox.current
            recorder = try Recorder(
                settings: .init(commitWindow: commitWindow, ringMax: ringMax),
                writer: try OutboxWriter(outbox), current: current,
                log: .silent,
                loop: loop)
            recorder.committed = { [unowned self] reply, _, _ in
                stored.append(reply.lastSeq)
                refusals.append(reply.refusal)
            }
        }

        deinit { recorder.close(timeout: .seconds(10)) }

        func record(_ number: Int) {
            let location = Location(
                trackable: nil, time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number)), at: .zero,
                coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true)
            recorder.record(NewRow(location), at: loop.now)
        }
    }

    @Test func reportsFilesThatAnotherProgramHasReplaced() throws {
        let bench = try Bench(commitWindow: .seconds(10))
        func commit() throws {
            let before = bench.stored.count
            bench.record(before)
            bench.recorder.commit(at: bench.loop.now)
            try bench.loop.run { bench.stored.count > before }
        }
        try commit()
        #expect(bench.recorder.replacement(at: bench.loop.now) == nil)
        try FileManager.default.removeItem(atPath: bench.directory.path + "/outbox.db")
        try commit()
        let now = bench.loop.now
        #expect(bench.recorder.replacement(at: now)?.contains("outbox.db was removed or replaced") == true)
        #expect(bench.recorder.replacement(at: now + .seconds(86_401)) == nil)
    }

    @Test func saysWhatTheLimitsDeleteWhileTheyDo() throws {
        let bench = try Bench(commitWindow: .seconds(10), maxRecords: 10)
        for number in 0..<30 { bench.record(number) }
        #expect(bench.recorder.limitWords(at: bench.loop.now) == nil)
        bench.recorder.commit(at: bench.loop.now)
        try bench.loop.run { !bench.stored.isEmpty }
        let (now, lost) = (bench.loop.now, bench.recorder.counters.dropped.lost)
        let words = "\(lost) locations deleted since the start by the limits of the queue: max_records is reached: "
        #expect(lost >= 20 && bench.recorder.limitWords(at: now)?.hasPrefix(words) == true)
        #expect(bench.recorder.limitWords(at: now + .seconds(3601)) == nil)
    }

    /// Nobody can clear it: after a week it is a number.
    @Test func whatWasLostIsAProblemForAWeek() {
        var recovery = Recovery()
        recovery.lostRows = 7
        let week = Duration.seconds(7 * 86_400)
        let lost = UTCTime(milliseconds: 1_700_000_000_000)
        let later = UTCTime(milliseconds: lost.milliseconds + week.milliseconds)
        let justBefore = UTCTime(milliseconds: later.milliseconds - 1)
        for (lostAt, age, trusted, isShown) in [
            (nil, .zero, nil, true), (nil, week, nil, false), (lost, .seconds(5), later, true),
            // An earlier process has lost them.
            (nil, nil, later, false), (lost, nil, nil, false), (lost, nil, justBefore, true), (lost, nil, later, false),
        ] as [(UTCTime?, Duration?, UTCTime?, Bool)] {
            recovery.lostAt = lostAt
            let words = recovery.recentLossWords(after: age, trusted: trusted)
            #expect((words?.contains("7 locations of a damaged queue") == true) == isShown)
        }
        recovery.lostRows = 0
        #expect(recovery.recentLossWords(after: .zero, trusted: nil) == nil)
    }

    /// A rule that the queue itself goes by.
    @Test(.bug(id: 11)) func whatAReloadHasChangedComesWithTheNextCommit() throws {
        var settings = EndpointSettings(name: "main", baseURL: "http://127.0.0.1:9", device: "d")
        settings.onCollision = .clear
        let bench = try Bench(commitWindow: .seconds(10), endpoints: [settings])
        bench.record(0)
        settings.onCollision = .keep
        bench.recorder.reload(commitWindow: .seconds(10), [settings], at: bench.loop.now)
        bench.recorder.stateChanged(.init(endpoint: "main", state: .taken), at: bench.loop.now)
        try bench.loop.run { bench.recorder.latest.depths.first?.state == .taken }
        #expect(bench.recorder.latest.depths.map(\.waiting) == [1])
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
        bench.recorder.acknowledge(BatchAnswer(endpoint: "main", batchID: "none"), at: bench.loop.now)
        bench.record(1)
        try bench.loop.run { bench.recorder.held == 0 }
        #expect(bench.stored == [1])
    }

    @Test func aDiskThatRefusesIsNotAskedWithoutAPause() throws {
        let bench = try Bench(commitWindow: .zero)
        try breakDescriptors(of: bench.directory.path + "/outbox.db-wal")
        bench.record(1)
        try bench.loop.run { !bench.refusals.isEmpty }
        #expect(bench.refusals[0]?.cause == .io && bench.recorder.isDiskBad && bench.recorder.held == 1)
        let refused = bench.loop.now
        bench.record(2)
        try bench.loop.run { bench.recorder.held == 0 }
        #expect(bench.loop.now.duration(since: refused) > .milliseconds(90))
        #expect(bench.recorder.counters.commitsFailed == 1 && bench.recorder.lastError == nil)
        #expect(bench.stored.last == 2 && bench.refusals.last == .some(nil))
    }

    /// A disk that hangs and takes nothing for long: what comes meanwhile is bounded.
    @Test func memoryBeforeTheQueueIsBounded() throws {
        let bench = try Bench(commitWindow: .seconds(3600), ringMax: 10)
        for number in 0..<15 { bench.record(number) }
        #expect(bench.recorder.held == 10 && bench.recorder.ringDropped == 5)
    }

    @Test func whatIsKeptWithTheRowsOfARemovedEndpointIsCounted() {
        let removed = RemovedEndpoint(name: "b", rows: 50)
        let words = [350, 50, 0].map { StatusReport.problem(of: removed, keeping: $0) }
        let all = "queue: 50 locations for endpoint b, which is no longer configured, and 300 recorded since"
        #expect(words[0].hasPrefix(all))
        #expect(words[1] == words[2] && words[1].contains("no longer configured: configure it again"))
    }

    @Test func whatALimitRemovedIsSaidInWordsAndFields() {
        var counts = DropCounts(oldest: 1200)
        func said() -> [String] { counts.parts.map { "\($0.field): \($0.count) \($0.words)" } }
        #expect(said() == ["dropped_oldest: 1200 of the oldest"])
        (counts.newest, counts.thinned, counts.expired, counts.events) = (2, 3, 4, 1)
        let others = [
            "dropped_newest: 2 that came last", "thinned: 3 thinned out", "expired: 4 too old",
            "events_dropped: 1 event",
        ]
        #expect(Array(said().dropFirst()) == others)
    }
}
