import Queue
import WaypostCore

/// A queue that an earlier version of the daemon left behind, with rows for every endpoint.
struct EarlierQueue {
    /// Times of its rows, Unix milliseconds, ascending.
    let times: [Int64]
    private let endpoints: [WorldEndpoint]
    /// Rows at its beginning that are in a batch of the first endpoint.
    private let batch: Int
    private let uuid: String

    init(dice: Dice, before now: Int64, _ endpoints: [WorldEndpoint]) {
        let count = dice.from(3...60)
        times = (1...count).map { now - Int64(count + 1 - $0) * 20_000 }
        self.endpoints = endpoints.filter { $0.backupFor == nil }
        batch = dice.pick([0, 1, 3])
        uuid = (0..<16).map { _ in String(16 + dice.below(240), radix: 16) }.joined()
    }

    func write(to path: String, _ medium: any QueueMedium) throws(OutboxError) {
        var rows =
            "INSERT INTO state VALUES (1, 'uuid', x'\(uuid)'), (2, 'mark', \(times.count)), (3, 'rows', \(times.count));"
        for (place, endpoint) in endpoints.enumerated() {
            rows += """
                INSERT INTO endpoint VALUES (\(place + 1), '\(endpoint.name)', 'https://\(endpoint.host)' || char(10) || 'sim',
                    0, \(times.count), \(endpoint.required ? 1 : 0), \(endpoint.isEngine ? 1 : 0), 'active', NULL, NULL, 0, 1);
                """
        }
        if batch > 0 {
            rows += "INSERT INTO batch VALUES (1, 1, \(batch), \(batch), NULL, 0, NULL, \(batch), 1, 'earlier');"
        }
        for (place, time) in times.enumerated() {
            rows += """
                INSERT INTO location VALUES (\(place + 1), NULL, NULL, \(time), NULL, 525000000, 134000000, NULL, NULL, NULL,
                    NULL, NULL, NULL, NULL, NULL, 0, NULL, 1, 0, 0);
                """
        }
        try Outbox.makeEarlier(version: 1, at: path, medium: medium, rows: rows)
    }
}
