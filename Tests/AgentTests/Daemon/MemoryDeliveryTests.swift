import Delivery
import Glibc
import Logging
import Outbox
import Positioning
import TestSupport
import Testing

@testable import Agent

/// An endpoint beside a disk that refuses.
@Suite struct MemoryDeliveryTests {
    /// A recorder over a real queue whose medium fails, and an endpoint that it feeds.
    private final class Bench {
        let directory: String
        let loop: EventLoop
        let recorder: Recorder
        let delivery: EndpointDelivery
        let uplink: Requests.ScriptedUplink
        private var limit: EventLoop.Alarm?

        init(profile: Profile = Profile(response: .waypost)) throws {
            directory = try makeTemporaryDirectory()
            loop = try EventLoop()
            uplink = Requests.ScriptedUplink(loop)
            var settings = EndpointSettings(name: "main", baseURL: "http://127.0.0.1:9", device: "d", batchSize: 2)
            settings.profile = profile
            let log = AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false)
            let outbox = try Outbox(
                OutboxSettings(path: directory + "/outbox.db"), endpoints: [settings], bootID: nil,
                newUUID: [UInt8](repeating: 7, count: 16))
            let current = outbox.current
            recorder = try Recorder(
                settings: .init(endpoints: [settings]), writer: try OutboxWriter(outbox), current: current, log: log,
                loop: loop)
            delivery = EndpointDelivery(
                routes: [
                    .init(
                        settings: settings,
                        credentials: EndpointCredentials(
                            EndpointConfig(settings: settings), uplink: uplink, log: log, loop: loop))
                ], depth: nil, batches: [], uplink: uplink, recorder: recorder, log: log, loop: loop, jitter: { 0 })
            recorder.committed = { [unowned self] in delivery.committed($0, $1, at: $2) }
            recorder.refused = { [unowned self] in delivery.refused($0, at: $1) }
            limit = loop.alarm { [unowned loop] _ in loop.stop() }
            try breakDescriptors(of: directory + "/outbox.db-wal")
        }

        deinit {
            recorder.committed = { _, _, _ in }
            recorder.refused = { _, _ in }
            recorder.close(patience: .seconds(10))
            for name in ["", "-wal", "-shm", "-lock"] { unlink("\(directory)/outbox.db\(name)") }
            rmdir(directory)
        }

        func record(_ numbers: ClosedRange<Int>) {
            for number in numbers {
                let location = Location(
                    trackable: "d", time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(number) * 1000), at: .zero,
                    coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true)
                recorder.record(NewRow(location), at: loop.now)
                delivery.recorded(location, at: loop.now)
            }
            delivery.step(at: loop.now)
        }

        /// Answers every request with this status, until so many were made or 10 s have passed.
        func run(requests: Int, answering status: Int = 200) throws {
            uplink.answer = { [unowned self] _ in
                if uplink.requests.count >= requests { limit?.deadline = .zero }
                return UplinkOutcome(.reply(UplinkReply(status: status)))
            }
            limit?.deadline = loop.now + .seconds(10)
            try loop.run()
            limit?.deadline = nil
        }
    }

    @Test func liveRowsGoOutFromMemory() throws {
        let bench = try Bench()
        bench.record(1...3)
        try bench.run(requests: 1)
        #expect(bench.recorder.isDiskBad)
        #expect(bench.delivery.counters.accepted == 2)
        #expect(bench.recorder.sentFromRAM == 2)
        #expect(bench.recorder.held == 1)
        #expect(bench.delivery.waiting == 1)
        bench.record(4...4)
        try bench.run(requests: 2)
        #expect(bench.delivery.counters.accepted == 4)
        #expect(bench.delivery.waiting == 0)
        #expect(bench.recorder.held == 0)
    }

    @Test func whatTheServerDoesNotTakeNowWaitsForItsTurn() throws {
        let bench = try Bench()
        bench.record(1...2)
        try bench.run(requests: 1, answering: 503)
        #expect(bench.recorder.sentFromRAM == 0)
        #expect(bench.delivery.waiting == 2)
        // The pause of the endpoint holds, whatever comes meanwhile.
        bench.record(3...4)
        #expect(bench.uplink.requests.count == 1)
        try bench.run(requests: 2)
        #expect(bench.recorder.sentFromRAM == 2)
        #expect(bench.delivery.waiting == 2)
    }

    @Test func whatTheServerRefusesWaitsForTheDisk() throws {
        let bench = try Bench()
        bench.record(1...2)
        try bench.run(requests: 1, answering: 400)
        #expect(bench.delivery.waiting == 2)
        #expect(bench.recorder.held == 2)
        bench.delivery.step(at: bench.loop.now + .seconds(60))
        #expect(bench.uplink.requests.count == 1)
        #expect(bench.delivery.schedule.isForming)
    }
}
