/// How the asset moves, in the words that phone systems and their servers use.
public struct Activity: Hashable, Sendable, Codable {
    public enum Kind: String, Sendable, Codable, CaseIterable {
        case still
        case onFoot = "on_foot"
        case running
        case onBicycle = "on_bicycle"
        case inVehicle = "in_vehicle"
    }
    public var kind: Kind
    /// Percent, 0…100 in steps of 5.
    public let confidence: Int

    /// - Parameter confidence: percent; rounded to the next step.
    public init(kind: Kind, confidence: Int) {
        self.kind = kind
        self.confidence = (max(0, min(100, confidence)) + 2) / 5 * 5
    }
}
