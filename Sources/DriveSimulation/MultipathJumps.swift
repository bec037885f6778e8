import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Reflections that throw the position 20–80 m aside, at once or over some seconds, and let it creep back.
struct MultipathJumps: Sendable {
    private struct Jump {
        /// Metres at the top.
        var displacement: PlanePoint
        /// Seconds from nothing to the top; 0 = at once.
        var rise: Double
        /// Seconds in which it falls to 1/e.
        var decay: Double
        var velocity: PlanePoint
        /// Seconds for which the Doppler velocity is wrong too.
        var velocityLasts: Double
        var age = 0.0

        var share: Double { age < rise ? age / rise : exp(-(age - rise) / decay) }
        var isOver: Bool { age > rise + 8 * decay }
    }

    private var active: [Jump] = []

    /// Metres.
    var offset: PlanePoint { active.reduce(.zero) { $0 + $1.displacement * $1.share } }

    /// m/s.
    var velocity: PlanePoint {
        active.reduce(.zero) { $1.age < $1.velocityLasts ? $0 + $1.velocity : $0 }
    }

    /// - Parameters:
    ///   - dt: seconds.
    ///   - rate: jumps per second.
    mutating func advance(_ dt: Double, rate: Double, _ generator: inout SplitMix64) {
        for index in active.indices { active[index].age += dt }
        active.removeAll { $0.isOver }
        if generator.chance(1 - exp(-rate * dt)) { active.append(Self.drawn(&generator)) }
    }

    private static func drawn(_ generator: inout SplitMix64) -> Jump {
        let displacement = PlanePoint.random(length: 20...80, &generator)
        let rise = generator.chance(0.5) ? 0 : generator.uniform(4...10)
        let speed = generator.uniform(0.3...2.5)
        return Jump(
            displacement: displacement, rise: rise, decay: generator.uniform(15...60),
            velocity: displacement * (speed / displacement.length), velocityLasts: generator.uniform(2...6))
    }
}
