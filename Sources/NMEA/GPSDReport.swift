import WaypostCore

/// The gpsd at the other end, from its first line.
public struct GPSDVersion: Hashable, Sendable {
    /// `3.22`
    public var release: String
    /// Of the protocol; 3 is the one that is understood.
    public var major: Int
    public var minor: Int

    public init(release: String, major: Int, minor: Int) {
        self.release = release
        self.major = major
        self.minor = minor
    }

    /// `3.14`
    public var protocolVersion: String { "\(major).\(minor)" }
}

/// A receiver that gpsd reads.
public struct GPSDDevice: Hashable, Sendable {
    /// As gpsd was given it: `/dev/ttyACM0`, `tcp://127.0.0.1:2000`.
    public var path: String
    /// `u-blox`, `NMEA0183`; nil until gpsd has found out.
    public var driver: String?
    /// true = gpsd has it open, false = gpsd has closed it; nil when it does not say.
    public var isActive: Bool?
    /// It speaks a binary protocol of its own, from which gpsd takes the receiver's own estimates.
    public var isNative: Bool

    public init(path: String, driver: String? = nil, isActive: Bool? = nil, isNative: Bool = false) {
        self.path = path
        self.driver = driver
        self.isActive = isActive
        self.isNative = isNative
    }
}

/// One line of gpsd's protocol (gpsd_json(5)), as far as fixes need it.
enum GPSDReport: Hashable, Sendable {
    case version(GPSDVersion)
    case devices([GPSDDevice])
    case device(GPSDDevice)
    case tpv(GPSDPosition)
    case sky(device: String?, hdop: Double?, satellitesUsed: Int?, inView: Int?)
    case gst(device: String?, time: UTCTime, accuracy: Double)
    case error(String)
    /// The newest reports of all receivers, as gpsd answers `?POLL`: what says how good a fix is comes before the fix.
    case poll([GPSDReport])
    /// A class that is not needed, or one without what makes it useful.
    case other
}

/// A TPV object. nil = the key is not there or has a value of another kind.
struct GPSDPosition: Hashable, Sendable {
    var device: String?
    /// 0 and 1 = no fix, 2 = 2D, 3 = 3D.
    var mode: Int?
    var status: Int?
    var time: UTCTime?
    var coordinate: Coordinate?
    var altitudeMSL: Double?
    var altitudeHAE: Double?
    var speed: Double?
    var course: Double?
    /// Metres; what it means depends on the driver.
    var horizontalError: Double?
}

extension GPSDReport {
    /// Longer texts and lists are cut: whoever answers on the port decides what we would keep.
    private static let devicesMax = 32
    private static let satellitesMax = 1000
    /// Arrays of an answer to `?POLL`, in the order in which they are used. gpsd before 3.0 had the last of each pair.
    private static let polled = ["gst", "sky", "skyviews", "tpv", "fixes"]

    /// nil when the line is no JSON object with a class.
    ///
    /// - Parameter badFields: counts keys whose value is of the wrong kind; the others of the line are used.
    init?(line: [UInt8], badFields: inout Int) {
        // gpsd before 3.0, and patched ones, write `nan` for what they do not know.
        guard let value = JSONReader.read(line, omitting: "satellites", readsNonFinite: true) else { return nil }
        self.init(value, badFields: &badFields)
    }

    private init?(_ value: JSONValue, badFields: inout Int) {
        guard var object = GPSDObject(value), let name = object.text("class") else { return nil }
        switch name {
        case "VERSION":
            let release = object.text("release")
            guard let major = object.integer("proto_major") else {
                self = .other
                break
            }
            self = .version(
                GPSDVersion(release: release ?? "?", major: major, minor: object.integer("proto_minor") ?? 0))
        case "DEVICES":
            let items = object.array("devices").prefix(Self.devicesMax)
            self = .devices(
                items.compactMap { item in
                    guard var entry = GPSDObject(item) else { return nil }
                    defer { badFields += entry.defects }
                    return GPSDDevice(&entry)
                })
        case "DEVICE": self = GPSDDevice(&object).map(GPSDReport.device) ?? .other
        case "TPV": self = .tpv(GPSDPosition(&object))
        case "SKY":
            let used = object.integer("uSat").flatMap { $0 >= 0 ? $0 : nil }
            let inView = object.integer("nSat").flatMap { (0...Self.satellitesMax).contains($0) ? $0 : nil }
            self = .sky(
                device: object.text("device"), hdop: object.number("hdop", ReceiverRange.dilution),
                satellitesUsed: used, inView: inView)
        case "GST": self = Self.gst(&object)
        case "ERROR": self = object.text("message").map(GPSDReport.error) ?? .other
        case "POLL":
            let items = Self.polled.flatMap { object.array($0).prefix(Self.devicesMax) }
            self = .poll(
                items.compactMap { item in
                    let report = GPSDReport(item, badFields: &badFields)
                    if case .poll = report { return nil }
                    return report
                })
        default: self = .other
        }
        badFields += object.defects
    }

