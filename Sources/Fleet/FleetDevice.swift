import Delivery
import DriveSimulation
import Profiles
import WaypostCore

/// One device: the real schedule and gate of one endpoint, driven by the rows of a plan and the answers of a server.
struct FleetDevice {
    /// What a scenario does to a device.
    enum Order {
        case powerOff
        /// With so many rows in its queue.
        case powerOn(backlog: Int)
        case flush
    }

    private var plan: DevicePlan
    private var schedule: DeliverySchedule
    private var gate: SendGate
    private let settings: EndpointSettings
    private let share: Double
    /// Of latencies and of jitter.
    private var random: SplitMix64
    private var orders: [(at: EventTime, order: Order)]
    private var isOff = false
    private var answer: (FleetServer.Answer, Attempt)?
    /// When the schedule or the gate wants to be asked again.
    private var wake: EventTime?
    private var inFlight: [DeliverySchedule.InFlight] = []
    private var batches = 0
    private var connection: Connection?

    private struct Connection {
        var since: EventTime
        var until: EventTime
    }

    /// Of a receiver after a start, until its first fix.
    private static let firstFix = Duration.seconds(30)

    init(_ settings: EndpointSettings, plan: DevicePlan, random: SplitMix64, orders: [(at: EventTime, order: Order)]) {
        self.settings = settings
        self.plan = plan
        self.orders = orders
        var random = random
        let outbox = (0..<16).map { _ in UInt8(truncatingIfNeeded: random.next() >> 32) }
        share = FleetShare.of(outbox: outbox, endpoint: settings.name)
        self.random = random
        schedule = DeliverySchedule(settings: settings, share: share, at: .zero)
        gate = SendGate(metered: settings.metered)
    }

    var due: EventTime {
        var due = isOff ? EventTime(nanoseconds: .max) : rowsDue
        if let (answer, _) = answer { due = min(due, answer.at) }
        if let wake { due = min(due, wake) }
        if let order = orders.first { due = min(due, order.at) }
        return due
    }

    /// When rows can change what is done next. Until then they need not be recorded, which saves most of the time.
    private var rowsDue: EventTime {
        if answer != nil || wake != nil && schedule.inFlight > 0 { return max(plan.next.at, plan.eventAt) }
        let missing = settings.batchSize - schedule.waiting
        guard wake != nil, schedule.waiting > 0, missing > 0 else { return plan.next.at }
        let full = plan.next.at + .seconds((missing - 1) * plan.shortest)
        return max(plan.next.at, min(full, plan.eventAt))
    }

    mutating func run(at now: EventTime, _ server: inout FleetServer, _ figures: inout FleetFigures) {
        if !isOff { recordRows(until: now) }
        if let (answer, attempt) = answer, answer.at <= now { answered(answer, attempt, &figures, at: now) }
        if let (at, order) = orders.first, at <= now {
            orders.removeFirst()
            carryOut(order, &figures, at: now)
        }
        if !isOff { step(&server, &figures, at: now) }
    }

    /// The run is over.
    mutating func end(_ figures: inout FleetFigures) { disconnect(at: EventTime(nanoseconds: .max), &figures) }

    private mutating func recordRows(until now: EventTime) {
        while plan.next.at <= now {
            schedule.rowsRecorded(1, at: plan.next.at)
            if plan.next.isEvent { flush(at: now) }
            plan.advance()
        }
    }

    private mutating func flush(at now: EventTime) {
        gate.flushRequested(waiting: schedule.waiting + schedule.inFlight)
        schedule.flushRequested(at: now)
    }

    private mutating func carryOut(_ order: Order, _ figures: inout FleetFigures, at now: EventTime) {
        switch order {
        case .powerOff:
            isOff = true
            answer = nil
            wake = nil
            disconnect(at: now, &figures)
        case .powerOn(let backlog):
            isOff = false
            inFlight = []
            schedule = DeliverySchedule(settings: settings, waiting: backlog, share: share, at: now)
            schedule.startedWithHost(at: now)
            gate = SendGate(metered: settings.metered)
            if backlog > 0 { gate.startedWithBacklog(window: settings.batchWindow, share: share, at: now) }
            plan.sleep(until: now + Self.firstFix)
        case .flush:
            schedule.rowsRecorded(1, at: now)
            gate.sharedFlushRequested(waiting: schedule.waiting + schedule.inFlight)
            schedule.sharedFlushRequested(at: now)
        }
    }

    private mutating func step(_ server: inout FleetServer, _ figures: inout FleetFigures, at now: EventTime) {
        while true {
            if case .shut(let until) = gate.opening(at: now) {
                wake = until
                return
            }
            switch schedule.next(at: now) {
            case .form(let limit), .reform(let limit): form(limit, at: now)
            case .send(let id): send(id, &server, &figures, at: now)
            case .wait(let until):
                wake = until
                return
            case .preview, .position, .bind, .refreshCredentials:
                // None of them is asked for with these settings.
                wake = nil
                return
            }
        }
    }

    private mutating func form(_ limit: Int, at now: EventTime) {
        let number = schedule.formRequested(limit, at: now)
        let waiting = schedule.waiting
        let rows = min(limit, waiting)
        if rows > 0 {
            batches += 1
            inFlight.append(.init(id: "\(batches)", rows: rows))
        }
        schedule.committed(.init(waiting: waiting - rows, batches: inFlight), answering: [number], at: now)
    }

    private mutating func send(
        _ id: String, _ server: inout FleetServer, _ figures: inout FleetFigures, at now: EventTime
    ) {
        let attempt = schedule.attemptStarted(id, at: now)
        let rows = inFlight.first { $0.id == id }?.rows ?? 0
        let latency = 0.04 + 0.12 * random.unit()
        let answer = server.answer(latency: latency, timeout: settings.timeout, at: now)
        let listens = server.listens(at: now)
        figures.requested(rows: listens ? rows : 0, at: now)
        if let connection, connection.until < now || !listens { disconnect(at: min(connection.until, now), &figures) }
        if listens, connection == nil {
            connection = Connection(since: now, until: now)
            figures.handshake(at: now)
        }
        // As long as the uplink keeps a connection without a request.
        connection?.until = answer.at + settings.batchWindow * 2
        self.answer = (answer, attempt)
    }

    private mutating func disconnect(at now: EventTime, _ figures: inout FleetFigures) {
        guard let connection else { return }
        figures.connected(from: connection.since, to: min(connection.until, now))
        self.connection = nil
    }

    private mutating func answered(
        _ answer: FleetServer.Answer, _ attempt: Attempt, _ figures: inout FleetFigures, at now: EventTime
    ) {
        self.answer = nil
        if !answer.keepsConnection { disconnect(at: now, &figures) }
        let settled = schedule.attemptFinished(attempt, answer.verdict, .init(), jitter: random.unit(), at: now) ?? []
        for batch in settled where batch.how == .accepted {
            gate.settled(inFlight.first { $0.id == batch.batch }?.rows ?? 0)
            figures.accepted(inFlight.first { $0.id == batch.batch }?.rows ?? 0)
            inFlight.removeAll { $0.id == batch.batch }
        }
    }
}
