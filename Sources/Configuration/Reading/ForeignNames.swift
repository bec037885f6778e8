/// Names of settings in the SDKs and apps that people come from, and where the setting is here. Those that are accepted as another
/// name of a key are no matter of this table.
enum ForeignNames {
    /// The home of a key that has another name elsewhere.
    struct Home {
        /// As it is written: `[tracking]`.
        let table: String
        let key: String
        /// What must be written where the name alone does not say it.
        let value: String?

        init(_ table: String, _ key: String, _ value: String? = nil) {
            (self.table, self.key, self.value) = (table, key, value)
        }

        var words: String { "\(key)\(value.map { " = \($0)" } ?? "") in \(table)" }
    }

    static let homes: [String: Home] = [
        // Transistor's background-geolocation.
        "isMoving": Home("[tracking]", "start_moving"),
        "desiredAccuracy": Home("[resolution.default]", "priority"),
        "fastestLocationUpdateInterval": Home("[sampling]", "min_gap"),
        "elasticityMultiplier": Home("[sampling]", "elasticity"),
        "disableElasticity": Home("[sampling]", "elasticity", "\"off\""),
        "useSignificantChangesOnly": Home("[sampling]", "rule", "\"significant\""),
        "stopDetectionDelay": Home("[tracking]", "stop_timeout"),
        "motionTriggerDelay": Home("[tracking]", "motion_trigger_delay"),
        "geofenceInitialTriggerEntry": Home("[geofences]", "initial_enter"),
        "url": Home("[[endpoint]]", "base_url"),
        "httpTimeout": Home("[[endpoint]]", "timeout"),
        "autoSyncThreshold": Home("[[endpoint]]", "min_batch"),
        "maxBatchSize": Home("[[endpoint]]", "batch_size"),
        "batchSync": Home("[[endpoint]]", "batch_size"),
        "maxRecordsToPersist": Home("[outbox]", "max_records"),
        "maxDaysToPersist": Home("[outbox]", "max_age"),
        "logLevel": Home("[log]", "level"),
        // Ably Asset Tracking.
        "accuracy": Home("[resolution.default]", "priority"),
        "desiredInterval": Home("[resolution.default]", "interval"),
        "minimumDisplacement": Home("[resolution.default]", "displacement"),
        "batteryLevelThreshold": Home("[resolution.apply_without_constraints]", "battery_threshold"),
        "constantLocationEngineResolution": Home("[resolution.constant_engine]", "interval"),
        "rawLocations": Home("[[channel]]", "raw_locations"),
        // OwnTracks and Traccar Client.
        "locatorInterval": Home("[resolution.default]", "interval"),
        "locatorDisplacement": Home("[resolution.default]", "displacement"),
        "pubInterval": Home("[resolution.default]", "interval"),
        "ignoreInaccurateLocations": Home("[tracking]", "accuracy_limit"),
        "deviceId": Home("[device]", "id"),
        // gpsd, gpsbabel and terminal programs.
        "baudrate": Home("[source]", "baud"),
        "baud_rate": Home("[source]", "baud"),
        "baudRate": Home("[source]", "baud"),
        "speed": Home("[source]", "baud"),
        "frequency": Home("[resolution.default]", "interval"),
        "distance": Home("[resolution.default]", "displacement"),
    ]
}
