import Configuration
import WaypostCore
import WaypostTracking

/// Writes the data as the page reads it: 4 bytes with the length of a JSON head, the head, and packed columns.
struct ReportDataWriter {
    private let data: ReportData
    private var json = JSONWriter(reserving: 1 << 16)
    private var columns = ColumnPacking()

    init(_ data: ReportData) { self.data = data }

    mutating func bytes() -> [UInt8] {
        json.beginObject()
        json.field("version", 1)
        json.field("name", data.name)
        rows()
        verdicts()
        summary()
        trips()
        stops()
        spans()
        fences()
        json.field("keptStanding", data.keptStanding)
        outcomes()
        json.field("units", data.options.units.rawValue)
        json.nullable("tiles", data.options.tiles)
        json.nullable("attribution", data.options.attribution)
        json.endObject()
        let head = json.bytes
        let length = (0..<4).map { UInt8(truncatingIfNeeded: head.count >> (24 - 8 * $0)) }
        return length + head + columns.bytes
    }

    private mutating func rows() {
        let table = data.table
        json.field("rows", table.count)
        json.key("cuts")
        json.beginArray()
        for row in table.cuts { json.value(Int64(row)) }
        json.endArray()
        json.key("columns")
        json.beginArray()
        column("t", columns.append(table.times))
        column("lat", columns.append(table.latitudes))
        column("lon", columns.append(table.longitudes))
        column("speed", columns.append(table.speeds))
        column("accuracy", columns.append(table.accuracies))
        column("satellites", columns.append(table.satellites))
        column("altitude", columns.append(table.altitudes))
        column("verdict", columns.append(table.judged))
        json.endArray()
    }

    private mutating func column(_ name: String, _ bytes: Int) {
        json.beginObject()
        json.field("name", name)
        json.field("bytes", bytes)
        json.endObject()
    }

    private mutating func verdicts() {
        json.key("verdicts")
        list(data.table.verdicts) { json, verdict in
            json.field("kind", verdict.kind.rawValue)
            json.nullable("reason", verdict.reason)
        }
    }

    private mutating func summary() {
        json.key("summary")
        TraceJSON.summary(
            data.decoded, data.tracked, published: data.published, odometer: data.odometer, first: data.first,
            last: data.last, to: &json)
        json.nullable("nothing", data.nothing)
    }

    private mutating func trips() {
        json.key("trips")
        list(data.journey.trips) { json, trip in
            json.field("number", trip.number)
            json.field("from", trip.start)
            json.field("to", trip.end)
            json.field("open", trip.isOpen)
            json.field("metres", trip.metres, places: 1)
            json.field("idle", Int64(trip.idle * 1000))
            json.nullable("maxSpeed", trip.maxSpeed, places: 2)
            json.field("kept", trip.kept)
            json.key("start")
            Self.write(trip.departure, to: &json)
            guard let arrival = trip.arrival else { return json.nullable("end", nil as String?) }
            json.key("end")
            Self.write(arrival, to: &json)
        }
    }

    private mutating func stops() {
        json.key("stops")
        list(data.journey.stops) { json, stop in
            json.field("from", stop.start)
            json.field("to", stop.end)
            json.field("open", stop.isOpen)
            json.nullable("lat", (stop.place?.latitudeE7).map(Int.init))
            json.nullable("lon", (stop.place?.longitudeE7).map(Int.init))
            json.key("why")
            Self.write(stop.why, to: &json)
        }
    }

    private mutating func spans() {
        json.key("halts")
        list(data.journey.halts) { json, halt in
            json.field("from", halt.start)
            json.field("to", halt.end)
        }
        json.key("gaps")
        list(data.journey.gaps) { json, gap in
            json.field("from", gap.start)
            json.field("to", gap.end)
            json.field("open", gap.isOpen)
            json.field("words", gap.reason.words)
        }
    }

    private mutating func fences() {
        json.key("geofences")
        list(data.geofences) { json, fence in
            json.field("id", fence.id)
            json.nullable("name", fence.name)
            switch fence.shape {
            case .circle(let centre, let radius):
                json.field("lat", centre.latitude, places: 7)
                json.field("lon", centre.longitude, places: 7)
                json.field("radius", radius, places: 1)
            case .polygon(let vertices):
                json.key("ring")
                json.beginArray()
                for vertex in vertices {
                    json.beginArray()
                    json.value(scaled: Int64(vertex.latitudeE7), places: 7)
                    json.value(scaled: Int64(vertex.longitudeE7), places: 7)
                    json.endArray()
                }
                json.endArray()
            }
        }
        json.key("crossings")
        list(data.journey.crossings) { json, crossing in
            json.field("t", crossing.time)
            json.field("id", crossing.fence)
            json.field("action", crossing.action)
        }
    }

    private mutating func outcomes() {
        let kilometres = data.journey.metres / 1000
        var packed: [Int] = []
        for outcome in data.outcomes {
            packed.append(columns.append(outcome.kept.compactMap { data.table.row(at: $0.time).map(Int64.init) }))
        }
        json.key("whatIf")
        list(Array(zip(data.outcomes, packed))) { json, item in
            let (outcome, bytes) = item
            json.field("key", outcome.whatIf.key)
            json.field("label", outcome.whatIf.label)
            json.field("words", outcome.whatIf.words)
            json.field("kept", outcome.published)
            json.nullable("perKm", kilometres >= 0.5 ? Double(outcome.published) / kilometres : nil, places: 1)
            json.nullable("worst", outcome.error?.worst, places: 1)
            json.nullable("p95", outcome.error?.most, places: 1)
            json.field("bytes", outcome.bytes)
            json.field("compact", outcome.compact)
            json.field("bytesColumn", bytes)
        }
    }

    private mutating func list<Item>(_ items: [Item], _ write: (inout JSONWriter, Item) -> Void) {
        json.beginArray()
        for item in items {
            json.beginObject()
            write(&json, item)
            json.endObject()
        }
        json.endArray()
    }

    private static func write(_ decision: Decision, to json: inout JSONWriter) {
        json.beginObject()
        json.field("reason", decision.reason.rawValue)
        json.nullable("at", decision.decided)
        json.field("evidence", decision.evidence.evidence, places: 2)
        json.nullable("evidenceMin", decision.evidenceMin, places: 1)
        json.field("distance", decision.evidence.distance, places: 2)
        json.nullable("distanceMax", decision.distanceMax, places: 1)
        json.nullable("speed", decision.evidence.speed, places: 2)
        json.nullable("accuracy", decision.evidence.accuracy, places: 1)
        json.field("words", decision.words)
        json.nullable("other", decision.other)
        json.endObject()
    }
}

extension JSONWriter {
    /// Like `field`, but what is unknown is there as null: the page looks at values, not at which keys there are.
    fileprivate mutating func nullable(_ name: StaticString, _ value: String?) {
        key(name)
        if let value { self.value(value) } else { null() }
    }

    fileprivate mutating func nullable(_ name: StaticString, _ value: Int64?) {
        key(name)
        if let value { self.value(value) } else { null() }
    }

    fileprivate mutating func nullable(_ name: StaticString, _ value: Int?) { nullable(name, value.map(Int64.init)) }

    fileprivate mutating func nullable(_ name: StaticString, _ value: Double?, places: Int = 1) {
        if let value, value.isFinite { field(name, value, places: places) } else { nullable(name, nil as String?) }
    }
}
