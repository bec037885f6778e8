import WaypostCore

/// What the receiver sees of the sky, and what getting it back will cost.
package enum Sky: String, Hashable, Sendable, CaseIterable {
    case clear
    /// No sky for a short time: void sentences, and a quick, slightly wrong fix afterwards.
    case tunnel
    /// No sky for long: void sentences, and a slow, wrong fix afterwards.
    case garage
    /// No power: silence, and a cold start afterwards.
    case off
}

/// One line of the script of a drive.
package struct Leg: Hashable, Sendable {
    package enum Motion: Hashable, Sendable {
        case stand(Stand)
        case travel(Travel)
    }

    package struct Stand: Hashable, Sendable {
        package var seconds: Double
        /// Seconds since the start of the drive; the stand lasts at least until then.
        package var until: Double?
        /// True ends the trip (engine off), false is a halt inside it.
        package var isParking: Bool
    }

    package struct Travel: Hashable, Sendable {
        package var metres: Double
        /// m/s.
        package var speedLimit: Double
        /// Change of heading along the leg in degrees, right positive.
        package var turn: Double
        /// m/s².
        package var acceleration: Double
        /// m/s².
        package var braking: Double
        package var isReverse: Bool
    }

    package var motion: Motion
    package var sky: Sky = .clear
    /// How the receiver travels; where it stands within a trip, how it came.
    package var activity = Activity.Kind.inVehicle

    /// The same leg with less sky.
    package func under(_ sky: Sky) -> Leg {
        var leg = self
        leg.sky = sky
        return leg
    }

    /// The same leg, travelled otherwise.
    package func by(_ activity: Activity.Kind) -> Leg {
        var leg = self
        leg.activity = activity
        return leg
    }
}

extension Leg {
    package static func park(seconds: Double) -> Leg {
        Leg(motion: .stand(Stand(seconds: seconds, until: nil, isParking: true)))
    }

    /// - Parameters:
    ///   - elapsed: seconds since the start of the drive.
    ///   - minimum: seconds to stand even when the drive runs late.
    package static func park(until elapsed: Double, minimum: Double = 600) -> Leg {
        Leg(motion: .stand(Stand(seconds: minimum, until: elapsed, isParking: true)))
    }

    /// Stands inside a trip: a red light, a queue, a delivery.
    package static func halt(seconds: Double) -> Leg {
        Leg(motion: .stand(Stand(seconds: seconds, until: nil, isParking: false)))
    }

    /// - Parameter limit: m/s.
    package static func drive(metres: Double, limit: Double) -> Leg {
        .travel(metres: metres, limit: limit)
    }

    /// A bend at the speed that 2.5 m/s² across allows.
    ///
    /// - Parameters:
    ///   - degrees: right positive.
    ///   - radius: metres.
    package static func bend(degrees: Double, radius: Double, limit: Double) -> Leg {
        let length = abs(degrees) * .pi / 180 * radius
        return .travel(metres: length, limit: min(limit, (2.5 * radius).squareRoot()), turn: degrees)
    }

    package static func walk(metres: Double, turn: Double = 0) -> Leg {
        walk(metres: metres, pace: 1.35, turn: turn)
    }

    /// - Parameter pace: m/s.
    package static func walk(metres: Double, pace: Double, turn: Double = 0) -> Leg {
        travel(metres: metres, limit: pace, turn: turn, acceleration: 1, braking: 1).by(.onFoot)
    }

    /// - Parameter pace: m/s.
    package static func run(metres: Double, pace: Double, turn: Double = 0) -> Leg {
        travel(metres: metres, limit: pace, turn: turn, acceleration: 1.2, braking: 1.5).by(.running)
    }

    /// Legs pull away at half of what an engine does.
    /// - Parameters:
    ///   - pace: m/s.
    ///   - acceleration: m/s².
    package static func ride(metres: Double, pace: Double, turn: Double = 0, acceleration: Double) -> Leg {
        travel(metres: metres, limit: pace, turn: turn, acceleration: acceleration, braking: 1.3).by(.onBicycle)
    }

    /// A creep in a queue.
    package static func creep(metres: Double, limit: Double) -> Leg {
        .travel(metres: metres, limit: limit, acceleration: 0.6, braking: 0.8)
    }

    /// With the traffic, which is dense.
    package static func roll(metres: Double, limit: Double) -> Leg {
        .travel(metres: metres, limit: limit, acceleration: 1, braking: 1.4)
    }

    package static func reverse(metres: Double) -> Leg {
        .travel(metres: metres, limit: 1.6, acceleration: 0.8, braking: 1, isReverse: true)
    }

    private static func travel(
        metres: Double, limit: Double, turn: Double = 0, acceleration: Double = 1.6, braking: Double = 2,
        isReverse: Bool = false
    ) -> Leg {
        Leg(
            motion: .travel(
                Travel(
                    metres: metres, speedLimit: limit, turn: turn, acceleration: acceleration, braking: braking,
                    isReverse: isReverse)))
    }
}
