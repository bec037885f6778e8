import Delivery
import Outbox
import Positioning
import Systemd
import Uplink

/// Carries out what the schedule of one endpoint says: forms batches through the recorder, sends them, settles them.
final class EndpointDelivery {
    struct Counters: Hashable, Sendable {
        var requests = 0
        var accepted = 0
        var batchesAccepted = 0
        var failed: [String: Int] = [:]
        var bytesSent = 0
        var bytesReceived = 0
        var connections = 0
    }

    let settings: EndpointSettings
    private let encoder: BatchEncoder
    private let credentials: EndpointCredentials
    private let uplink: any Uplink
    private let recorder: Recorder
    private let log: AgentLog
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var batch: Batch?
    private var problem = RepeatGate()
    private(set) var schedule: DeliverySchedule
    private(set) var counters = Counters()
    private(set) var lastSuccess: EventTime?
    private(set) var lastProblem: String?
    /// Something about this endpoint changed that the status line shows.
    var changed: () -> Void = {}
    /// 0 ≤ x < 1, from the system's random source.
    private let jitter: () -> Double

    init(
        schedule: DeliverySchedule, batch: Batch?, credentials: EndpointCredentials, outbox: String,
        uplink: any Uplink, recorder: Recorder, log: AgentLog, loop: EventLoop, jitter: @escaping () -> Double
    ) {
        self.schedule = schedule
        self.credentials = credentials
        self.batch = batch
        self.uplink = uplink
        self.recorder = recorder
        self.log = log
        self.loop = loop
        self.jitter = jitter
        settings = schedule.settings
        encoder = BatchEncoder(settings: schedule.settings, outbox: outbox)
        alarm = loop.alarm { [unowned self] now in step(at: now) }
    }

    /// Rows that this endpoint has not accepted, in memory, on disk and in flight.
    var waiting: Int { schedule.waiting + (batch?.rows.count ?? 0) }

    /// Nothing is sent until somebody does something about it.
    var awaitsOperator: Bool {
        switch schedule.state {
        case .stopped, .taken, .rebind: true
        case .active, .paused: false
        }
    }

    func wants(_ location: Location) -> Bool {
        switch settings.feed {
        case .network: location.published
        case .engine: true
        }
    }

    func recorded(_ location: Location, at now: EventTime) {
        guard wants(location) else { return }
        schedule.rowsRecorded(1, at: now)
    }

    func flush(at now: EventTime) {
        schedule.flushRequested(at: now)
        step(at: now)
    }

    func shutdown(grace: Duration, at now: EventTime) {
        schedule.shutdownRequested(at: now, grace: grace)
        step(at: now)
    }

    /// Does what is due, and arms the alarm for what is due later.
    func step(at now: EventTime) {
        while true {
            switch schedule.next(at: now) {
            case .form(let limit):
                schedule.formRequested()
                form(limit, at: now)
            case .reform(let limit):
                if let batch {
                    recorder.settle(
                        Settlement(endpoint: settings.name, batchID: batch.id, how: .released), at: now)
                }
                batch = nil
                schedule.formRequested()
                form(limit, at: now)
            case .send:
                guard let batch else { return }
                schedule.attemptStarted(at: now)
                send(batch)
            case .wait(let until):
                alarm?.deadline = until
                return
            }
        }
    }

    private func form(_ limit: Int, at now: EventTime) {
        recorder.form(
            FormRequest(endpoint: settings.name, limit: limit, sentMs: HostIdentity.wallClockMs()), at: now)
    }

