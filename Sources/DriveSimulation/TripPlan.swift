/// Building blocks of scripts: kinds of trip, each drawn anew from the generator.
enum TripPlan {
    /// Blocks of 80–400 m with crossings, bends and red lights of 10–120 s.
    static func city(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        var legs: [Leg] = []
        var driven = 0.0
        while driven < metres {
            let limit = generator.chance(0.25) ? 8.3 : generator.uniform(11.5...14.5)
            let block = min(generator.uniform(80...400), max(60, metres - driven))
            legs.append(.drive(metres: block, limit: limit))
            driven += block
            guard driven < metres else { break }
            if generator.chance(0.4) { legs.append(.halt(seconds: generator.uniform(10...120))) }
            if generator.chance(0.35) {
                let side = generator.chance(0.5) ? 1.0 : -1.0
                legs.append(
                    .bend(degrees: side * generator.uniform(60...110), radius: generator.uniform(9...22), limit: limit))
            } else if generator.chance(0.3) {
                legs.append(
                    .bend(
                        degrees: generator.uniform(-35...35), radius: generator.uniform(60...180), limit: limit))
            }
        }
        return legs
    }

    /// Creeps of 3–25 m at 0.6–2.5 m/s between halts of 5–90 s.
    static func jam(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        var legs: [Leg] = []
        var driven = 0.0
        while driven < metres {
            let creep = generator.uniform(3...25)
            legs.append(.halt(seconds: generator.uniform(5...90)))
            legs.append(.creep(metres: creep, limit: generator.uniform(0.6...2.5)))
            driven += creep
        }
        return legs
    }

    static func motorway(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        var legs: [Leg] = []
        var driven = 0.0
        while driven < metres {
            let stretch = min(generator.uniform(600...2500), max(200, metres - driven))
            let limit = generator.uniform(25...34)
            legs.append(.drive(metres: stretch, limit: limit))
            legs.append(
                .bend(degrees: generator.uniform(-20...20), radius: generator.uniform(900...1800), limit: limit))
            driven += stretch
        }
        return legs
    }

    /// City, slip road, motorway with both tunnels, city.
    static func tunnels(openMetres: Double, _ generator: inout SplitMix64) -> [Leg] {
        city(metres: 900, &generator)
            + motorway(metres: openMetres * 0.3, &generator)
            + [Leg.drive(metres: 1500, limit: 25).under(.tunnel)]
            + motorway(metres: openMetres * 0.4, &generator)
            + [Leg.drive(metres: 7000, limit: 25).under(.tunnel)]
            + motorway(metres: openMetres * 0.3, &generator)
            + city(metres: 700, &generator)
    }

    /// On foot to the car and from it, with half a minute to get in and out.
    static func walkDriveWalk(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        walk(&generator) + [.halt(seconds: generator.uniform(20...45))]
            + city(metres: metres, &generator)
            + [.halt(seconds: generator.uniform(20...45))] + walk(&generator)
    }

    private static func walk(_ generator: inout SplitMix64) -> [Leg] {
        let metres = generator.uniform(150...400)
        let first = metres * generator.uniform(0.3...0.7)
        return [
            .walk(metres: first), .walk(metres: 4, turn: generator.uniform(-90...90)),
            .walk(metres: metres - first - 4),
        ]
    }

    /// Backs out of a parking bay.
    static func reversing(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        [.reverse(metres: 12), .halt(seconds: generator.uniform(3...12))] + city(metres: metres, &generator)
    }

    /// Sky lost 40 m before parking.
    static func intoGarage(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        city(metres: metres, &generator) + [Leg.drive(metres: 40, limit: 4).under(.garage)]
    }

    /// Sky back 60 m after leaving.
    static func outOfGarage(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        [Leg.drive(metres: 60, limit: 4).under(.garage)] + city(metres: metres, &generator)
    }

    /// Halts of 150–210 s at each door: too short to end a trip.
    static func deliveries(doors: Int, metresBetween: ClosedRange<Double>, _ generator: inout SplitMix64) -> [Leg] {
        var legs = city(metres: generator.uniform(metresBetween), &generator)
        for _ in 0..<doors {
            legs.append(.halt(seconds: generator.uniform(150...210)))
            legs += city(metres: generator.uniform(metresBetween), &generator)
        }
        return legs
    }
}
