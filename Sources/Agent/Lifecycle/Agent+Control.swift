import ControlProtocol
import Delivery
import JSON
import Positioning
import Systemd
import Tracking

// What people see.
extension Agent {
    func beat(at now: EventTime) {
        guard watchdog != nil else { return }
        if watchdog?.isDue(at: now.nanoseconds) ?? false { notifier.watchdog() }
        power?.passing(at: now)
        watchdogAlarm?.deadline = watchdog.map { EventTime(nanoseconds: $0.nextDeadline) }
    }

    func statusChanged() {
        guard notifier.isActive, phase == .running || phase == .draining else { return }
        let earliest = statusSentAt + .seconds(5)
        if earliest <= loop.now { sendStatus(at: loop.now) } else { statusAlarm?.deadline = earliest }
    }

    func sendStatus(at now: EventTime) {
        statusSentAt = now
        notifier.status(report(at: now).line)
    }

    func summarise(at now: EventTime) {
        summaryAlarm?.deadline = now + options.summaryInterval
        let report = report(at: now)
        log.summary(report.summary, fields: report.fields)
    }

    func answer(
        _ request: ControlRequest, _ ticket: ControlTicket, _ writer: inout JSONWriter
    ) throws(ControlError) {
        switch request.do {
        case "endpoint" where request.action == "list":
            report(at: loop.now).writeEndpoints(after: request.after, to: &writer)
        case "endpoint", "quarantine": try orders.carryOut(request, ticket, at: loop.now, &writer)
        case "flush": try flushes.flush(request, ticket, at: loop.now)
        case "status": report(at: loop.now).write(to: &writer)
        case "pace":
            let pace: Pace = request.moving.map { $0 ? .moving : .stationary } ?? .auto
            try pipeline.carryOut(.paceRequested(pace), at: loop.now)
            writer.field("motion", pipeline.tracker.snapshot.motion.rawValue)
        case "movement":
            guard let moving = request.moving else {
                throw ControlError(
                    "bad-request", "no moving", hint: #"{"do":"movement","source":"gpio","moving":true}"#)
            }
            try pipeline.carryOut(
                .movementSourceChanged(source: request.source ?? "", moving: moving), at: loop.now)
            writer.field("motion", pipeline.tracker.snapshot.motion.rawValue)
        case "odometer":
            guard let metres = request.metres, metres.isFinite, (0...Odometer.metresMax).contains(metres) else {
                throw ControlError(
                    "bad-request", "no reading of an odometer", hint: "metres, from 0 to a hundred million km")
            }
            try pipeline.setOdometer(metres: metres, at: loop.now)
            writer.field("odometer", pipeline.tracker.snapshot.odometer, places: 1)
        case "power": try pipeline.powerCommand(request, at: loop.now, &writer)
        case "boost": try pipeline.boostCommand(request, at: loop.now, &writer)
        case "engine": try pipeline.engineCommand(request, at: loop.now, &writer)
        case "subscriber": try pipeline.subscriberCommand(request, at: loop.now, &writer)
        case "reload": try reloadCommand(at: loop.now, &writer)
        case "refresh": try pipeline.carryOut(.refreshRequested, at: loop.now)
        default:
            throw ControlError(
                "unknown-verb", "unknown verb \"\(request.do)\"",
                hint:
                    "this version knows: status, endpoint, quarantine, flush, pace, engine, subscriber, boost, refresh, "
                    + "movement, power, odometer, reload")
        }
    }

    func report(at now: EventTime) -> StatusReport {
        StatusReport(
            now: now, startedAt: startedAt, wakeups: loop.wakeups,
            isClockSynchronised: loop.host.isClockSynchronised, pipeline: pipeline, recorder: recorder,
            deliveries: deliveries, uplink: uplink, supplies: power?.supplies,
            configurationProblem: configurationProblem)
    }
}
