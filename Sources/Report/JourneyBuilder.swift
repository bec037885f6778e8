import Positioning
import Tracking

/// Makes trips, stops and gaps of what the tracker decides.
struct JourneyBuilder {
    private let settings: MotionDetector.Settings
    private var journey = Journey()
    private var trip: Journey.Trip?
    private var tripStartOdometer = 0.0
    private var stop: Journey.Stop?
    private var odometer = 0.0
    /// Times of the locations that are kept, as they came.
    private var kept: [Int64] = []

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
                Journey.Gap(start: from.milliseconds, end: end, isOpen: to == nil, reason: reason.rawValue))
        case .announceLowBattery, .announceResolution, .setReceiver, .sleepReceiver, .wakeReceiver, .count: break
        }
    }

    /// - Parameter last: when the log ends.
    func finished(last: Int64, _ table: EpochTable) -> Journey {
        var journey = journey
        if var trip {
            trip.end = max(trip.start, last)
            trip.isOpen = true
            trip.metres = max(0, odometer - tripStartOdometer)
            let speeds = table.rows(from: trip.start, through: trip.end).map { table.speeds[$0] }
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
        let times = kept.sorted()
        for index in journey.trips.indices {
            let trip = journey.trips[index]
            let first = times.firstIndex(from: trip.start, by: \.self)
            journey.trips[index].kept = times[first...].prefix { $0 <= trip.end }.count
        }
        return journey
    }

    private mutating func record(_ location: Location) {
        odometer = location.odometer
        if location.published { kept.append(location.time.milliseconds) }
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
