import Network
import Profiles
import Queue
import Sensors
import WaypostCore
import WaypostHost
import WaypostTracking

@testable import Configuration
@testable import Daemon

/// The delivery to one endpoint, from a queue that the test chooses, on a loop that the test turns.
class DeliveryBench {
    static let uuid = [UInt8](repeating: 7, count: 16)

    let loop: EventLoop
    let recorder: Recorder
    let delivery: EndpointDelivery
    let uplink = ScriptedUplink()
    private var recorded = 0

    /// - Parameters:
    ///   - path: of the queue; it may be one that cannot be opened.
    ///   - adjust: the settings of the recorder, where they are not the defaults.
    init(
        path: String, batchSize: Int, delivery kind: EndpointSettings.Delivery = .all, share: Double = 0,
        adjust: (inout Recorder.Settings) -> Void = { _ in }
    ) throws {
        let settings = EndpointSettings(
            name: "main", baseURL: "http://127.0.0.1:9", device: "d", batchSize: batchSize,
            profile: Profile(response: .waypost), delivery: kind)
        loop = try EventLoop()
        let outbox = try Outbox(
            OutboxSettings(path: path), endpoints: [settings], bootID: nil, newUUID: Self.uuid, worksWithoutDisk: true)
        let current = outbox.current
        var recording = Recorder.Settings()
        adjust(&recording)
        recorder = try Recorder(
            settings: recording, writer: try OutboxWriter(outbox), current: current, log: .silent, loop: loop)
        delivery = EndpointDelivery(
            routes: [
                .init(
                    settings: settings,
                    credentials: EndpointCredentials(
                        EndpointConfig(settings: settings), uplink: uplink, log: .silent, loop: loop))
            ], depth: current.depths.first, batches: [], uplink: uplink, recorder: recorder, log: .silent, loop: loop,
            share: share, jitter: { 0 })
        connect()
    }

    /// One that reads this source and tracks one asset, without a delivery unless that is asked for.
    func pipeline(
        reading source: any FixSource, _ settings: Tracker.Settings = .init(trackables: [.init(id: "van")]),
        clock: ReceiverClock = ReceiverClock(), delivers: Bool = false, _ log: AgentLog = .silent
    ) -> Pipeline {
        Pipeline(
            source: source, memory: nil, clock: clock,
            run: TrackerRun(tracker: Tracker(settings: settings, restored: nil)), recorder: recorder,
            deliveries: delivers ? [delivery] : [], log: log, loop: loop)
    }

    /// What `status` says of it.
    func report(
        of pipeline: Pipeline, at now: EventTime, _ deliveries: [EndpointDelivery] = []
    ) -> StatusReport {
        StatusReport(
            now: now, startedAt: .zero, wakeups: 0, isClockSynchronised: true, pipeline: pipeline, recorder: recorder,
            deliveries: deliveries, sent: HTTPUplink.Counters(), supplies: nil, configurationProblem: nil,
            configurationOrigin: .current, metricsProblems: [])
    }

    private func connect() {
        recorder.committed = { [unowned self] in delivery.committed($0, $1, at: $2) }
        recorder.refused = { [unowned self] in delivery.refused($0, at: $1) }
    }

    /// Does something without the delivery hearing of commits, which would make a batch of many rows.
    func quietly(_ work: () throws -> Void) rethrows {
        recorder.committed = { _, _, _ in }
        try work()
        connect()
        delivery.committed(recorder.latest, [], at: loop.now)
    }

    /// Turns the loop until this many requests were made.
    func awaitRequest(_ count: Int) throws { try loop.run { self.uplink.requests.count >= count } }

    /// Commits what is held.
    func commit() throws {
        var isDone = false
        recorder.commit(at: loop.now) { isDone = true }
        try loop.run { isDone }
    }

    deinit {
        // A commit that is under way is done while this waits for it.
        recorder.committed = { _, _, _ in }
        recorder.refused = { _, _ in }
        recorder.close(timeout: .seconds(10))
    }

    func record(_ count: Int) {
        for _ in 0..<count { delivery.recorded(recordOnly(), at: loop.now) }
    }

    /// Without a word to the delivery.
    @discardableResult
    func recordOnly() -> Location {
        recorded += 1
        let location = Location(
            trackable: "d", time: UTCTime(milliseconds: 1_700_000_000_000 + Int64(recorded) * 1000), at: .zero,
            coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), moving: true)
        recorder.record(NewRow(location), at: loop.now)
        return location
    }
}
