import Positioning

// How it ends.
extension Agent {
    /// A file is done: send what is there, and leave once nothing waits.
    func drain(at now: EventTime) {
        guard case .running = phase else { return }
        phase = .draining
        if let linger = options.linger {
            limitAlarm?.deadline = now + linger
        } else if deliveries.contains(where: { $0.schedule.failures > 0 }) {
            log.warning("the file is read; waiting for an endpoint that refuses (--linger SECONDS limits this)")
        }
        recorder.commit(at: now) { [unowned self] in
            for delivery in deliveries { delivery.flush(at: loop.now) }
            progress(at: loop.now)
        }
    }

    func stop(_ why: String, at now: EventTime) {
        guard phase == .running || phase == .draining else { return }
        phase = .stopping
        notifier.stopping(status: "stopping")
        log.stopping(why: why)
        limitAlarm?.deadline = now + Self.shutdownGrace
        pipeline.handle(.shutdown, at: now)
        pipeline.close()
        recorder.commit(at: now) { [unowned self] in
            for delivery in deliveries { delivery.shutdown(grace: Self.shutdownGrace, at: loop.now) }
            progress(at: loop.now)
        }
    }

    /// Something was stored or sent: is the end reached?
    func progress(at now: EventTime) {
        switch phase {
        case .running, .stopped: return
        case .draining:
            let waiting = deliveries.contains { $0.waiting > 0 && !$0.awaitsOperator }
            if recorder.held == 0, !waiting { finish(at: now) }
        case .stopping:
            if recorder.held == 0, deliveries.allSatisfy(\.isShutDown) { finish(at: now) }
        }
    }

    func limitReached(at now: EventTime) {
        if phase == .draining { log.stopping(why: "the time to linger is over") }
        if phase == .stopped { loop.stop() } else { finish(at: now) }
    }

    /// One last commit takes what was acknowledged out of the queue.
    private func finish(at now: EventTime) {
        phase = .stopped
        for delivery in deliveries { delivery.end(at: now) }
        limitAlarm?.deadline = now + Self.diskGrace
        recorder.commit(at: now) { [unowned self] in loop.stop() }
    }
}
