import Channel
import Profiles
import WaypostCore

/// The locations of a trackable on their way to viewers, under one name.
struct LiveStream {
    /// A message has a location and as many before it.
    static let rowsMax = ChannelMessage.skippedMax + 1

    var feed: LocationFeed
    /// Beyond the cursor, oldest first.
    private var rows: [QueuedLocation] = []
    private var tooMany = 0

    init(_ feed: LocationFeed) { self.feed = feed }

    /// Rows that were too many to be seen.
    var passed: Int { tooMany + feed.passed }

    mutating func add(_ location: Location) {
        guard location.isPlaced else { return }
        // The row has no number in the queue yet: its time is one, which no other row of the trackable has.
        let seq = max(location.time.milliseconds, (rows.last?.seq ?? feed.cursor) + 1)
        rows.append(QueuedLocation(seq: seq, bootID: nil, receivedMs: nil, location: location))
        guard rows.count > Self.rowsMax else { return }
        rows.removeFirst()
        tooMany += 1
    }

    mutating func next(bytesMax: Int, at now: EventTime) -> ChannelMessage? {
        let message = feed.next(rows, bytesMax: bytesMax, at: now)
        rows.removeAll { $0.seq <= feed.cursor }
        return message
    }
}
