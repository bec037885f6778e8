import WaypostCore

/// What is sent to pages, as lines of JSON. Their reader is Sources/Pages/live/arrivals.js.
enum LiveEvents {
    /// A large batch becomes several events, so that no single one is long.
    private static let rowsMax = 500

    /// `counters` is JSON, and becomes a part of other JSON.
    static func line(_ counters: String) -> [UInt8] { counters.utf8.filter { $0 != 0x0A } }

    static func beat(_ now: Int64) -> [UInt8] {
        object { $0.field("at", now) }
    }

    /// Replaces all that a page has of another life of the collector, or of before a long pause.
    static func reset(
        run: String, started: Int64, at now: Int64, devices: LiveDevices, remotes: [String: [UInt8]],
        counters: [UInt8]
    ) -> [UInt8] {
        object { json in
            json.field("run", run)
            json.field("started", started)
            json.field("at", now)
            json.key("devices")
            json.beginArray()
            for device in devices.list {
                json.beginObject()
                json.field("device", device.name)
                json.field("outbox", device.outbox)
                json.field("locations", device.locations)
                json.field("heard", device.heard)
                if let last = device.last {
                    json.key("last")
                    write(last, to: &json)
                }
                json.endObject()
            }
            json.endArray()
            json.key("remotes")
            json.beginArray()
            for (_, remote) in remotes.sorted(by: { $0.key < $1.key }) {
                remote.withUnsafeBufferPointer { json.value(rendered: $0) }
            }
            json.endArray()
            write(counters, to: &json)
        }
    }

    /// The locations that are new, in as many events as it takes.
    static func rows(_ request: LiveRequest, at now: Int64) -> [[UInt8]] {
        stride(from: 0, to: request.new.count, by: rowsMax).map { start in
            object { json in
                json.field("at", now)
                json.field("device", request.device)
                json.field("outbox", request.outbox)
                json.key("locations")
                json.beginArray()
                for location in request.new[start...].prefix(rowsMax) { write(location, to: &json) }
                json.endArray()
            }
        }
    }

    /// - Parameter total: locations of the device.
    static func request(_ request: LiveRequest, at now: Int64, total: Int?, counters: [UInt8]) -> [UInt8] {
        object { json in
            json.field("at", now)
            json.field("bytes", request.bodyBytes)
            json.field("device", request.device)
            json.field("outbox", request.outbox)
            json.field("device_locations", total)
            json.field("rows", request.rows)
            json.field("new", request.new.count)
            json.field("repeated", request.repeated)
            json.field("oldest", request.times?.lowerBound)
            json.field("newest", request.times?.upperBound)
            json.field("status", request.status)
            json.field("fault", request.fault)
            json.field("problem", request.problem)
            write(counters, to: &json)
        }
    }

    /// All that is known of the settings and commands of one device.
    static func remote(_ remote: LiveRemote, at now: Int64) -> [UInt8] {
        object { json in
            json.field("at", now)
            json.field("device", remote.device)
            json.field("desired", remote.desired)
            if let report = remote.report {
                json.key("reported")
                write(report, to: &json)
            }
            json.key("commands")
            json.beginArray()
            for each in remote.commands { write(each, to: &json) }
            json.endArray()
        }
    }

    private static func write(_ report: LiveRemote.Report, to json: inout JSONWriter) {
        json.beginObject()
        json.field("version", report.version)
        json.field("state", report.state)
        json.field("in_force", report.inForce)
        json.field("clamped", table(report.clamped))
        json.field("rejected", table(report.rejected))
        json.field("is_cut", report.isCut)
        json.endObject()
    }

    private static func table(_ rows: [[String]]) -> JSONValue {
        .array(rows.map { .array($0.map(JSONValue.string)) })
    }

    private static func write(_ entry: LiveRemote.Command, to json: inout JSONWriter) {
        json.beginObject()
        json.field("id", entry.command.id)
        json.field("do", entry.command.verb.visible(bytesMax: 40))
        json.field("came", entry.command.came)
        json.field("expires", entry.command.expires)
        json.field("state", entry.command.state.rawValue)
        json.field("done", entry.isDone)
        json.field("words", entry.words)
        json.endObject()
    }

    private static func object(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var json = JSONWriter(isASCII: true)
        json.beginObject()
        write(&json)
        json.endObject()
        return json.bytes
    }

    private static func write(_ counters: [UInt8], to json: inout JSONWriter) {
        json.key("counters")
        counters.withUnsafeBufferPointer { json.value(rendered: $0) }
    }

    /// seq, time, latitude, longitude, accuracy, speed, course, moving, event, reason; null where it is not known.
    private static func write(_ location: LiveRequest.Location, to json: inout JSONWriter) {
        json.beginArray()
        json.value(location.seq)
        json.value(location.time)
        json.value(location.latitude)
        json.value(location.longitude)
        for number in [location.accuracy, location.speed, location.course] {
            if let number { json.value(number) } else { json.null() }
        }
        if let isMoving = location.isMoving { json.value(isMoving) } else { json.null() }
        for text in [location.event, location.reason] {
            if let text { json.value(text) } else { json.null() }
        }
        json.endArray()
    }
}
