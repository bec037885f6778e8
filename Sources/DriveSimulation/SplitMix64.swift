#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed on every machine.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// 0 ≤ x < 1. Not `Double.random(in:using:)`, whose algorithm may change with the standard library.
    package mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    mutating func uniform(_ range: ClosedRange<Double>) -> Double {
        range.lowerBound + unit() * (range.upperBound - range.lowerBound)
    }

    mutating func integer(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + min(Int(unit() * Double(range.count)), range.count - 1)
    }

    mutating func chance(_ probability: Double) -> Bool { unit() < probability }

    /// Mean 0, deviation 1 (Box–Muller; the second value of the pair is not kept, so that each call costs the same).
    mutating func gaussian() -> Double {
        let radius = (-2 * log(1 - unit())).squareRoot()
        return radius * cos(2 * .pi * unit())
    }
}
