import Profiles
import WaypostCore

/// The newest positions from memory, for an endpoint with `delivery = "latest"`: which of them are news to its server.
///
/// No row is stored for them, and no answer to them settles one.
package struct PositionFeed: Sendable {
    private struct Position: Sendable {
        var time: UTCTime
        var coordinate: Coordinate
    }

    /// Accepted by the server, by trackable; under nil where requests name none.
    private var accepted: [String?: Position] = [:]
    private var sent: [String?: Position] = [:]
    private var underWay: (id: String, positions: [String?: Position])?
    private var lastNumber = Int64.min

    package init() {}

    /// Times up to which the server has seen positions: an older row would move the asset back.
    package var shown: [String?: UTCTime] { accepted.mapValues(\.time) }

    /// A request with positions that the server has not seen. They have numbers like rows, beyond those of all rows: their
    /// times in milliseconds.
    ///
    /// - Parameters:
    ///   - positions: the newest one of each trackable.
    ///   - outbox: uuid (16 bytes) of the queue.
    ///   - sentMs: host wall clock, Unix milliseconds.
    /// - Returns: the request, or nil without news; and whether other positions need a request of their own.
    package mutating func next(
        _ positions: [Location], _ settings: EndpointSettings, outbox: [UInt8], sentMs: Int64?
    ) -> (batch: Batch?, hasMore: Bool) {
        var news: [(key: String?, position: Position, location: Location)] = []
        for location in positions {
            let key = settings.profile.namesTrackable ? location.trackable : nil
            let position = Position(time: location.time, coordinate: location.coordinate)
            // The date of the receiver was corrected.
            if let seen = accepted[key], seen.time > position.time { accepted[key] = nil }
            guard accepted[key]?.coordinate != position.coordinate, sent[key]?.time != position.time,
                !news.contains(where: { $0.key == key })
            else { continue }
            news.append((key, position, location))
        }
        let rows = news.map { _, position, location in
            lastNumber = max(position.time.milliseconds, lastNumber + 1)
            return QueuedLocation(seq: lastNumber, bootID: nil, receivedMs: sentMs, location: location)
        }
        let plan = BatchPlanner(settings).plan(rows, limit: max(1, rows.count), isEnd: true, ages: nil)
        guard let places = plan.batches.first, let first = places.first else { return (nil, false) }
        var batch = Batch(
            endpoint: settings.name, id: "", rows: places.map { rows[$0] }, sentMs: sentMs, outbox: outbox)
        // The same position may be found again by another process, with another time of sending.
        batch.id = "\(batch.outboxName)-\(settings.name)-live-\(rows[first].seq)-\(sentMs ?? 0)"
        let going = Dictionary(places.map { (news[$0].key, news[$0].position) }, uniquingKeysWith: { $1 })
        sent.merge(going) { $1 }
        underWay = (batch.id, going)
        return (batch, plan.batches.count > 1)
    }

    /// The server has accepted the batch with this id, which may be one of rows.
    package mutating func accepted(_ id: String) {
        guard let underWay, underWay.id == id else { return }
        accepted.merge(underWay.positions) { $1 }
        self.underWay = nil
    }
}
