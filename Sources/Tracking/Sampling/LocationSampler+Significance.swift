import Positioning

extension LocationSampler {
    /// Rule `significant`, after Badoo's article on tracking on iOS; it gives the questions, the numbers are ours.
    enum Significance {
        static let intervalMs: Int64 = 300_000
        /// Metres that are significant however inaccurate both fixes are.
        private static let farMin = 500.0
        /// Metres by which the accuracy must get better, besides by half.
        private static let betterMin = 10.0

        static func trigger(_ fix: Selected, since last: Selected, displacement: Double) -> Trigger? {
            if let accuracy = fix.accuracy, let before = last.accuracy, accuracy <= before / 2,
                before - accuracy >= betterMin
            {
                return .accuracy
            }
            let sum = (fix.accuracy ?? FixFilter.unknownAccuracy) + (last.accuracy ?? FixFilter.unknownAccuracy)
            let distance = last.coordinate.distance(to: fix.coordinate)
            if distance >= max(farMin, 5 * sum) { return .displacement }
            let isWorse =
                if let accuracy = fix.accuracy, let before = last.accuracy { accuracy > 1.5 * before } else { false }
            return distance >= max(displacement, sum) && !isWorse ? .displacement : nil
        }
    }
}
