import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// An error that wanders: normal with a fixed deviation at any instant, forgetting itself over a correlation time.
struct OrnsteinUhlenbeck: Sendable {
    let sigma: Double
    private(set) var value: Double

    /// Starts in the middle of its life, not at zero.
    init(sigma: Double, _ generator: inout SplitMix64) {
        self.sigma = sigma
        value = sigma * generator.gaussian()
    }

    /// - Parameters:
    ///   - dt: seconds.
    ///   - time: correlation time in seconds; it may change from step to step, the deviation stays.
    mutating func advance(_ dt: Double, time: Double, _ generator: inout SplitMix64) {
        let kept = exp(-dt / time)
        value = value * kept + sigma * (1 - kept * kept).squareRoot() * generator.gaussian()
    }
}

/// The same in the plane.
struct PlanarWander: Sendable {
    private var east: OrnsteinUhlenbeck
    private var north: OrnsteinUhlenbeck

    init(sigma: Double, _ generator: inout SplitMix64) {
        east = OrnsteinUhlenbeck(sigma: sigma, &generator)
        north = OrnsteinUhlenbeck(sigma: sigma, &generator)
    }

    var value: PlanePoint { PlanePoint(east: east.value, north: north.value) }

    mutating func advance(_ dt: Double, time: Double, _ generator: inout SplitMix64) {
        east.advance(dt, time: time, &generator)
        north.advance(dt, time: time, &generator)
    }
}
