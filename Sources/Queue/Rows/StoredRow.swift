import Profiles
import WaypostCore

/// A row as it is stored: integers in small units, and numbers in place of names.
struct StoredRow {
    /// In the order of a table's columns after `seq`, and of the bits with which `SegmentCoding` says what is not as
    /// predicted: what changes with every fix comes first.
    enum Column: Int {
        case latE7, lonE7, courseDdeg, speedCms, odometerDm, receivedDeltaMs, altitudeCm
        case accuracyDm, hdopC, satellites, reason, timeMs, flags, event
        case altitudeHaeCm, battery, trackable, published, boot
    }

    static let columnCount = 19
    static let columns = """
        lat_e7, lon_e7, course_ddeg, speed_cms, odometer_dm, received_delta_ms, altitude_cm, accuracy_dm, hdop_c, \
        satellites, reason, time_ms, flags, event, altitude_hae_cm, battery, trackable, published, boot
        """

    var seq: Int64
    /// By the number of a column; anything where it is NULL.
    var values = InlineArray<19, Int64>(repeating: 0)
    /// A bit for each column.
    var isNull: UInt32 = 1 << 19 - 1

    /// All columns NULL.
    init(seq: Int64) { self.seq = seq }

    /// The values of the row at an address: indexing them there copies none.
    static func values(of row: UnsafeRawPointer) -> UnsafeRawPointer { row + MemoryLayout<Int64>.size }

    @inline(__always)
    subscript(column: Column) -> Int64? {
        get { isNull >> UInt32(column.rawValue) & 1 == 0 ? values[column.rawValue] : nil }
        set { self[place: column.rawValue] = newValue }
    }

    /// By the number of a column.
    @inline(__always)
    subscript(place place: Int) -> Int64? {
        get { isNull >> UInt32(place) & 1 == 0 ? values[place] : nil }
        set {
            values[place] = max(Statement.range.lowerBound, min(Statement.range.upperBound, newValue ?? 0))
            if newValue == nil { isNull |= 1 << UInt32(place) } else { isNull &= ~(1 << UInt32(place)) }
        }
    }

    private func integer(_ column: Column) -> Int64 { values[column.rawValue] }
}

// Of a location.
extension StoredRow {
    @inline(__always)
    init(_ row: NewRow, seq: Int64, trackable: Int64?, boot: Int64?, reason: Int64?) {
        self.init(seq: seq)
        let location = row.location
        let time = row.date
        self[.trackable] = trackable
        self[.boot] = boot
        self[.timeMs] = time
        self[.receivedDeltaMs] = row.receivedMs.map { $0 &- time }
        self[.latE7] = Int64(location.coordinate.latitudeE7)
        self[.lonE7] = Int64(location.coordinate.longitudeE7)
        self[.altitudeCm] = Scaled.altitude(location.altitudeMSL)
        self[.altitudeHaeCm] = Scaled.altitude(location.altitudeHAE)
        self[.accuracyDm] = Scaled.accuracy(location.horizontalAccuracy)
        self[.speedCms] = Scaled.speed(location.speed)
        self[.courseDdeg] = Scaled.course(location.course)
        self[.hdopC] = Scaled.hdop(location.hdop)
        self[.satellites] = location.satellitesUsed.map(Int64.init)
        self[.battery] = location.power.batteryPercent.map(Int64.init)
        self[.odometerDm] = Scaled.odometer(location.odometer) ?? 0
        self[.reason] = reason
        self[.published] = location.published ? 1 : 0
        self[.event] = Self.number(of: location.event)
        self[.flags] = Self.flags(of: location)
    }

    /// Without what it has in tables of its own: see `details`.
    func location(names: Record.Names) -> QueuedLocation {
        let time = integer(.timeMs)
        let flags = integer(.flags)
        func real(_ column: Column, per unit: Double) -> Double? { self[column].map { Double($0) / unit } }
        func pair(_ shift: Int64) -> Bool? {
            let value = flags >> shift & 3
            return value == 0 ? nil : value == 2
        }
        let event = Int(clamping: integer(.event))
        var row = QueuedLocation(
            seq: seq, bootID: self[.boot].flatMap { names.boots[$0] }, receivedMs: receivedMs,
            location: Location(
                // Without its name, which a damaged file may have lost, it is not one of this device.
                trackable: self[.trackable].map { names.trackables[$0] ?? "unknown-\($0)" },
                time: Record.plausible(time), at: .zero, coordinate: coordinate,
                altitudeMSL: real(.altitudeCm, per: 100), altitudeHAE: real(.altitudeHaeCm, per: 100),
                horizontalAccuracy: real(.accuracyDm, per: 10), speed: real(.speedCms, per: 100),
                course: real(.courseDdeg, per: 10), hdop: real(.hdopC, per: 100),
                satellitesUsed: self[.satellites].map { Int(clamping: $0) },
                mode: FixMode(rawValue: Int(flags >> Flag.mode & 3)),
                quality: FixQuality(rawValue: Int(flags >> Flag.quality & 15) - 1),
                moving: flags & Flag.moving != 0,
                event: Self.events.indices.contains(event) ? Self.events[event] : .none,
                reason: self[.reason].flatMap { names.reasons[$0] },
                odometer: real(.odometerDm, per: 10) ?? 0,
                power: PowerState(
                    batteryPercent: self[.battery].map { Int(clamping: $0) }, charging: pair(Flag.charging),
                    externalPower: pair(Flag.externalPower)),
                activity: Self.activity(flags: flags), published: isPublished))
        if !isPlaced { row.location.removePlace() }
        return row
    }

