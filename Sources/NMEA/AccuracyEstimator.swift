import WaypostCore

/// Horizontal accuracy: what the receiver reports, else HDOP times the range error of its quality.
struct AccuracyEstimator: Sendable {
    private let rangeErrors: UserRangeErrors
    /// Drift is measured by arrival; otherwise by the receiver's own times.
    var live: Bool
    /// Newest fix with satellites, from where dead reckoning drifts away.
    private var anchor: (at: EventTime, timeOfDay: Int)?

    init(rangeErrors: UserRangeErrors, live: Bool) {
        self.rangeErrors = rangeErrors
        self.live = live
    }

    /// - Parameter reported: metres, the receiver's own estimate.
    /// - Returns: metres above 0; nil when unknown.
    mutating func horizontalAccuracy(of fix: Fix, reported: Double?) -> Double? {
        if (FixQuality.gps.rawValue...FixQuality.rtkFloat.rawValue).contains(fix.quality.rawValue) {
            anchor = (fix.at, fix.timeOfDay)
        }
        if let reported { return reported }
        guard let hdop = fix.hdop,
            let metres = rangeErrors.metres(for: fix.quality, secondsAdrift: secondsAdrift(at: fix))
        else { return nil }
        let product = hdop * metres
        return product.isFinite && product > 0 ? product : nil
    }

    private func secondsAdrift(at fix: Fix) -> Double? {
        guard let anchor else { return nil }
        if live { return fix.at.seconds(since: anchor.at) }
        let elapsed = fix.timeOfDay - anchor.timeOfDay
        return Double(elapsed < 0 ? elapsed + 86_400_000 : elapsed) / 1000
    }
}
