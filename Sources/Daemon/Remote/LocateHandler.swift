import WaypostControl
import WaypostCore
import WaypostHost
import WaypostTracking

/// Waits for the fix that a server asked for.
final class LocateHandler {
    typealias Done = (Result<Void, ControlError>) -> Void

    private let pipeline: Pipeline
    private let recorder: Recorder
    private var waiting: [(until: EventTime, done: Done)] = []
    /// Their fix is recorded; the recorder has it in a moment.
    private var found: [Done] = []
    private var alarm: EventLoop.Alarm?

    init(pipeline: Pipeline, recorder: Recorder, loop: EventLoop) {
        self.pipeline = pipeline
        self.recorder = recorder
        alarm = loop.alarm { [unowned self] now in due(at: now) }
        pipeline.recorded.append { [unowned self] location, now in
            guard location.event == .requested, !waiting.isEmpty else { return }
            found += waiting.map(\.done)
            waiting = []
            alarm?.deadline = now
        }
    }

    /// - Parameter done: called later, once: a fix was recorded and is on disk, or why there is none.
    func locate(at now: EventTime, _ done: @escaping Done) throws(ControlError) {
        guard pipeline.tracker.inHours else {
            throw ControlError("hours", "outside of the hours in which this device is tracked")
        }
        waiting.append((now + LocateRequest.limit, done))
        pipeline.handle(.locateRequested, at: now)
        arm(at: now)
    }

    private func due(at now: EventTime) {
        if !found.isEmpty {
            let callers = found
            found = []
            recorder.commit(at: now) { [recorder] in
                let error = recorder.lastError.map { ControlError("disk", $0.description) }
                for caller in callers { caller(error.map { .failure($0) } ?? .success(())) }
            }
        }
        let late = waiting.filter { $0.until <= now }
        waiting.removeAll { $0.until <= now }
        let error = ControlError("no-fix", "no fix within \(LocateRequest.limit.components.seconds) s")
        for caller in late { caller.done(.failure(error)) }
        arm(at: now)
    }

    private func arm(at now: EventTime) {
        alarm?.deadline = found.isEmpty ? waiting.map(\.until).min() : now
    }
}
