import ControlProtocol
import EventLoop
import Positioning
import Tracking

/// Waits for the fix that a server asked for.
final class LocateHandler {
    private let pipeline: Pipeline
    private let recorder: Recorder
    private var waiting: [(Result<Void, ControlError>) -> Void] = []
    private var until = EventTime.zero
    private var alarm: EventLoop.Alarm?
    private var isFound = false

    init(pipeline: Pipeline, recorder: Recorder, loop: EventLoop) {
        self.pipeline = pipeline
        self.recorder = recorder
        alarm = loop.alarm { [unowned self] now in due(at: now) }
        pipeline.recorded.append { [unowned self] location, now in
            guard location.event == .requested, !waiting.isEmpty else { return }
            isFound = true
            // The recorder has it in a moment.
            alarm?.deadline = now
        }
    }

    /// - Parameter done: called later, once: a fix was recorded and is on disk, or why there is none.
    func locate(at now: EventTime, _ done: @escaping (Result<Void, ControlError>) -> Void) throws(ControlError) {
        guard pipeline.tracker.inHours else {
            throw ControlError("hours", "outside of the hours in which this device is tracked")
        }
        waiting.append(done)
        until = now + Tracker.locateLimit
        alarm?.deadline = until
        pipeline.handle(.locateRequested, at: now)
    }

    private func due(at now: EventTime) {
        guard isFound || until <= now else {
            alarm?.deadline = until
            return
        }
        let callers = waiting
        waiting = []
        guard isFound else {
            let error = ControlError("no-fix", "no fix within \(Tracker.locateLimit.components.seconds) s")
            for caller in callers { caller(.failure(error)) }
            return
        }
        isFound = false
        recorder.commit(at: now) { [recorder] in
            for caller in callers {
                caller(recorder.lastError.map { .failure(ControlError("disk", $0.description)) } ?? .success(()))
            }
        }
    }
}