    private static func gst(_ object: inout GPSDObject) -> GPSDReport {
        guard let time = object.time("time"), let latitude = object.number("lat"), let longitude = object.number("lon")
        else { return .other }
        let accuracy = (latitude * latitude + longitude * longitude).squareRoot()
        guard ReceiverRange.accuracy.contains(accuracy) else { return .other }
        return .gst(device: object.text("device"), time: time, accuracy: accuracy)
    }
}

extension GPSDDevice {
    fileprivate init?(_ object: inout GPSDObject) {
        guard let path = object.text("path") else { return nil }
        self.path = path
        driver = object.text("driver")
        isActive = object.activation("activated")
        isNative = (object.integer("native") ?? 0) > 0
    }
}

extension GPSDPosition {
    fileprivate init(_ object: inout GPSDObject) {
        device = object.text("device")
        mode = object.integer("mode")
        status = object.integer("status")
        time = object.time("time")
        if let latitude = object.number("lat"), let longitude = object.number("lon") {
            coordinate = Coordinate(latitude: latitude, longitude: longitude)
        }
        altitudeMSL = object.number("altMSL", ReceiverRange.altitude)
        altitudeHAE = object.number("altHAE", ReceiverRange.altitude)
        if altitudeMSL == nil, altitudeHAE == nil {
            // gpsd before 3.20 has only this one, above mean sea level; later ones leave its meaning open.
            altitudeMSL = object.number("alt", ReceiverRange.altitude)
        }
        speed = object.number("speed", ReceiverRange.speed)
        course = object.number("track", ReceiverRange.course)
        horizontalError = object.number("eph", ReceiverRange.accuracy)
    }
}

/// Looks members up by name; the first of a name counts.
private struct GPSDObject {
    /// Bytes.
    private static let textMax = 256
    /// Seconds from 1970 that are a time.
    private static let secondsMax = 1e10

    private let value: JSONValue
    /// Members that were asked for and have a value of another kind.
    private(set) var defects = 0

    init?(_ value: JSONValue) {
        guard case .object = value else { return nil }
        self.value = value
    }

    private mutating func member<Value>(_ name: String, _ convert: (JSONValue) -> Value?) -> Value? {
        guard let value = value[name], value != .null else { return nil }
        guard let converted = convert(value) else {
            defects += 1
            return nil
        }
        return converted
    }

    mutating func text(_ name: String) -> String? {
        member(name) { $0.string?.cut(toBytes: Self.textMax) }
    }

    mutating func number(_ name: String) -> Double? { member(name, \.number) }

    mutating func number(_ name: String, _ range: ClosedRange<Double>) -> Double? {
        member(name) { $0.number.flatMap { range.contains($0) ? $0 : nil } }
    }

    mutating func integer(_ name: String) -> Int? {
        member(name) { if case .int(let int) = $0 { Int(exactly: int) } else { nil } }
    }

    /// gpsd before 3.0 wrote seconds since 1970.
    mutating func time(_ name: String) -> UTCTime? {
        member(name) { value in
            if let text = value.string { return UTCTime.milliseconds(iso8601: text).map(UTCTime.init(milliseconds:)) }
            guard let seconds = value.number, abs(seconds) < Self.secondsMax else { return nil }
            return UTCTime(milliseconds: Int64((seconds * 1000).rounded()))
        }
    }

    /// When gpsd opened a device, or 0 for one that it has closed.
    mutating func activation(_ name: String) -> Bool? {
        member(name) { value in
            switch value {
            case .string(let text): !text.isEmpty
            case .int(let int): int != 0
            case .double(let double): double != 0
            default: nil
            }
        }
    }

    mutating func array(_ name: String) -> [JSONValue] {
        member(name, \.items) ?? []
    }
}
