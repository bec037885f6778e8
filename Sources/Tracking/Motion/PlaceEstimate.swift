import WaypostCore

/// The median of positions where the asset stands, component by component: one multipath fix does not move it.
struct PlaceEstimate: Sendable {
    private struct Sample: Sendable {
        var coordinate: Coordinate
        var accuracy: Double?
    }

    private var samples: [Sample] = []
    private var lastAt: EventTime?
    private let countMax: Int

    init(countMax: Int) { self.countMax = countMax }
    var count: Int { samples.count }

    mutating func reset() {
        samples.removeAll(keepingCapacity: true)
        lastAt = nil
    }

    /// Adds at most one position a second, and none beyond the limit.
    /// - Returns: whether it was added.
    @discardableResult
    mutating func add(_ coordinate: Coordinate, accuracy: Double?, at: EventTime) -> Bool {
        if let lastAt, at.seconds(since: lastAt) < 0.8 { return false }
        guard samples.count < countMax else { return false }
        lastAt = at
        samples.append(Sample(coordinate: coordinate, accuracy: accuracy))
        return true
    }

    /// nil without a sample.
    func median() -> StoredState.Anchor? {
        guard let first = samples.first else { return nil }
        let origin = Int64(first.coordinate.longitudeE7)
        let latitudes = samples.map { Int64($0.coordinate.latitudeE7) }.sorted()
        let longitudes = samples.map { Self.shortWay(Int64($0.coordinate.longitudeE7) - origin) }.sorted()
        let accuracies = samples.compactMap(\.accuracy).sorted()
        let middle = samples.count / 2
        return StoredState.Anchor(
            coordinate: Coordinate(
                latitudeE7: Int32(latitudes[middle]), longitudeE7: Int32(Self.shortWay(origin + longitudes[middle]))),
            accuracy: accuracies.isEmpty ? nil : accuracies[accuracies.count / 2])
    }

    /// Across the antimeridian the shorter way counts.
    private static func shortWay(_ units: Int64) -> Int64 {
        if units > 1_800_000_000 { return units - 3_600_000_000 }
        if units < -1_800_000_000 { return units + 3_600_000_000 }
        return units
    }
}
