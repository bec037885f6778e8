import WaypostCore
import WaypostTracking

/// Makes trips, stops and gaps of what the tracker decides.
struct JourneyBuilder {
    private let settings: MotionDetector.Settings
    private var journey = Journey()
    private var trip: Journey.Trip?
    private var tripStartOdometer = 0.0
    private var stop: Journey.Stop?
    private var odometer = 0.0

    init(_ settings: MotionDetector.Settings) { self.settings = settings }

    mutating func receive(_ effect: Effect) {
        switch effect {
        case .record(let location): record(location)
        case .announceMotion(let change): motionChanged(change)
        case .announceHalt(let from, let to):
            // One that goes on after all is announced again.
            if journey.halts.last?.start == from.milliseconds { journey.halts.removeLast() }
            journey.halts.append(Journey.Span(start: from.milliseconds, end: to.milliseconds))
        case .announceGap(let from, let to, let reason):
            let end = max(from, to ?? from).milliseconds
            journey.gaps.append(
                Journey.Gap(start: from.milliseconds, end: end, isOpen: to == nil, reason: reason))
        case .announceMove, .announceLowBattery, .announceResolution, .announceRule, .setReceiver, .sleepReceiver,
            .wakeReceiver,
            .count:
            break
        }
    }

    /// The receiver's clock was set back to this time: what has this time or a later one was dated wrongly.
    mutating func clockSetBack(to time: Int64) {
        journey.clip(to: .min...time)
        if let start = trip?.start { trip?.start = min(start, time) }
        if let start = stop?.start { stop?.start = min(start, time) }
    }

    /// - Parameters:
    ///   - table: what the log measured; it is not empty.
    ///   - kept: rising in time.
    func finished(_ table: EpochTable, kept: [KeptPoint]) -> Journey {
        guard let first = table.times.first, let last = table.times.last else { return Journey() }
        var journey = journey
        if var trip {
            trip.end = max(trip.start, last)
            trip.isOpen = true
            trip.metres = max(0, odometer - tripStartOdometer)
            let speeds = table.rows(from: trip.start, through: trip.end).filter(table.isBelieved).map {
                table.speeds[$0]
            }
            trip.maxSpeed = speeds.max().flatMap { $0 >= 0 ? Double($0) / 100 : nil }
            journey.trips.append(trip)
        }
        if var stop {
            stop.end = max(stop.start, last)
            stop.isOpen = true
            journey.stops.append(stop)
        }
        for index in journey.gaps.indices where journey.gaps[index].isOpen {
            journey.gaps[index].end = max(journey.gaps[index].start, last)
        }
        journey.clip(to: first...last)
        for index in journey.trips.indices {
            let trip = journey.trips[index]
            let end = trip.end == .max ? kept.count : kept.firstIndex(from: trip.end + 1, by: \.time)
            journey.trips[index].number = index + 1
            journey.trips[index].kept = max(0, end - kept.firstIndex(from: trip.start, by: \.time))
        }
        return journey
    }

    private mutating func record(_ location: Location) {
        odometer = location.odometer
        guard let crossing = location.geofence else { return }
        journey.crossings.append(
            Journey.Crossing(time: location.time.milliseconds, fence: crossing.id, action: crossing.action.rawValue))
    }

    private mutating func motionChanged(_ change: MotionChange) {
        guard let time = (change.since ?? change.decided)?.milliseconds else { return }
        let decision = Decision(change, settings)
        if change.moving {
            if var stop {
                stop.end = max(stop.start, time)
                journey.stops.append(stop)
            }
            stop = nil
            tripStartOdometer = odometer
            trip = Journey.Trip(
                number: journey.trips.count + 1, start: time, end: time, isOpen: false, metres: 0, idle: 0,
                departure: decision)
        } else {
            if var trip {
                trip.end = max(trip.start, time)
                trip.metres = change.trip?.distance ?? max(0, odometer - tripStartOdometer)
                trip.idle = change.trip?.idle ?? 0
                trip.maxSpeed = change.trip?.maxSpeed
                trip.arrival = decision
                journey.trips.append(trip)
            }
            trip = nil
            stop = Journey.Stop(start: time, end: time, isOpen: false, place: change.coordinate, why: decision)
        }
    }
}
