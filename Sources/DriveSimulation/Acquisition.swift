import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Whether the receiver has a solution, and how wrong the first ones are after the sky came back.
struct Acquisition: Sendable {
    enum Outcome {
        case silent
        case void(knowsTime: Bool)
        /// The error left over from getting the sky back, in metres; zero when all is well.
        case tracking(error: PlanePoint)
    }

    private enum State {
        case tracking
        /// The worst sky since the last fix.
        case blind(Sky)
        case searching(left: Double, after: Sky)
    }

    private var state = State.tracking
    private var error = PlanePoint.zero
    /// Seconds.
    private var decay = 1.0

    mutating func advance(_ dt: Double, sky: Sky, _ generator: inout SplitMix64) -> Outcome {
        error = error.length < 0.1 ? .zero : error * exp(-dt / decay)
        switch (sky, state) {
        case (.off, _):
            state = .blind(.off)
            return .silent
        case (.clear, .tracking):
            return .tracking(error: error)
        case (.clear, .blind(let worst)):
            state = .searching(left: generator.uniform(Self.searchSeconds(after: worst)), after: worst)
            return .void(knowsTime: worst != .off)
        case (.clear, .searching(let left, let worst)) where left > dt:
            state = .searching(left: left - dt, after: worst)
            return .void(knowsTime: worst != .off)
        case (.clear, .searching(_, let worst)):
            state = .tracking
            error = .random(length: Self.firstError(after: worst), &generator)
            decay = generator.uniform(4...12)
            return .tracking(error: error)
        case (_, .tracking):
            state = .blind(sky)
            return .void(knowsTime: true)
        case (_, .blind(let worst)), (_, .searching(_, let worst)):
            state = .blind(Self.worse(worst, sky))
            return .void(knowsTime: worst != .off)
        }
    }

    private static func worse(_ a: Sky, _ b: Sky) -> Sky {
        let order: [Sky] = [.clear, .tunnel, .garage, .off]
        return order.last { $0 == a || $0 == b } ?? a
    }

    private static func searchSeconds(after sky: Sky) -> ClosedRange<Double> {
        switch sky {
        case .clear: 0...0
        case .tunnel: 1...3
        case .garage: 6...25
        case .off: 25...60
        }
    }

    /// Metres.
    private static func firstError(after sky: Sky) -> ClosedRange<Double> {
        switch sky {
        case .clear: 0...0
        case .tunnel: 8...30
        case .garage: 20...90
        case .off: 30...130
        }
    }
}
