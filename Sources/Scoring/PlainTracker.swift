import WaypostCore

/// What most trackers do, as a measure of what is gained: a fix is stored 10 m from the last one, a trip begins 200 m from the
/// parking place, and ends when nothing was stored for five minutes.
struct PlainTracker {
    private static let distanceFilter = 10.0
    private static let fence = 200.0
    /// Milliseconds.
    private static let stopTimeout = 300_000
    private static let accuracyMax = 100.0

    private let start: UTCTime
    private let plane: LocalPlane
    private var moving = false
    /// The last stored position: while parked the centre of the fence.
    private var stored: (place: PlanePoint, time: Int)?
    private(set) var record = DriveRecord()

    init(start: UTCTime, plane: LocalPlane) {
        self.start = start
        self.plane = plane
    }

    /// - Parameter unseen: nobody saw the way from the fix before, so that its metres are not counted.
    mutating func observe(_ fix: Fix, time: UTCTime, unseen: Bool) {
        guard (fix.horizontalAccuracy ?? 0) <= Self.accuracyMax else { return }
        let now = Int(time.milliseconds(since: start))
        let place = plane.point(fix.coordinate)
        guard let stored else {
            record.decisions.append(DriveRecord.Decision(moving: false, at: now, since: now, reason: "start"))
            return store(place, now)
        }
        let due = stored.time + Self.stopTimeout
        if moving, now >= due {
            moving = false
            record.decisions.append(
                DriveRecord.Decision(moving: false, at: due, since: stored.time, reason: "stop-timeout"))
        }
        let distance = (place - stored.place).length
        if moving {
            guard distance >= Self.distanceFilter else { return }
            if !unseen { record.odometer += distance }
            store(place, now)
        } else if distance > Self.fence {
            moving = true
            record.decisions.append(DriveRecord.Decision(moving: true, at: now, since: now, reason: "fence"))
            if !unseen { record.odometer += distance }
            store(place, now)
        }
    }

    private mutating func store(_ place: PlanePoint, _ now: Int) {
        stored = (place, now)
        record.points.append(DriveRecord.Point(time: now, at: now, place: place, moving: moving))
    }
}
