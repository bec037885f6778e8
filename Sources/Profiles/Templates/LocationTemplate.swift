import WaypostCore

/// The canonical record, `$location`: complete without its batch, so it has id, trackable and boot of its own.
final class LocationTemplate: Sendable {
    let template: JSONTemplate

    static let shared = LocationTemplate()

    private init() {
        let compiler = TemplateCompiler()
        template = compiler.json(Self.tree, .record, "", location: nil)
        precondition(compiler.reader.problems.isEmpty, "the canonical record is not a valid template")
    }

    /// The record of the native profile, then what only its verbose form has.
    private static let tree: ProfileNode = object([
        ("location", object([("lat", "$lat"), ("lon", "$lon")])), ("timeStamp", "$time_s"), ("accuracy", "$accuracy"),
        ("speed", "$speed_mps"), ("bearing", "$bearing"), ("altitude", "$altitude"), ("time_ms", "$time_ms"),
        ("clock_ms", "$clock_ms"),
        ("seq", "$seq"), ("trackable", "$trackable"), ("boot_id", "$boot_id"), ("altitude_hae", "$altitude_hae"),
        ("satellites", "$satellites"), ("fix_mode", "$fix_mode"), ("quality", "$quality"), ("simulated", "$simulated"),
        ("moving", "$moving"),
        ("activity", object([("type", "$activity"), ("confidence", "$activity_confidence")])), ("event", "$event"),
        (
            "geofence",
            object([
                ("id", "$geofence_id"), ("name", "$geofence_name"), ("action", "$geofence_action"),
                ("source", "$geofence_beacon"), ("server_id", "$geofence_server_id"),
            ])
        ),
        (
            "beacon",
            object([("uuid", "$beacon_uuid"), ("major", "$beacon_major"), ("minor", "$beacon_minor")])
        ),
        ("reason", "$reason"), ("settings", "$settings"), ("odometer", "$odometer"), ("battery", "$battery_pct"),
        ("charging", "$charging"),
        ("external_power", "$external_power"), ("trip_start_ms", "$trip_start_ms"),
        ("trip_start_lat", "$trip_start_lat"), ("trip_start_lon", "$trip_start_lon"), ("trip_end_ms", "$trip_end_ms"),
        ("trip_distance", "$trip_distance"), ("trip_duration", "$trip_duration"), ("trip_idle", "$trip_idle"),
        ("trip_max_speed", "$trip_max_speed"), ("id", "$id"), ("hdop", "$hdop"), ("received_ms", "$received_ms"),
        ("published", "$published"),
    ])

    private static func object(_ members: [(String, ProfileNode)]) -> ProfileNode {
        ProfileNode(.table(members.map { ProfileNode.Member($0.0, $0.1) }))
    }
}

extension ProfileNode: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) {
        self.init(.string(text))
    }
}

extension JSONWriter {
    /// The canonical record of a row, as one object.
    ///
    /// - Parameter outbox: uuid (16 bytes) of the queue that numbered the row.
    package mutating func record(_ row: QueuedLocation, outbox: [UInt8], in context: RenderContext = RenderContext()) {
        let batch = Batch(endpoint: "", id: "", rows: [row], sentMs: nil, outbox: outbox)
        let context = BatchContext(EndpointSettings(baseURL: "", device: ""), context, batch)
        LocationTemplate.shared.template.writeWhole(row, in: context, to: &self)
    }
}