    var details: Details { Details(flags: integer(.flags)) }

    var coordinate: Coordinate {
        Coordinate(latitudeE7: Int32(clamping: integer(.latE7)), longitudeE7: Int32(clamping: integer(.lonE7)))
    }

    /// Of the fix, or of receipt where there is no position; within what a clock can say.
    var time: UTCTime { Record.plausible(integer(.timeMs)) }

    /// Host wall clock, Unix milliseconds.
    var receivedMs: Int64? { self[.receivedDeltaMs].map { $0 &+ integer(.timeMs) } }

    var isPublished: Bool { integer(.published) != 0 }

    var isPlaced: Bool { integer(.flags) & Flag.isUnplaced == 0 }

    /// Whether it has something in tables of its own.
    var hasDetails: Bool { integer(.flags) & Flag.details != 0 }

    /// Whether it outlives plain fixes and heartbeats when the queue is full.
    var isLasting: Bool { integer(.event) >= 2 }

    /// Whether it is a gap record with this reason.
    func isGap(reason: Int64?) -> Bool {
        integer(.event) == Self.number(of: .gap) && reason != nil && self[.reason] == reason
    }

    /// Leaves of it that there is a gap before it.
    mutating func becomeGap(reason: Int64?) {
        self[.event] = Self.number(of: .gap)
        self[.reason] = reason
        self[.flags] = integer(.flags) & ~Flag.details
    }

    /// Leaves of it what is in no other table. An event that is there alone is none without it.
    mutating func loseDetails() {
        if details.hasGeofence || details.hasTrip || details.hasSettings { self[.event] = Self.number(of: .none) }
        self[.flags] = integer(.flags) & ~Flag.details
    }
}

// The numbers behind flags and events.
extension StoredRow {
    private static let events: [LocationEvent] = [
        .none, .heartbeat, .motionchange, .geofence, .power, .gap, .trip, .panic, .requested, .settings, .beacon,
    ]
    /// In `flags` from 1 on; 0 is unknown.
    private static let activities: [Activity.Kind] = [.still, .onFoot, .running, .onBicycle, .inVehicle]
    /// Percent.
    private static let confidenceStep = 5

    private static func number(of event: LocationEvent) -> Int64 { Int64(events.firstIndex(of: event) ?? 0) }

    /// The bits of the column `flags`; two-bit fields hold 0 for nil.
    private enum Flag {
        static let moving: Int64 = 1
        static let charging: Int64 = 1
        static let externalPower: Int64 = 3
        static let mode: Int64 = 5
        static let quality: Int64 = 7
        static let geofence: Int64 = 1 << 11
        static let trip: Int64 = 1 << 12
        static let settings: Int64 = 1 << 13
        /// Its time is that of receipt.
        static let isUnplaced: Int64 = 1 << 14
        /// Three bits, then five of its confidence.
        static let activity: Int64 = 15
        static let confidence: Int64 = 18
        static let network: Int64 = 1 << 23
        static let details = geofence | trip | settings | network
    }

    /// What a row has in tables of its own.
    struct Details {
        let hasGeofence, hasTrip, hasSettings, hasNetwork: Bool

        fileprivate init(flags: Int64) {
            hasGeofence = flags & Flag.geofence != 0
            hasTrip = flags & Flag.trip != 0
            hasSettings = flags & Flag.settings != 0
            hasNetwork = flags & Flag.network != 0
        }
    }

    @inline(__always)
    private static func flags(of location: Location) -> Int64 {
        func pair(_ value: Bool?) -> Int64 { value.map { $0 ? 2 : 1 } ?? 0 }
        var flags: Int64 = location.moving ? Flag.moving : 0
        flags |= pair(location.power.charging) << Flag.charging
        flags |= pair(location.power.externalPower) << Flag.externalPower
        flags |= Int64(location.mode?.rawValue ?? 0) << Flag.mode
        flags |= (location.quality.map { Int64($0.rawValue) + 1 } ?? 0) << Flag.quality
        if location.geofence != nil { flags |= Flag.geofence }
        if location.trip != nil { flags |= Flag.trip }
        if location.settings != nil { flags |= Flag.settings }
        if location.network != nil { flags |= Flag.network }
        if !location.isPlaced { flags |= Flag.isUnplaced }
        if let activity = location.activity, let number = activities.firstIndex(of: activity.kind) {
            flags |= Int64(number + 1) << Flag.activity
            flags |= Int64(activity.confidence / confidenceStep) << Flag.confidence
        }
        return flags
    }

    private static func activity(flags: Int64) -> Activity? {
        let number = Int(flags >> Flag.activity & 7) - 1
        guard activities.indices.contains(number) else { return nil }
        return Activity(
            kind: activities[number], confidence: Int(flags >> Flag.confidence & 31) * confidenceStep)
    }
}

// In a table with a column for each value: the quarantine.
extension StoredRow {
    /// From the columns `seq`, then `columns`.
    init(_ statement: Statement) {
        self.init(seq: statement.integer(0))
        for place in 0..<Self.columnCount { self[place: place] = statement.optionalInteger(Int32(place + 1)) }
    }

    /// Binds `seq` as this parameter and the columns after it.
    func bind(to statement: Statement, from index: Int32) {
        statement.bind(index, seq)
        for place in 0..<Self.columnCount { statement.bind(index + 1 + Int32(place), self[place: place]) }
    }
}
