import Remote
import WaypostControl
import WaypostCore
import WaypostTracking

extension Agent {
    /// Problems that an answer to `status` has room for.
    private static let problemsMax = 5

    /// Carries out a command of a server by the same means as one of this host.
    /// - Parameter done: called once, perhaps later.
    func carryOut(
        _ task: RemoteCommand.Task, at now: EventTime, _ done: @escaping (CommandsFromAfar.Outcome) -> Void
    ) {
        do throws(ControlError) {
            switch task {
            case .locate: return try locating.locate(at: now) { done($0.map { nil }) }
            case .flush:
                pipeline.handle(.flushRequested, at: now)
                for delivery in endpoints.deliveries { delivery.flush(at: now) }
                return recorder.commit(at: now) { [recorder] in
                    done(
                        recorder.lastError.map { .failure(ControlError("disk", $0.description)) } ?? .success(nil))
                }
            case .boost(let duration):
                let finest = Resolution(priority: .maximum, intervalMs: 0, displacement: 0)
                try pipeline.carryOut(.boostChanged(Boost(resolution: finest, duration: duration)), at: now)
            case .refresh: try pipeline.carryOut(.refreshRequested, at: now)
            case .status: return done(.success(briefStatus(at: now)))
            case .fenceRefresh: try listRefreshes.refreshAll(at: now)
            case .pace(let isMoving):
                let pace: Pace = isMoving.map { $0 ? .moving : .stationary } ?? .auto
                try pipeline.carryOut(.paceRequested(pace), at: now)
            }
            done(.success(nil))
        } catch {
            done(.failure(error))
        }
    }

    /// How this device is, without a word about where.
    private func briefStatus(at now: EventTime) -> JSONValue {
        let status = report(at: now).status
        var members: [JSONValue.Member] = [
            .init("version", .string(status.version)), .init("health", .string(status.health)),
            .init("problems", .array(status.problems.prefix(Self.problemsMax).map(JSONValue.string))),
            .init("uptime_s", .int(Int64(status.uptime ?? 0))), .init("motion", .string(status.motion.state)),
            .init("source", .string(status.source.state)),
            .init("last_fix_age_s", status.motion.lastFixAge.map { .int(Int64($0)) } ?? .null),
            .init("waiting", .int(Int64(status.queue.depth))),
        ]
        if let percent = status.power.battery { members.append(.init("battery_pct", .int(Int64(percent)))) }
        if let external = status.power.external { members.append(.init("external_power", .bool(external))) }
        return .object(members)
    }
}
