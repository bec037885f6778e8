import Profiles
import WaypostCore
import WaypostTracking

/// Which rows the next message of a trackable takes. The channel is a live view, so a backlog is never replayed: the
/// newest selected row is the location, and the newest rows before it ride along.
package struct LocationChoice: Sendable {
    /// Number of the row whose location it is.
    package let head: Int64
    package let feature: ChannelFeature
    /// Oldest fix first.
    package let skipped: [ChannelFeature]
    /// Rows before the head that ride in no message, because there are too many.
    package let passed: Int
    /// Rows that say nothing of their accuracy.
    package let withoutAccuracy: Int

    /// - Parameter rows: of the trackable, in the order of the queue.
    /// - Returns: nil when none of them is selected and has an accuracy.
    package init?(_ rows: some BidirectionalCollection<QueuedLocation>) {
        var withoutAccuracy = 0
        var head: QueuedLocation?
        var headFeature: ChannelFeature?
        var waiting = SkippedLocations<ChannelFeature>(countMax: ChannelMessage.skippedMax)
        var before = 0
        for row in rows.reversed() {
            let feature = ChannelFeature(row.location)
            if let feature, head != nil {
                before += 1
                waiting.add(feature, time: row.location.time, sequence: row.seq)
            } else if let feature, row.location.published {
                (head, headFeature) = (row, feature)
            } else if feature == nil, head != nil || row.location.published {
                withoutAccuracy += 1
            }
        }
        guard let head, let headFeature else { return nil }
        self.head = head.seq
        feature = headFeature
        skipped = waiting.elements
        passed = before - waiting.count
        self.withoutAccuracy = withoutAccuracy
    }
}
