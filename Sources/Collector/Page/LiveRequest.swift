import WaypostCore

/// What a person wants to know of a request, and of the locations that came with it.
struct LiveRequest {
    struct Location {
        var seq: Int64
        /// Of the fix, UTC in milliseconds.
        var time: Int64
        var latitude: Double
        var longitude: Double
        /// Metres.
        var accuracy: Double?
        /// Metres a second.
        var speed: Double?
        /// Degrees from true north.
        var course: Double?
        var isMoving: Bool?
        var event: String?
        var reason: String?

        /// - Parameter record: of the native shape, checked. Nil for one without a position.
        init?(_ record: JSONValue, seq: Int64) {
            guard let time = record["time_ms"]?.integer,
                let latitude = record.value(at: ["location", "lat"])?.number,
                let longitude = record.value(at: ["location", "lon"])?.number
            else { return nil }
            self.seq = seq
            self.time = time
            self.latitude = latitude
            self.longitude = longitude
            accuracy = record["accuracy"]?.number
            speed = record["speed"]?.number
            course = record["bearing"]?.number
            isMoving = record["moving"]?.bool
            event = record["event"]?.string?.visible(bytesMax: 40)
            reason = record["reason"]?.string?.visible(bytesMax: 40)
        }
    }

    /// As sent, in bytes.
    var bodyBytes: Int
    /// Nil where the body could not be read.
    var device: String?
    var outbox: String?
    var rows = 0
    /// UTC in milliseconds of the oldest and the newest fix.
    var times: ClosedRange<Int64>?
    /// Stored for the first time.
    var new: [Location] = []
    /// Known before.
    var repeated = 0
    /// Nil when there was no answer.
    var status: Int?
    /// The injected fault.
    var fault: String?
    /// Why it was refused.
    var problem: String?

    init(bodyBytes: Int) { self.bodyBytes = bodyBytes }

    mutating func read(_ batch: NativeBatch) {
        device = Self.shown(batch.device)
        outbox = batch.outbox
        rows = batch.rows.count
        let all = batch.rows.compactMap { $0.location?.time }
        if let oldest = all.min(), let newest = all.max() { times = oldest...newest }
    }

    /// A device is known by this, so a name that is too long to show keeps what distinguishes it.
    static func shown(_ name: String) -> String {
        let limit = 120
        guard name.utf8.count > limit else { return name.visible(bytesMax: 6 * limit) }
        var digest = FNV1a()
        for byte in name.utf8 { digest.add(byte) }
        let mark = String(digest.value % 0x1_0000_0000, radix: 16)
        return "\(name.visible(bytesMax: limit)) (\(name.utf8.count) bytes, \(mark))"
    }
}

/// The devices that were heard last, with what they said last.
struct LiveDevices {
    struct Device {
        var name: String
        var outbox: String
        /// Stored since the start of the collector.
        var locations = 0
        /// Wall clock of the last request, UTC in milliseconds.
        var heard: Int64
        var last: LiveRequest.Location?
    }

    /// Beyond this the one that was silent longest is forgotten.
    private static let devicesMax = 500

    private var devices: [String: Device] = [:]

    /// - Returns: how many locations its device has.
    mutating func received(_ request: LiveRequest, at now: Int64) -> Int? {
        guard let name = request.device, let outbox = request.outbox else { return nil }
        var device = devices[name] ?? Device(name: name, outbox: outbox, heard: now)
        (device.outbox, device.heard) = (outbox, now)
        device.locations += request.new.count
        if let newest = request.new.last { device.last = newest }
        devices[name] = device
        if devices.count > Self.devicesMax, let silent = devices.values.min(by: { $0.heard < $1.heard }) {
            devices[silent.name] = nil
        }
        return device.locations
    }

    /// The one that was silent longest first.
    var list: [Device] { devices.values.sorted { ($0.heard, $0.name) < ($1.heard, $1.name) } }
}
