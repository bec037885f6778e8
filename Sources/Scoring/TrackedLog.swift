import WaypostCore
import WaypostNMEA
import WaypostTracking

/// What tracking makes of the bytes of a log, as `waypost replay` would.
package struct TrackedLog: Sendable {
    /// Every effect in order.
    package private(set) var effects: [Effect] = []
    /// The tracker after the last epoch.
    package let tracker: Tracker

    /// - Parameters:
    ///   - bytes: NMEA 0183.
    ///   - tracesSampling: also keep what the samplers saw, see `samplingTrace`.
    ///   - observe: sees each epoch with its event time before the tracker does.
    package init(
        _ bytes: [UInt8], settings: Tracker.Settings, decoding: NMEADecoder.Settings = .init(),
        tracesSampling: Bool = false, observe: (Epoch, EventTime) -> Void = { _, _ in }
    ) {
        var decoder = NMEADecoder(settings: decoding)
        var clock = LogClock()
        var tracker = Tracker(settings: settings, restored: nil)
        if tracesSampling { tracker.samplingTrace = SamplingTrace() }
        var run = TrackerRun(tracker: tracker)
        var effects: [Effect] = []
        func take(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            // Before the first date the log has no time that anything could run on.
            guard at > .zero else { return }
            observe(epoch, at)
            run.epochReceived(epoch, at: at) { effect, _ in effects.append(effect) }
        }
        decoder.decode(bytes.span, at: .zero) { epoch, _ in take(epoch) }
        decoder.endOfInput { epoch, _ in take(epoch) }
        run.ended { effect, _ in effects.append(effect) }
        self.effects = effects
        self.tracker = run.tracker
    }

    /// What the samplers saw, where that was asked for.
    var samplingTrace: SamplingTrace { tracker.samplingTrace ?? SamplingTrace() }

    package var locations: [Location] {
        effects.compactMap { if case .record(let location) = $0 { location } else { nil } }
    }

    package var motionChanges: [MotionChange] {
        effects.compactMap { if case .announceMotion(let change) = $0 { change } else { nil } }
    }
}
