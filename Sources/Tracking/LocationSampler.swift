import Positioning
public struct LocationSampler: Sendable {}
