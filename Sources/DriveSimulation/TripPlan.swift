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

    /// A pace of its own that wanders by a tenth, slower before shop windows; crossings, and halts of 4–75 s.
    static func stroll(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        let pace = generator.uniform(1.0...1.65)
        var legs: [Leg] = []
        var walked = 0.0
        while walked < metres {
            let stretch = generator.uniform(8...40)
            let share = generator.chance(0.1) ? generator.uniform(0.55...0.75) : generator.uniform(0.9...1.1)
            let turn = generator.chance(0.15) ? generator.uniform(-90...90) : generator.uniform(-8...8)
            legs.append(.walk(metres: stretch, pace: pace * share, turn: turn))
            walked += stretch
            if generator.chance(0.06) { legs.append(Leg.halt(seconds: generator.uniform(4...75)).by(.onFoot)) }
        }
        return legs
    }

    /// A pace of 2.4–4 m/s that wanders by 7 %, now and then a walk to catch breath, and red lights of 5–45 s.
    static func jog(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        let pace = generator.uniform(2.4...4)
        var legs: [Leg] = []
        var covered = 0.0
        while covered < metres {
            let stretch = generator.uniform(20...90)
            let turn = generator.chance(0.15) ? generator.uniform(-90...90) : generator.uniform(-8...8)
            legs.append(.run(metres: stretch, pace: pace * generator.uniform(0.93...1.07), turn: turn))
            covered += stretch
            if generator.chance(0.03) {
                let breath = generator.uniform(60...150)
                legs.append(.walk(metres: breath, pace: generator.uniform(1.2...1.6)))
                covered += breath
            } else if generator.chance(0.04) {
                legs.append(Leg.halt(seconds: generator.uniform(5...45)).by(.running))
            }
        }
        return legs
    }

    /// A pace of 4–7 m/s that wanders by a seventh; up hill half of it, down hill up to 1.7 of it; bends, and red lights of 8–70 s.
    /// In three minutes the speed of recorded rides varies by 21 to 60 % of its mean (the tenths; 36 and 38 % in the median of two
    /// rides of two hours), by positions over 10 s.
    static func ride(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        let pace = generator.uniform(4...7)
        // Legs give 2 to 4 watts for each kilogram.
        let acceleration = min(generator.uniform(0.5...0.95), generator.uniform(2.5...4) / pace)
        var legs: [Leg] = []
        var ridden = 0.0
        while ridden < metres {
            let stretch = generator.uniform(40...220)
            legs.append(hill(metres: stretch, pace: pace, acceleration: acceleration, &generator))
            ridden += stretch
            if generator.chance(0.2) {
                let turn = (generator.chance(0.5) ? 1 : -1) * generator.uniform(50...100)
                legs.append(
                    .ride(metres: 12, pace: generator.uniform(2.8...4.5), turn: turn, acceleration: acceleration))
            }
            if generator.chance(0.12) { legs.append(Leg.halt(seconds: generator.uniform(8...70)).by(.onBicycle)) }
        }
        return legs
    }

    private static func hill(
        metres: Double, pace: Double, acceleration: Double, _ generator: inout SplitMix64
    ) -> Leg {
        let turn = generator.uniform(-10...10)
        if generator.chance(0.25) {
            return .ride(
                metres: metres, pace: pace * generator.uniform(0.45...0.8), turn: turn, acceleration: acceleration)
        }
        // A slope of 2 to 4 % pulls.
        if generator.chance(0.33) {
            return .ride(
                metres: metres, pace: pace * generator.uniform(1.2...1.7), turn: turn,
                acceleration: generator.uniform(0.2...0.4))
        }
        return .ride(
            metres: metres, pace: pace * generator.uniform(0.85...1.15), turn: turn, acceleration: acceleration)
    }

    /// Traffic that rolls at 1.5–8 m/s and seldom stands.
    static func denseTraffic(metres: Double, _ generator: inout SplitMix64) -> [Leg] {
        var legs: [Leg] = []
        var driven = 0.0
        while driven < metres {
            let stretch = generator.uniform(15...120)
            legs.append(.roll(metres: stretch, limit: generator.uniform(1.5...8)))
            driven += stretch
            if generator.chance(0.15) { legs.append(.halt(seconds: generator.uniform(3...40))) }
        }
        return legs
    }
}
