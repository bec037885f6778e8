import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

extension DriveTruth {
    /// Drives the script.
    ///
    /// - Parameters:
    ///   - heading: degrees true at the start.
    ///   - period: milliseconds between samples, a multiple of 10.
    package init(following legs: [Leg], from origin: Coordinate, heading: Double, period: Int) {
        var driver = Driver(origin: origin, heading: heading, period: period)
        var index = 0
        while index < legs.count {
            switch legs[index].motion {
            case .stand(let stand):
                driver.stand(stand, under: legs[index].sky, by: legs[index].activity)
                index += 1
            case .travel(let first):
                // Legs in the same direction are one run without a halt; the vehicle brakes for what lies ahead in it.
                var run: [Driver.Stretch] = []
                while index < legs.count, case .travel(let travel) = legs[index].motion,
                    travel.isReverse == first.isReverse
                {
                    run.append(Driver.Stretch(travel: travel, sky: legs[index].sky, activity: legs[index].activity))
                    index += 1
                }
                driver.travel(run)
            }
        }
        self = driver.finished()
    }
}

/// Integrates the motion in steps of 10 ms and takes a sample at every period.
private struct Driver {
    struct Stretch {
        var travel: Leg.Travel
        var sky: Sky
        var activity: Activity.Kind
    }

    private static let step = 10
    private var truth: DriveTruth
    private let period: Int
    /// Milliseconds.
    private var now = 0
    private var nextSample = 0
    private var place = PlanePoint.zero
    /// Radians clockwise from north.
    private var heading: Double
    /// m/s along the path, never negative.
    private var speed = 0.0
    private var direction = 1.0
    private var distance = 0.0
    private var sky = Sky.clear
    private var activity = Activity.Kind.still
    private var standstill: Int?
    private var trip: DriveTruth.Trip?
    private var distanceAtDeparture = 0.0

    init(origin: Coordinate, heading: Double, period: Int) {
        truth = DriveTruth(origin: origin)
        self.heading = heading * .pi / 180
        self.period = max(Self.step, period / Self.step * Self.step)
    }

    mutating func stand(_ stand: Leg.Stand, under sky: Sky, by activity: Activity.Kind) {
        self.sky = sky
        self.activity = stand.isParking ? .still : activity
        if stand.isParking { arrive() }
        let wanted = now + Self.milliseconds(stand.seconds)
        let end = max(wanted, Self.milliseconds(stand.until ?? 0))
        while now < end { advance(to: min(end, max(nextSample, now + Self.step))) }
    }

    mutating func travel(_ run: [Stretch]) {
        depart(under: run[0].sky)
        direction = run[0].travel.isReverse ? -1 : 1
        let exits = Self.exitSpeeds(of: run)
        for (stretch, exit) in zip(run, exits) { travel(stretch, leavingAt: exit) }
        speed = 0
    }

    private mutating func travel(_ stretch: Stretch, leavingAt exit: Double) {
        let travel = stretch.travel
        let dt = Double(Self.step) / 1000
        sky = stretch.sky
        activity = stretch.activity
        var remaining = travel.metres
        let turnPerMetre = travel.metres > 0 ? travel.turn * .pi / 180 / travel.metres : 0
        while remaining > 0 {
            let mayStillDrive = (exit * exit + 2 * travel.braking * remaining).squareRoot()
            // A crawl at the end, else the braking curve never quite reaches the line.
            speed = max(0.05, min(speed + travel.acceleration * dt, travel.speedLimit, mayStillDrive))
            let moved = min(speed * dt, remaining)
            let before = heading
            heading += turnPerMetre * moved
            let middle = (before + heading) / 2
            place = place + PlanePoint(east: sin(middle), north: cos(middle)) * (moved * direction)
            remaining -= moved
            distance += moved
            if sky != .clear { trip?.blindMetres += moved }
            advance(to: now + Self.step)
        }
    }

    /// The fastest speed at the end of each stretch from which all that follows can still be obeyed.
    private static func exitSpeeds(of run: [Stretch]) -> [Double] {
        var exits = [Double](repeating: 0, count: run.count)
        for index in run.indices.dropLast().reversed() {
            let next = run[index + 1].travel
            let afterNext = exits[index + 1]
            let entry = (afterNext * afterNext + 2 * next.braking * next.metres).squareRoot()
            exits[index] = min(run[index].travel.speedLimit, next.speedLimit, entry)
        }
        return exits
    }

    private mutating func depart(under sky: Sky) {
        guard trip == nil else { return }
        trip = DriveTruth.Trip(departure: now, standstill: now, metres: 0, blindMetres: 0, skyAtDeparture: sky)
        distanceAtDeparture = distance
        truth.stops.append(DriveTruth.Stop(standstill: standstill, departure: now, place: place))
    }

    private mutating func arrive() {
        guard var ended = trip else { return }
        ended.standstill = now
        ended.metres = distance - distanceAtDeparture
        truth.trips.append(ended)
        trip = nil
        standstill = now
    }

    /// Takes the sample that is due and lets time pass.
    private mutating func advance(to later: Int) {
        if now >= nextSample {
            let forward = PlanePoint(east: sin(heading), north: cos(heading))
            let velocity = forward * (speed * direction)
            truth.samples.append(
                DriveTruth.Sample(
                    elapsed: now, place: place, velocity: velocity, distance: distance, sky: sky,
                    isParked: trip == nil, activity: activity))
            nextSample += period
        }
        now = later
    }

    mutating func finished() -> DriveTruth {
        arrive()
        truth.stops.append(DriveTruth.Stop(standstill: standstill, departure: nil, place: place))
        truth.duration = now
        return truth
    }

    private static func milliseconds(_ seconds: Double) -> Int {
        Int((max(0, min(seconds, 1e9)) * 100).rounded()) * step
    }
}
