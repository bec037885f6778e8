import Journal
import WaypostCore
import WaypostHost

/// How the daemon ends: on a signal, or when a file was read to its end and the queue is empty.
final class Shutdown {
    enum Phase {
        case running
        /// A file was read to its end; becomes `stopping` when the queue is empty or lingering is over.
        case draining
        /// Everything is committed and the last attempt runs; then `stopped`.
        case stopping
        case stopped
    }

    /// Longest time between SIGTERM and exit that is spent on the network; the unit's TimeoutStopSec is longer.
    private static let networkLimit = Duration.seconds(5)
    /// Longest time after that for a disk that is busy with the last commit.
    static let diskLimit = Duration.seconds(2)

    private var phase = Phase.running
    /// After the end of a file, the longest wait for the queue to empty; nil = as long as it takes.
    private let linger: Duration?
    private let pipeline: Pipeline
    private let recorder: Recorder
    private let deliveries: [EndpointDelivery]
    private let notifier: Notifier
    private let log: AgentLog
    private let loop: EventLoop
    private var limitAlarm: EventLoop.Alarm?

    init(
        linger: Duration?, pipeline: Pipeline, recorder: Recorder, deliveries: [EndpointDelivery],
        notifier: Notifier, log: AgentLog, loop: EventLoop
    ) {
        self.linger = linger
        self.pipeline = pipeline
        self.recorder = recorder
        self.deliveries = deliveries
        self.notifier = notifier
        self.log = log
        self.loop = loop
        limitAlarm = loop.alarm { [unowned self] now in limitReached(at: now) }
    }

    /// It has not begun to stop.
    var isServing: Bool { phase == .running || phase == .draining }

    /// A file was read to its end: sends what is queued, and stops once nothing waits.
    func drain(at now: EventTime) {
        guard phase == .running else { return }
        phase = .draining
        if let linger {
            limitAlarm?.deadline = now + linger
        } else if deliveries.contains(where: { $0.schedule.failures > 0 }) {
            log.warning(
                "the file is read to its end; waiting for an endpoint that refuses (--linger SECONDS limits the wait)")
        }
        recorder.commit(at: now) { [unowned self] in
            for delivery in deliveries { delivery.flush(at: loop.now) }
            progressed(at: loop.now)
        }
    }

    func stop(_ why: String, at now: EventTime) {
        guard isServing else { return }
        phase = .stopping
        notifier.stopping(status: "stopping")
        log.stopping(why: why)
        limitAlarm?.deadline = now + Self.networkLimit
        pipeline.handle(.shutdown, at: now)
        pipeline.close()
        recorder.commit(at: now) { [unowned self] in
            for delivery in deliveries { delivery.shutdown(grace: Self.networkLimit, at: loop.now) }
            progressed(at: loop.now)
        }
    }

    /// Something was stored or sent, which may have been the last of it.
    func progressed(at now: EventTime) {
        switch phase {
        case .running, .stopped: return
        case .draining:
            let waiting = deliveries.contains { $0.waiting > 0 && !$0.awaitsOperator }
            if recorder.held == 0, !waiting { finish(at: now) }
        case .stopping:
            if recorder.held == 0, deliveries.allSatisfy(\.isShutDown) { finish(at: now) }
        }
    }

    private func limitReached(at now: EventTime) {
        if phase == .draining { log.stopping(why: "the time of --linger is over") }
        if phase == .stopped { loop.stop() } else { finish(at: now) }
    }

    /// One last commit removes what was acknowledged from the queue.
    private func finish(at now: EventTime) {
        phase = .stopped
        for delivery in deliveries { delivery.end(at: now) }
        limitAlarm?.deadline = now + Self.diskLimit
        recorder.commit(at: now) { [unowned self] in loop.stop() }
    }
}
