import Delivery
import Glibc
import Logging
import Outbox
import Positioning
import TestSupport
import Testing

@testable import Agent

/// When rows reach the disk, with a real queue on its writer thread.
@Suite struct RecorderTests {
    @Test func aRowIsCommittedWhenItsWindowEnds() throws {
        let rig = try RecorderRig()
        rig.recorder.record(rig.row(1), at: rig.loop.now)
        try rig.run { $0.commits == 1 }
        #expect(rig.recorder.held == 0)
        #expect(rig.recorder.latest.rows == 1)
    }

    @Test func aRowDoesNotWaitAsLongAsAnAcknowledgementBeforeIt() throws {
        let rig = try RecorderRig()
        rig.recorder.settle(Settlement(endpoint: "main", batchID: "x-main-1-1"), at: rig.loop.now)
        rig.recorder.record(rig.row(1), at: rig.loop.now)
        try rig.run { $0.commits == 1 }
        #expect(rig.recorder.latest.rows == 1)
    }

    @Test func aRowThatCameDuringACommitIsCommittedByItself() throws {
        let rig = try RecorderRig()
        rig.recorder.record(rig.row(1), at: rig.loop.now)
        rig.recorder.commit(at: rig.loop.now)
        rig.recorder.record(rig.row(2), at: rig.loop.now)
        try rig.run { $0.commits == 2 }
        #expect(rig.recorder.held == 0)
        #expect(rig.recorder.latest.rows == 2)
    }

    @Test func manyRowsDoNotWaitForTheWindow() throws {
        let rig = try RecorderRig(commitWindow: .seconds(3600), rowsMax: 3)
        for number in 1...3 { rig.recorder.record(rig.row(number), at: rig.loop.now) }
        try rig.run { $0.commits == 1 }
        #expect(rig.recorder.latest.rows == 3)
    }

    @Test func aDiskThatRefusesIsNotAskedWithoutPause() throws {
        let rig = try RecorderRig(commitWindow: .zero)
        rig.writer.close()
        rig.recorder.record(rig.row(1), at: rig.loop.now)
        var turns = 0
        try rig.run { _ in
            turns += 1
            return turns == 50
        }
        #expect(rig.recorder.commitsFailed == 1)
        #expect(rig.recorder.held == 1)
    }
}

/// A recorder on a queue of its own.
private final class RecorderRig {
    let loop: EventLoop
    let writer: OutboxWriter
    let recorder: Recorder
    private let directory: String

    init(commitWindow: Duration = .milliseconds(20), rowsMax: Int = 1000) throws {
        directory = try makeTemporaryDirectory()
        loop = try EventLoop()
        let outbox = try Outbox(
            OutboxSettings(path: directory + "/outbox.db"),
            endpoints: [EndpointSettings(baseURL: "http://127.0.0.1:9", device: "rig", backfill: true)],
            bootID: nil, newUUID: (0..<16).map { UInt8($0) })
        let current = outbox.current
        writer = try OutboxWriter(outbox)
        recorder = try Recorder(
            settings: .init(commitWindow: commitWindow, rowsMax: rowsMax), writer: writer, current: current,
            log: AgentLog(logger: Logger(label: "test"), positions: false), loop: loop)
    }

    deinit {
        recorder.close()
        for suffix in ["", "-wal", "-shm", "-lock"] { unlink(directory + "/outbox.db" + suffix) }
        rmdir(directory)
    }

    func row(_ number: Int) -> NewRow {
        NewRow(
            Location(
                trackable: "rig", time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), at: .zero,
                coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), moving: true))
    }

    /// Runs the loop until the recorder has come so far, or gives up.
    func run(until done: @escaping (Recorder) -> Bool) throws {
        let end = loop.now + .seconds(10)
        var alarm: EventLoop.Alarm?
        alarm = loop.alarm { [unowned self] now in
            if done(recorder) || now >= end { return loop.stop() }
            alarm?.deadline = now + .milliseconds(2)
        }
        alarm?.deadline = loop.now
        try loop.run()
        alarm = nil
    }
}
