import Positioning

/// The fixes of the last minutes, in memory only: a departure is recognised late and dated back with them.
struct FixRing: Sendable {
    /// A fix in 88 bytes; NaN stands for nil.
    struct Entry: Sendable {
        var at: EventTime
        var time: UTCTime
        var coordinate: Coordinate
        private var altitudeMSL: Double
        private var altitudeHAE: Double
        private var accuracy: Double
        private var speedTold: Double
        private var courseTold: Double
        private var hdop: Double
        private var satellites: Int16
        private var mode: UInt8
        private var quality: UInt8
        private var rollover: Bool

        init(_ fix: Fix, time: UTCTime, at: EventTime) {
            self.at = at
            self.time = time
            coordinate = fix.coordinate
            altitudeMSL = fix.altitudeMSL ?? .nan
            altitudeHAE = fix.altitudeHAE ?? .nan
            accuracy = fix.horizontalAccuracy ?? .nan
            speedTold = fix.speed ?? .nan
            courseTold = fix.course ?? .nan
            hdop = fix.hdop ?? .nan
            satellites = fix.satellitesUsed.map { Int16(clamping: $0) } ?? -1
            mode = UInt8(clamping: fix.mode.rawValue)
            quality = UInt8(clamping: fix.quality.rawValue)
            rollover = fix.rollover
        }

        var speed: Double? { speedTold.isNaN ? nil : speedTold }
        var course: Double? { courseTold.isNaN ? nil : courseTold }
        var horizontalAccuracy: Double? { accuracy.isNaN ? nil : accuracy }

        var fix: Fix {
            Fix(
                time: time, timeOfDay: time.timeOfDay, at: at, coordinate: coordinate,
                altitudeMSL: altitudeMSL.isNaN ? nil : altitudeMSL, altitudeHAE: altitudeHAE.isNaN ? nil : altitudeHAE,
                horizontalAccuracy: horizontalAccuracy, speed: speed, course: course, hdop: hdop.isNaN ? nil : hdop,
                satellitesUsed: satellites < 0 ? nil : Int(satellites), mode: FixMode(rawValue: Int(mode)) ?? .twoD,
                quality: FixQuality(rawValue: Int(quality)) ?? .gps, rollover: rollover)
        }
    }

    private static let bytesMax = 65_536
    private static let spacing = 0.8

    private var entries = RingBuffer<Entry>(countMax: bytesMax / MemoryLayout<Entry>.stride)
    /// Seconds.
    var span: Double

    init(span: Duration) { self.span = span.inSeconds }

    var count: Int { entries.count }
    var newest: Entry? { entries.last }
    subscript(index: Int) -> Entry { entries[index] }

    mutating func removeAll() { entries.removeAll() }

    /// What lies before the newest fix is no part of what begins now.
    mutating func keepNewest() { entries.removeFirst(max(0, entries.count - 1)) }

    /// Thinned to 1 Hz: a fix replaces its predecessor that came within a second of the one before. The newest is always in.
    mutating func append(_ fix: Fix, time: UTCTime, at: EventTime) {
        let entry = Entry(fix, time: time, at: at)
        let count = entries.count
        if count >= 2, entries[count - 1].at.seconds(since: entries[count - 2].at) < Self.spacing {
            entries[count - 1] = entry
        } else {
            entries.append(entry)
        }
        while entries.count > 1, at.seconds(since: entries[0].at) > span { entries.removeFirst() }
    }

    /// Most fixes of the minute before this one lie within so many metres of a place. false with fewer than five fixes.
    func lay(within radius: Double, of place: Coordinate, before index: Int) -> Bool {
        let end = entries[index].at
        var number = 0
        var near = 0
        for index in (0..<index).reversed() {
            guard end.seconds(since: entries[index].at) <= 60 else { break }
            number += 1
            if entries[index].coordinate.distance(to: place) <= radius { near += 1 }
        }
        return number >= 5 && 2 * near > number
    }

    /// The median of the last 30 s, fixes of poor accuracy left out; nil when there is none.
    func recentPlace(accuracyMax: Double) -> StoredState.Anchor? {
        guard let newest = entries.last else { return nil }
        var place = PlaceEstimate(countMax: 40)
        for index in 0..<entries.count where newest.at.seconds(since: entries[index].at) <= 30 {
            let entry = entries[index]
            if (entry.horizontalAccuracy ?? 0) <= accuracyMax {
                place.add(entry.coordinate, accuracy: entry.horizontalAccuracy, at: entry.at)
            }
        }
        return place.median()
    }
}
