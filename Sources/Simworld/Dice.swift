import DriveSimulation

/// The only chance in the world. Each part has dice of its own, so that leaving out one fault changes nothing elsewhere.
final class Dice {
    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        // Seeds that follow each other begin far apart.
        random = SplitMix64(seed: random.next())
    }

    func next() -> UInt64 { random.next() }
    func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    func from(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }
    func unit() -> Double { Double(random.next() >> 11) * 0x1p-53 }
    func between(_ low: Double, _ high: Double) -> Double { low + unit() * (high - low) }
    func chance(_ share: Double) -> Bool { unit() < share }
    func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }

    func shuffle<Element>(_ elements: inout [Element]) {
        for index in elements.indices.dropFirst().reversed() { elements.swapAt(index, below(index + 1)) }
    }
}
