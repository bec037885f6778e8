import WaypostCore
import WaypostNMEA
import WaypostTracking

/// The locations that the van publishes on the drive of an NMEA log.
package func publishedLocations(of log: [UInt8], customer: Coordinate) -> [Location] {
    let van = Trackable(id: "van-7", destination: customer, constraints: .custom(["close": .number(400)]))
    var settings = Tracker.Settings(trackables: [van])
    settings.policy = VanPolicy()
    precondition(settings.problems.isEmpty, "\(settings.problems)")

    var run = TrackerRun(tracker: Tracker(settings: settings, restored: nil))
    var locations: [Location] = []
    func perform(_ effect: Effect, decidedAt time: UTCTime?) {
        if case .record(let location) = effect { locations.append(location) }
    }

    var decoder = NMEADecoder()
    var clock = LogClock()
    func receive(_ epoch: Epoch) {
        let at = clock.time(of: epoch)
        // Zero: the log has no date yet.
        if at > .zero { run.epochReceived(epoch, at: at, perform) }
    }
    decoder.decode(log.span, at: .zero) { epoch, _ in receive(epoch) }
    decoder.endOfInput { epoch, _ in receive(epoch) }
    run.ended(perform)
    return locations
}
