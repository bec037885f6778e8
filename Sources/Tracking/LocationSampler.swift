import Positioning

/// Chooses which fixes of one trackable are kept, against the last one chosen.
public struct LocationSampler: Sendable {
    /// Why a location was selected.
    public enum Trigger: String, Sendable, Codable, CaseIterable {
        /// Nothing was selected before.
        case first
        case interval
        case displacement
        /// The receiver's clock went back: the choice starts anew rather than freeze until the old time comes again.
        case clockStep = "clock-step"
    }

    public struct Selected: Hashable, Sendable {
        public var time: UTCTime
        public var coordinate: Coordinate
    }

    public var settings: Settings
    /// What the next fix is compared with.
    public private(set) var selected: Selected?

    public init(settings: Settings, selected: Selected? = nil) {
        self.settings = settings
        self.selected = selected
    }

    /// A location was recorded for another reason; the next fix is compared with it.
    public mutating func rebase(time: UTCTime, coordinate: Coordinate) {
        selected = Selected(time: time, coordinate: coordinate)
    }

    /// Both limits are inclusive.
    /// - Parameters:
    ///   - resolution: nil = none decided yet: every fix is selected.
    ///   - standing: the position is held, so only the interval can select.
    /// - Returns: why the fix was selected; nil when it was not.
    public mutating func take(
        time: UTCTime, coordinate: Coordinate, resolution: Resolution?, standing: Bool = false
    ) -> Trigger? {
        guard let trigger = trigger(time, coordinate, resolution, standing) else { return nil }
        selected = Selected(time: time, coordinate: coordinate)
        return trigger
    }

    private func trigger(
        _ time: UTCTime, _ coordinate: Coordinate, _ resolution: Resolution?, _ standing: Bool
    ) -> Trigger? {
        guard let selected, let resolution else { return .first }
        let (elapsed, overflow) = time.milliseconds.subtractingReportingOverflow(selected.time.milliseconds)
        if elapsed < 0 || overflow { return .clockStep }
        if elapsed < settings.minGap.milliseconds { return nil }

        let due = elapsed >= resolution.intervalMs
        switch settings.rule {
        case .either:
            if due { return .interval }
            if standing { return nil }
            return selected.coordinate.distance(to: coordinate) >= resolution.displacement ? .displacement : nil
        case .both:
            guard due else { return nil }
            if standing { return .interval }
            return selected.coordinate.distance(to: coordinate) >= resolution.displacement ? .displacement : nil
        }
    }
}
