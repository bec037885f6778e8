import Journal
import WaypostCore
import WaypostHost

/// What the service manager and the journal get regularly: readiness, signs of life, the status line, the hourly summary.
final class Supervision {
    /// The status line is sent no more often than this.
    private static let statusInterval = Duration.seconds(5)

    let notifier: Notifier
    private var watchdog: Watchdog?
    private let summaryInterval: Duration
    private let log: AgentLog
    private let loop: EventLoop
    private var watchdogAlarm: EventLoop.Alarm?
    private var statusAlarm: EventLoop.Alarm?
    private var summaryAlarm: EventLoop.Alarm?
    private var statusSentAt = EventTime(nanoseconds: .min)
    /// What the status line and the summary are made from.
    var report: (EventTime) -> StatusReport? = { _ in nil }
    /// The loop is awake for a sign of life: other work that is due soon needs no wake-up of its own.
    var onWatchdogBeat: (EventTime) -> Void = { _ in }

    init(_ environment: [String: String], summaryInterval: Duration, log: AgentLog, loop: EventLoop) {
        notifier = Notifier(environment: environment)
        watchdog = Watchdog(environment: environment, at: loop.now.nanoseconds)
        self.summaryInterval = summaryInterval
        self.log = log
        self.loop = loop
        watchdogAlarm = loop.alarm { [unowned self] now in
            beat(at: now)
            // The loop is awake: the ages in the line need no wake-up of their own.
            if notifier.isActive, statusSentAt + Self.statusInterval <= now { sendStatus(at: now) }
        }
        statusAlarm = loop.alarm { [unowned self] now in sendStatus(at: now) }
        summaryAlarm = loop.alarm { [unowned self] now in summarise(at: now) }
    }

    /// Between two signs of life; nil where none are wanted.
    var interval: Duration? { watchdog.map { .nanoseconds($0.interval) } }

    func start(at now: EventTime) {
        notifier.ready(status: "starting")
        beat(at: now)
        summaryAlarm?.deadline = now + summaryInterval
    }

    /// Something that the status line shows is different.
    func statusChanged() {
        guard notifier.isActive else { return }
        let earliest = statusSentAt + Self.statusInterval
        if earliest <= loop.now { sendStatus(at: loop.now) } else { statusAlarm?.deadline = earliest }
    }

    /// A reload is over.
    func reloaded(at now: EventTime) {
        statusSentAt = now
        notifier.ready(status: report(now)?.line)
    }

    private func beat(at now: EventTime) {
        guard watchdog != nil else { return }
        if watchdog?.isDue(at: now.nanoseconds) ?? false { notifier.watchdog() }
        onWatchdogBeat(now)
        watchdogAlarm?.deadline = watchdog.map { EventTime(nanoseconds: $0.nextDeadline) }
    }

    private func sendStatus(at now: EventTime) {
        statusSentAt = now
        if let report = report(now) { notifier.status(report.line) }
    }

    private func summarise(at now: EventTime) {
        summaryAlarm?.deadline = now + summaryInterval
        if let report = report(now) { log.summary(report.summary, fields: report.fields) }
    }
}
