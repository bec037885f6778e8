import WaypostCore
import WaypostNMEA
import WaypostTracking

/// Writes effects and epochs as JSON Lines, for `replay` and `decode`. Unknown values are absent.
///
/// Course over ground is `course` in `decode` and `bearing` in `replay`: `decode` shows what the receiver says in the receiver's
/// words, `replay` the record as it goes over the wire, where servers call it bearing.
package struct TraceJSON {
    package var writer = JSONWriter(reserving: 1 << 16)
    private var engine: Resolution?
    private var network: [(trackable: String, resolution: Resolution)] = []
    /// Naming the trackable in each line would only repeat one word where there is one.
    private let namesTrackables: Bool

    package init(namesTrackables: Bool = false) { self.namesTrackables = namesTrackables }

    package mutating func effect(_ effect: Effect, decided: UTCTime?) {
        switch effect {
        case .record(let location): record(location, decided: decided)
        case .announceMotion(let change): motion(change)
        case .announceHalt(let from, let to): span("halt", from, to, reason: nil, decided: decided)
        case .announceGap(let from, let to, let reason): span("gap", from, to, reason: reason, decided: decided)
        case .announceMove(let time, let metres): move(time, metres, decided: decided)
        case .announceResolution(let trackable, let resolution):
            if let index = network.firstIndex(where: { $0.trackable == trackable }) {
                network[index].resolution = resolution
            } else {
                network.append((trackable, resolution))
            }
            resolutions(decided: decided)
        case .setReceiver(let resolution):
            engine = resolution
            resolutions(decided: decided)
        case .announceLowBattery, .announceRule, .sleepReceiver, .wakeReceiver, .count: break
        }
    }

    private mutating func record(_ location: Location, decided: UTCTime?) {
        writer.beginObject()
        writer.field("type", word: "location")
        if location.isPlaced { writer.field("time_ms", location.time.milliseconds) }
        writer.field("at_ms", decided?.milliseconds)
        if namesTrackables { writer.field("trackable", location.trackable) }
        if location.isPlaced {
            writer.field("latitude", scaled: Int64(location.coordinate.latitudeE7), places: 7)
            writer.field("longitude", scaled: Int64(location.coordinate.longitudeE7), places: 7)
        }
        writer.field("altitude", location.altitudeMSL, places: 2)
        writer.field("accuracy", scaled: Scaled.accuracy(location.horizontalAccuracy), places: 1)
        writer.field("speed", location.speed, places: 2)
        writer.field("bearing", scaled: Scaled.course(location.course), places: 1)
        writer.field("moving", location.moving)
        writer.field("activity", location.activity?.kind.rawValue)
        writer.field("event", location.event.rawValue)
        writer.field("reason", location.reason)
        writer.field("odometer", location.odometer, places: 1)
        writer.field("published", location.published)
        if let crossing = location.geofence {
            writer.field("geofence_id", crossing.id)
            writer.field("geofence_name", crossing.name)
            writer.field("geofence_server_id", crossing.serverID)
            writer.field("geofence_action", crossing.action.rawValue)
            if crossing.source == .beacon { writer.field("geofence_source", "BEACON") }
        }
        writer.endObject()
        writer.newline()
    }

    private mutating func move(_ time: UTCTime, _ metres: Double, decided: UTCTime?) {
        writer.beginObject()
        writer.field("type", word: "move")
        writer.field("time_ms", time.milliseconds)
        writer.field("at_ms", decided?.milliseconds)
        writer.field("distance", metres, places: 1)
        writer.endObject()
        writer.newline()
    }

    private mutating func span(
        _ type: StaticString, _ from: UTCTime, _ to: UTCTime?, reason: RecordReason?, decided: UTCTime?
    ) {
        writer.beginObject()
        writer.field("type", word: type)
        writer.field("from_ms", from.milliseconds)
        writer.field("to_ms", to?.milliseconds)
        writer.field("at_ms", decided?.milliseconds)
        writer.field("reason", reason?.rawValue)
        writer.endObject()
        writer.newline()
    }

    /// A fix that was not believed.
    package mutating func refused(_ fix: Fix, _ reason: FixFilter.Rejection, decided: UTCTime?) {
        writer.beginObject()
        writer.field("type", word: "refused")
        writer.field("time_ms", fix.time?.milliseconds)
        writer.field("at_ms", decided?.milliseconds)
        writer.field("reason", reason.rawValue)
        writer.field("latitude", scaled: Int64(fix.coordinate.latitudeE7), places: 7)
        writer.field("longitude", scaled: Int64(fix.coordinate.longitudeE7), places: 7)
        writer.field("accuracy", scaled: Scaled.accuracy(fix.horizontalAccuracy), places: 1)
        writer.endObject()
        writer.newline()
    }

    private mutating func motion(_ change: MotionChange) {
        writer.beginObject()
        writer.field("type", word: "motionchange")
        writer.field("time_ms", (change.moving ? change.since ?? change.decided : change.decided)?.milliseconds)
        writer.field("at_ms", change.decided?.milliseconds)
        writer.field("moving", change.moving)
        writer.field("reason", change.reason.rawValue)
        if change.moving {
            writer.field("departed_ms", change.since?.milliseconds)
        } else {
            writer.field("stopped_ms", change.since?.milliseconds)
        }
        writer.field("evidence", change.evidence.evidence, places: 1)
        writer.field("distance", change.evidence.distance, places: 1)
        writer.field("speed", change.evidence.speed, places: 2)
        writer.field("accuracy", scaled: Scaled.accuracy(change.evidence.accuracy), places: 1)
        writer.endObject()
        writer.newline()
    }

    private mutating func resolutions(decided: UTCTime?) {
        // At the start the engine's resolution comes before the first trackable: one line for both.
        guard engine != nil, !network.isEmpty else { return }
        writer.beginObject()
        writer.field("type", word: "resolution")
        writer.field("at_ms", decided?.milliseconds)
        if let engine {
            writer.key("engine")
            resolution(engine)
        }
        writer.key("network")
        writer.beginObject()
        for (trackable, value) in network {
            writer.key(trackable)
            resolution(value)
        }
        writer.endObject()
        writer.endObject()
        writer.newline()
    }

    private mutating func resolution(_ value: Resolution) {
        writer.beginObject()
        writer.field("priority", value.priority.word)
        writer.field("interval_ms", value.intervalMs)
        writer.field("displacement", value.displacement)
        writer.endObject()
    }

    /// An object with what became of a log.
    /// - Parameters:
    ///   - published: locations that were kept and published.
    ///   - odometer: metres.
    ///   - first: of the first dated fix, Unix milliseconds; nil = there was none.
    ///   - last: of the last one.
    ///   - faults: what was wrong with the receiver's fixes.
    package static func summary(
        _ decoded: NMEACounters, _ tracked: TrackerCounters, published: Int, odometer: Double, first: Int64?,
        last: Int64?, faults: [ReceiverWatch.Fault] = [], to writer: inout JSONWriter
    ) {
        writer.beginObject()
        writer.field("type", word: "summary")
        writer.field("sentences", decoded.sentences)
        writer.field("bytes", decoded.bytes)
        writer.field("fixes", decoded.fixes)
        writer.field("void_epochs", decoded.voidEpochs)
        writer.field("dateless", decoded.dateless)
        writer.field("checksum_errors", decoded.checksumErrors)
        writer.field("too_long", decoded.tooLong)
        writer.field("bad_fields", decoded.badFields)
        writer.field("late", decoded.late)
        // Rare: absent = none.
        func count(_ name: StaticString, _ value: Int) { if value > 0 { writer.field(name, value) } }
        count("repeats", decoded.repeats)
        count("disagreeing", decoded.disagreeing)
        count("dates_refused", decoded.datesRefused)
        if !faults.isEmpty {
            writer.key("faults")
            writer.beginArray()
            for fault in faults { writer.value(fault.words) }
            writer.endArray()
        }
        writer.field("admitted", tracked.admitted)
        writer.key("rejected")
        writer.beginObject()
        for reason in FixFilter.Rejection.allCases where tracked.rejected(reason) > 0 {
            writer.key(reason.rawValue)
            writer.value(Int64(tracked.rejected(reason)))
        }
        writer.endObject()
        writer.field("trips", tracked.trips)
        writer.field("stops", tracked.stops)
        writer.field("halts", tracked.halts)
        writer.field("gaps", tracked.gaps)
        writer.field("locations", tracked.records)
        writer.field("published", published)
        writer.field("odometer", odometer, places: 1)
        writer.field("first_ms", first)
        writer.field("last_ms", last)
        writer.endObject()
    }

    /// One decoded epoch. A void one has mode 1 and no position; an epoch without a time is left out.
    package mutating func epoch(_ epoch: Epoch) {
        switch epoch {
        case .fix(let fix):
            writer.beginObject()
            time(fix.time, fix.timeOfDay)
            writer.field("mode", fix.mode.rawValue)
            writer.field("latitude", scaled: Int64(fix.coordinate.latitudeE7), places: 7)
            writer.field("longitude", scaled: Int64(fix.coordinate.longitudeE7), places: 7)
            writer.field("altitude", fix.altitudeMSL, places: 2)
            writer.field("speed", fix.speed, places: 3)
            writer.field("course", scaled: Self.hundredths(fix.course), places: 2)
            writer.field("accuracy", fix.horizontalAccuracy.map { max($0, 0.01) }, places: 2)
            writer.field("hdop", fix.hdop, places: 2)
            writer.field("satellites", fix.satellitesUsed)
            writer.field("quality", fix.quality.rawValue)
            writer.endObject()
            writer.newline()
        case .void(let void):
            guard let timeOfDay = void.timeOfDay else { return }
            writer.beginObject()
            time(void.time, timeOfDay)
            writer.field("mode", FixMode.none.rawValue)
            writer.field("hdop", void.hdop, places: 2)
            writer.field("satellites", void.satellitesUsed)
            writer.field("quality", void.quality.rawValue)
            writer.endObject()
            writer.newline()
        }
    }

    /// 0…35999: what would round up to 360 degrees is 0.
    private static func hundredths(_ course: Double?) -> Int64? {
        Scaled.integer(course, places: 2).map { $0 == 36_000 ? 0 : $0 }
    }

    private mutating func time(_ time: UTCTime?, _ timeOfDay: Int) {
        if let time {
            writer.field("time", time.iso8601)
            writer.field("time_ms", time.milliseconds)
        } else {
            writer.field("time_of_day", UTCTime.clock(timeOfDay))
        }
    }
}
