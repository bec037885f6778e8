import WaypostCore

/// How far the queue has got with keeping within its limits.
struct Retention {
    /// Boot clock when ages were last checked.
    var agesCheckedAt: EventTime?
    /// The file must not hold more live bytes than this while space is short; nil = enough space.
    var spaceLimit: Int64?
    /// As of the last look.
    private(set) var shortage: SpaceShortage?
    /// Which limit has removed rows last.
    var reached: QueueLimit?
    /// Boot clock, nanoseconds.
    private var spaceCheckedAt: Int64?
    /// Between reaching a limit and having a tenth of it free.
    var isThinning = false
    /// The pass that is under way, from 1; 0 = none yet.
    var thinLevel = 0
    /// Rows up to here were seen by it.
    var thinnedThrough: Int64 = 0
    /// No pass has kept a row after this one.
    var coarseThrough: Int64 = 0

    private static let spaceInterval: Int64 = 60_000_000_000
    /// The queue may always be this large, and the log needs this much beside it.
    private static let leastBytes: Int64 = 256 << 10
    private static let headroom: Int64 = 128 << 10

    /// Queries the file system at most once a minute.
    mutating func checkSpace(
        of path: String, on medium: any QueueMedium, minFree: Int64?, fileBytes: Int64, freeBytes: Int64
    ) {
        guard let minFree else { return (spaceLimit, shortage) = (nil, nil) }
        let now = medium.now
        if let spaceCheckedAt, now >= spaceCheckedAt, now - spaceCheckedAt < Self.spaceInterval { return }
        spaceCheckedAt = now
        guard let space = medium.space(of: path) else { return }
        found(space, minFree: minFree, fileBytes: fileBytes, freeBytes: freeBytes)
    }

    /// - Parameter space: of the file system.
    mutating func found(
        _ space: (available: Int64, size: Int64), minFree: Int64, fileBytes: Int64, freeBytes: Int64
    ) {
        let wanted = min(minFree, space.size / 4)
        if space.available >= wanted - freeBytes { return (spaceLimit, shortage) = (nil, nil) }
        shortage = SpaceShortage(free: space.available, wanted: wanted)
        if spaceLimit == nil { limitSpace(fileBytes: fileBytes) }
    }

    /// From now on the file does not grow, until there is space again.
    mutating func limitSpace(fileBytes: Int64) {
        spaceLimit = max(Self.leastBytes, fileBytes - Self.headroom)
    }

    /// What survives a restart.
    var stored: Int64 { thinnedThrough << 5 | Int64(thinLevel) }

    init(stored: Int64 = 0) {
        guard stored > 0 else { return }
        thinLevel = Int(stored & 31)
        thinnedThrough = stored >> 5
        if thinLevel > 0 { coarseThrough = .max }
    }
}