    /// A commit succeeded: take over the batch that it formed, and the truth about what waits.
    func committed(_ reply: CommitReply, _ forms: [FormRequest], at now: EventTime) {
        let asked = forms.contains { $0.endpoint == settings.name }
        if asked {
            batch = reply.formed.first { $0.endpoint == settings.name }
            schedule.batchFormed(count: batch?.rows.count ?? 0, at: now)
        }
        // Retention removes rows, and a commit that was reported as failed may have formed a batch all the same. While
        // another request to form is on its way its batch is counted on neither side.
        if !schedule.isForming, let depth = reply.depths.first(where: { $0.endpoint == settings.name }) {
            let inMemory = recorder.rows.count { wants($0.location) }
            schedule.waitingCorrected(to: depth.waiting + inMemory)
        }
        step(at: now)
    }

    /// The disk refused a commit.
    func refused(_ forms: [FormRequest], at now: EventTime) {
        guard forms.contains(where: { $0.endpoint == settings.name }) else { return }
        schedule.batchNotFormed(at: now)
        step(at: now)
    }

    private func send(_ batch: Batch) {
        credentials.obtain(at: loop.now) { [unowned self] result in
            let now = loop.now
            do throws(CredentialProblem) {
                _ = try result.get()
                var request = encoder.request(for: batch, gzip: schedule.gzip)
                try credentials.complete(&request, batchID: batch.id, at: now)
                counters.requests += 1
                uplink.send(request) { [unowned self] outcome in finished(outcome, batch) }
            } catch {
                withheld(error, at: now)
            }
        }
    }

    /// The request could not be made, so nothing was sent.
    private func withheld(_ problem: CredentialProblem, at now: EventTime) {
        let failure: TransportFailure = problem.isClock ? .clock(problem.message) : .broken(problem.message)
        let outcome = UplinkOutcome(.failed(failure))
        let verdict: Verdict = problem.isClock ? .retry(.transport(failure), after: nil) : .authStop(status: 401)
        counters.failed[verdict.word, default: 0] += 1
        schedule.attemptFinished(verdict, jitter: jitter(), at: now)
        complain(verdict, outcome, at: now)
        changed()
        step(at: now)
    }

    private func finished(_ outcome: UplinkOutcome, _ sent: Batch) {
        let now = loop.now
        let verdict = Verdict(outcome)
        let stateBefore = schedule.state
        let failuresBefore = schedule.failures
        counters.bytesSent += outcome.bytesSent
        counters.bytesReceived += outcome.bytesReceived
        if outcome.newConnection { counters.connections += 1 }
        schedule.attemptFinished(verdict, jitter: jitter(), at: now)
        if verdict == .accepted {
            counters.accepted += sent.rows.count
            counters.batchesAccepted += 1
            lastSuccess = now
            lastProblem = nil
            batch = nil
            log.uploaded(endpoint: settings.name, batch: sent.id, count: sent.rows.count)
            recorder.settle(Settlement(endpoint: settings.name, batchID: sent.id), at: now)
            if problem.ended(at: now.nanoseconds) != nil {
                log.uploadRecovered(endpoint: settings.name, failures: failuresBefore)
            }
        } else {
            counters.failed[verdict.word, default: 0] += 1
            complain(verdict, outcome, at: now)
        }
        if schedule.state != stateBefore {
            recorder.stateChanged(.init(endpoint: settings.name, state: schedule.state), at: now)
        }
        changed()
        step(at: now)
    }

    private func complain(_ verdict: Verdict, _ outcome: UplinkOutcome, at now: EventTime) {
        var text = verdict.word
        if case .failed(let failure) = outcome.result { text = failure.message }
        switch schedule.state {
        case .active: break
        case .paused(let reason): text += "; paused (\(reason)), tried again every 15 min"
        case .stopped(let reason): text += "; stopped (\(reason)) until the configuration changes"
        case .taken: text += "; another device reports this asset, stopped"
        case .rebind: text += "; held"
        }
        if let next = schedule.nextAttemptAt { text += "; next try in \(Int(next.seconds(since: now).rounded(.up))) s" }
        lastProblem = text
        switch problem.occurred(at: now.nanoseconds) {
        case .suppressed: break
        default: log.uploadProblem(endpoint: settings.name, text, failures: schedule.failures)
        }
    }
}
