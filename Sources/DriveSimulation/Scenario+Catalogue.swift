extension Scenario {
    /// In the order in which a list shows them.
    ///
    /// No stand lasts between 240 and 400 s: on which side of a stop timeout of 300 s such a one falls is a matter for
    /// a unit test, not for a score.
    package static let all: [Scenario] = [
        parkedDay, city, jam, motorway, walkDriveWalk, reversing, garage, powerUp, deliveries, day, demo,
    ]

    static let parkedDay = Scenario(name: "parked-day", summary: "24 hours in one place") { _ in
        [.park(seconds: 86_400)]
    }

    static let city = Scenario(name: "city", summary: "three trips through a town with red lights of 10 to 120 s") {
        g in
        var legs: [Leg] = [.park(seconds: g.uniform(420...900))]
        for _ in 0..<3 {
            legs += TripPlan.city(metres: g.uniform(2500...6000), &g)
            legs.append(.park(seconds: g.uniform(420...1800)))
        }
        return legs
    }

    static let jam = Scenario(name: "jam", summary: "a queue that creeps 3 to 25 m at a time") { g in
        [.park(seconds: g.uniform(420...900))]
            + TripPlan.city(metres: g.uniform(600...1200), &g)
            + TripPlan.jam(metres: g.uniform(500...900), &g)
            + TripPlan.city(metres: g.uniform(600...1200), &g)
            + [.park(seconds: g.uniform(600...1200))]
    }

    static let motorway = Scenario(name: "motorway", summary: "35 km with tunnels of 1.5 and 7 km") { g in
        [.park(seconds: g.uniform(420...900))]
            + TripPlan.tunnels(openMetres: 20_000, &g)
            + [.park(seconds: g.uniform(600...1200))]
    }

    static let walkDriveWalk = Scenario(name: "walk-drive-walk", summary: "150 to 400 m on foot before and after") {
        g in
        [.park(seconds: g.uniform(420...900))]
            + TripPlan.walkDriveWalk(metres: g.uniform(2000...5000), &g)
            + [.park(seconds: g.uniform(600...1200))]
    }

    static let reversing = Scenario(name: "reversing", summary: "12 m backwards out of a bay, then forward") { g in
        var legs: [Leg] = [.park(seconds: g.uniform(420...900))]
        for _ in 0..<3 {
            legs += TripPlan.reversing(metres: g.uniform(800...2500), &g)
            legs.append(.park(seconds: g.uniform(420...1200)))
        }
        return legs
    }

    static let garage = Scenario(name: "garage", summary: "sky lost before parking and back after leaving") { g in
        [.park(seconds: g.uniform(420...900))]
            + TripPlan.intoGarage(metres: g.uniform(2000...4000), &g)
            + [Leg.park(seconds: g.uniform(1200...3600)).under(.garage)]
            + TripPlan.outOfGarage(metres: g.uniform(2000...4000), &g)
            + [.park(seconds: g.uniform(600...1200))]
    }

    static let powerUp = Scenario(name: "power-up", summary: "receiver off, cold start before and during a drive") {
        g in
        [Leg.park(seconds: g.uniform(600...1800)).under(.off), .park(seconds: g.uniform(90...180))]
            + TripPlan.city(metres: g.uniform(2000...4000), &g)
            + [.park(seconds: g.uniform(420...600)), Leg.park(seconds: g.uniform(1200...3600)).under(.off)]
            + TripPlan.city(metres: 400, &g).map { $0.under(.off) }
            + TripPlan.city(metres: g.uniform(2000...4000), &g)
            + [.park(seconds: g.uniform(600...1200))]
    }

    static let deliveries = Scenario(name: "deliveries", summary: "a round of halts of 150 to 210 s") { g in
        [.park(seconds: g.uniform(420...900))]
            + TripPlan.deliveries(doors: 8, metresBetween: 300...1200, &g)
            + [.park(seconds: g.uniform(600...1200))]
    }

    static let day = Scenario(name: "day", summary: "24 hours, seven trips of every kind, about 48 km") { g in
        let hour = 3600.0
        func parked(until hours: Double, _ g: inout SplitMix64) -> Leg {
            .park(until: hours * hour + g.uniform(-600...600))
        }
        var legs: [Leg] = [parked(until: 6.5, &g)]
        legs += TripPlan.walkDriveWalk(metres: 5500, &g) + [parked(until: 8.5, &g)]
        legs += TripPlan.tunnels(openMetres: 6000, &g) + [parked(until: 10.5, &g)]
        legs += TripPlan.deliveries(doors: 6, metresBetween: 500...1000, &g) + [parked(until: 13, &g)]
        legs += TripPlan.intoGarage(metres: 5000, &g) + [parked(until: 15, &g).under(.garage)]
        legs += TripPlan.outOfGarage(metres: 4000, &g) + [parked(until: 17, &g)]
        legs += TripPlan.reversing(metres: 2000, &g) + TripPlan.jam(metres: 600, &g)
        legs += TripPlan.city(metres: 1500, &g) + [parked(until: 20, &g)]
        legs += TripPlan.city(metres: 4500, &g) + [.park(until: 24 * hour)]
        return legs
    }

    static let demo = Scenario(name: "demo", summary: "half an hour: two trips with a stop of seven minutes") { g in
        [.park(seconds: 180)]
            + TripPlan.city(metres: 3200, &g)
            + [.park(seconds: 430)]
            + TripPlan.city(metres: 2200, &g)
            + [.park(seconds: 390)]
    }

    /// Other ways to travel, for the score of activities; starts and stops are scored on drives.
    package static let onTheWay: [Scenario] = [walk, run, ride, rideAndWalk, denseTraffic]

    static let walk = Scenario(name: "walk", summary: "3 km on foot through a town") { g in
        [.park(seconds: g.uniform(60...120))] + TripPlan.stroll(metres: 3000, &g) + [.park(seconds: 420)]
    }

    static let run = Scenario(name: "run", summary: "6 km running, with walks to catch breath") { g in
        [.park(seconds: g.uniform(60...120))] + TripPlan.jog(metres: 6000, &g) + [.park(seconds: 420)]
    }

    static let ride = Scenario(name: "ride", summary: "9 km on a bicycle, with hills and red lights") { g in
        [.park(seconds: g.uniform(60...120))] + TripPlan.ride(metres: 9000, &g) + [.park(seconds: 420)]
    }

    static let rideAndWalk = Scenario(name: "ride-and-walk", summary: "a bicycle, half a kilometre on foot, a bicycle")
    {
        g in
        [.park(seconds: g.uniform(60...120))]
            + TripPlan.ride(metres: 2500, &g)
            + [Leg.halt(seconds: g.uniform(15...60)).by(.onBicycle)]
            + TripPlan.stroll(metres: 500, &g)
            + [Leg.halt(seconds: g.uniform(15...60)).by(.onBicycle)]
            + TripPlan.ride(metres: 2500, &g)
            + [.park(seconds: 420)]
    }

    static let denseTraffic = Scenario(name: "dense-traffic", summary: "3 km that roll at 1.5 to 8 m/s") { g in
        [.park(seconds: g.uniform(60...120))]
            + TripPlan.city(metres: g.uniform(600...1200), &g)
            + TripPlan.denseTraffic(metres: 3000, &g)
            + TripPlan.city(metres: g.uniform(600...1200), &g)
            + [.park(seconds: 420)]
    }
}
