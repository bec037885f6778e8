import Configuration
import ControlProtocol
import Delivery
import JSON
import Positioning
import Tracking

/// What became of reading the configuration anew.
enum ReloadOutcome {
    /// Keys that are in force now, and keys that wait for the next start.
    case done(live: [String], atRestart: [String])
    /// What is wrong with it, one line each; nothing has changed.
    case refused([String])
}

// Reading the configuration anew, by SIGHUP or an order.
extension Agent {
    /// All or nothing: either every key that can change in a running daemon does, or none.
    @discardableResult
    func reload(at now: EventTime) -> ReloadOutcome {
        guard phase == .running || phase == .draining else { return .refused(["waypost is stopping"]) }
        notifier.reloading()
        let outcome = readAnew(at: now)
        switch outcome {
        case .done(let live, let atRestart):
            configurationProblem = nil
            log.reloaded(live: live, atRestart: atRestart)
        case .refused(let problems):
            configurationProblem =
                "configuration refused, the one before stays in force: \(problems.first ?? "")"
                + (problems.count > 1 ? " and \(problems.count - 1) more" : "")
            log.reloadRefused(problems)
        }
        statusSentAt = now
        notifier.ready(status: report(at: now).line)
        return outcome
    }

    /// A signal has no answer that could say "later": what is asked for too soon is done once, as soon as it may be.
    func reloadSoon(at now: EventTime) {
        reloadAlarm?.deadline = reloads.take(at: now).map { now + $0 }
        if reloadAlarm?.deadline == nil { reload(at: now) }
    }

    private func readAnew(at now: EventTime) -> ReloadOutcome {
        guard let reread = options.reread else {
            renewSecrets(at: now)
            return .done(live: [], atRestart: [])
        }
        let new: LoadedConfiguration
        do throws(ConfigurationProblems) { new = try reread() } catch {
            return .refused(error.problems.map(\.description))
        }
        if let problem = new.config.tracking.problems.first { return .refused([problem]) }
        for warning in new.warnings { log.warning(warning.description) }
        let plan = ReloadPlan(from: config, effective, to: new)
        apply(plan, at: now)
        renewSecrets(at: now)
        return .done(live: plan.live, atRestart: plan.atRestart)
    }

    private func apply(_ plan: ReloadPlan, at now: EventTime) {
        let old = config
        config = plan.config
        effective = plan.effective
        log.set(level: config.log.level, positions: config.log.positions)
        recorder.reload(commitWindow: config.outbox.commitWindow, config.endpoints.map(\.settings), at: now)
        reloadEndpoints(plan.newCredentials, at: now)
        power?.reload(config.powerSettings, at: now)
        pipeline.reload(
            config.tracking.isSame(as: old.tracking) ? nil : config.tracking, config.timetable, at: now)
        // What an operator has set gives way to what the file says.
        pipeline.handle(.engineSet(config.tracking.resolution.constantEngine), at: now)
    }

    private func reloadEndpoints(_ renewed: Set<String>, at now: EventTime) {
        for (index, endpoint) in config.endpoints.enumerated() where renewed.contains(endpoint.settings.name) {
            credentials[index] = makeCredentials(endpoint)
            connect(credentials[index])
        }
        let routes = zip(config.endpoints, credentials).map {
            EndpointDelivery.Route(settings: $0.settings, credentials: $1)
        }
        for delivery in deliveries {
            delivery.reload(
                delivery.routes.map { route in
                    routes.first { $0.settings.name == route.settings.name } ?? route
                }, at: now)
        }
    }

    /// What somebody who asks for a reload may have changed beside the file.
    private func renewSecrets(at now: EventTime) {
        for credentials in credentials { credentials.reread() }
        power?.devicesChanged(at: now)
    }

    /// `{"do":"reload"}`: answers when the new configuration is in force.
    func reloadCommand(at now: EventTime, _ writer: inout JSONWriter) throws(ControlError) {
        if let wait = reloads.take(at: now) { throw .busy(for: wait, "too many reloads: one a second is taken") }
        switch reload(at: now) {
        case .done(let live, let atRestart):
            for (name, keys) in [("live", live), ("restart", atRestart)] as [(String, [String])] {
                writer.key(name)
                writer.beginArray()
                for key in keys where writer.bytes.count < ControlFrame.bytesFilled { writer.value(key) }
                writer.endArray()
            }
        case .refused(let problems):
            throw ControlError(
                "refused", problems.prefix(20).map { $0.cut(toBytes: 1000) }.joined(separator: "\n"),
                hint: "nothing has changed; waypost check tells the same without a daemon")
        }
    }
}
