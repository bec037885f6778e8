import Queue
import WaypostCore

/// The queue and how often it is made safe.
package struct OutboxConfig: Hashable, Sendable {
    /// The path is `outbox.db` in `STATE_DIRECTORY`, or in `/var/lib/waypost`, unless the file has one.
    package var settings: OutboxSettings
    /// The longest time that a row waits in memory before it is on disk. The default is 10 s; 0 = commit each row.
    package var commitWindow = Duration.seconds(10)

    /// The folder of the queue and other state.
    package var directory: String { settings.path.parentDirectory }

    init(reading table: TableReader, vendor: [TableReader]) {
        let directory = table.environment.directory("STATE_DIRECTORY", fallback: "/var/lib/waypost")
        settings = OutboxSettings(path: "\(directory)/outbox.db")
        table.read("path", into: &settings.path, as: .absolutePath("the queue"))
        table.read("commit_window", into: &commitWindow, as: .duration(.between(0, 3600)), on: .reload)

        let rows = ValueForm<Int>.integer("a number of rows", .atLeast(100))
        let holder = vendor.first { $0.has("dataStorageSize") } ?? vendor.first
        for other in vendor where other !== holder {
            guard other.take("dataStorageSize") != nil else { continue }
            other.report("dataStorageSize", "found again, expected once: all endpoints share one queue")
        }
        table.read(
            "max_records", into: &settings.maxRecords, as: rows,
            alias: holder.map { .init("dataStorageSize", .integer("a number of points", .atLeast(100)), in: $0) })
        table.read("max_bytes", into: &settings.maxBytes, as: ValueForm<Int64>.size(.atLeast(1_048_576)).orNone("off"))
        table.read("max_age", into: &settings.maxAge, as: ValueForm<Duration>.duration(.atLeast(3600)).orNone("off"))
        table.read("min_free", into: &settings.minFree, as: ValueForm<Int64>.size().orNone("off"))
        table.read(
            "on_full", into: &settings.onFull, as: .word(OutboxSettings.OnFull.allCases.map { ($0.rawValue, $0) }))
    }
}
