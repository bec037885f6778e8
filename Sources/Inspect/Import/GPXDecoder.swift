import WaypostCore
import WaypostNMEA

/// Track points of GPX 1.0 and 1.1 in, epochs out, in the order of the file. Waypoints and routes are no measurements and are
/// passed over.
struct GPXDecoder {
    private var xml = XMLReader()
    private var track: GPXTrack

    init(settings: NMEADecoder.Settings) { track = GPXTrack(rangeErrors: settings.rangeErrors) }

    /// Points count as sentences.
    var counters: NMEACounters { track.counters }
    /// The line of the first time without a zone; nil where each has one.
    var zoneless: Int? { track.zoneless }
    /// The first point that was not understood, or not completely, and how many there are.
    var defects: (line: Int, words: String, count: Int)? {
        track.firstDefect.map { ($0.line, $0.words, track.counters.badFields) }
    }

    /// - Throws: at the first mistake of the XML, and where it is no GPX.
    mutating func read(_ bytes: Span<UInt8>, _ emit: (Epoch) -> Void) throws(XMLReader.Problem) {
        track.counters.bytes += bytes.count
        do throws(XMLReader.Problem) {
            try xml.read(bytes) { track.take($0, line: $1, emit) }
        } catch {
            // What came first counts, however the bytes were cut.
            throw track.problem ?? error
        }
        if let problem = track.problem { throw problem }
    }

    mutating func end() throws(XMLReader.Problem) { try xml.end() }
}

/// The track point that is being read.
private struct GPXTrack {
    private struct Point {
        let line: Int
        let coordinate: Coordinate?
        /// Elements around its content.
        let depth: Int
        var altitude: Double?
        var time: UTCTime?
        var fix = ""
        var speed: Double?
        var course: Double?
        var hdop: Double?
        var satellites: Int?
        var accuracy: Double?
    }

    private let rangeErrors: UserRangeErrors
    private var depth = 0
    private var point: Point?
    private var text = ""
    var counters = NMEACounters()
    private(set) var firstDefect: (line: Int, words: String)?
    private(set) var zoneless: Int?
    private(set) var problem: XMLReader.Problem?

    init(rangeErrors: UserRangeErrors) { self.rangeErrors = rangeErrors }

    mutating func take(_ event: XMLReader.Event, line: Int, _ emit: (Epoch) -> Void) {
        if problem != nil { return }
        switch event {
        case .begin(let name, let attributes):
            if depth == 0, Self.local(name) != "gpx" {
                problem = XMLReader.Problem(line: line, words: "the document is <\(name)>, not <gpx>")
            }
            depth += 1
            text = ""
            if point == nil, Self.local(name) == "trkpt" { begin(attributes, line) }
        case .text(let more):
            if point != nil, text.utf8.count < XMLReader.textMax { text += more }
        case .end(let name):
            depth -= 1
            guard let point else { return }
            if depth < point.depth {
                self.point = nil
                finish(point, emit)
            } else {
                set(Self.local(name), isOwn: depth == point.depth, line)
            }
            text = ""
        }
    }

    /// Without the prefix of its namespace.
    private static func local(_ name: String) -> Substring {
        name.lastIndex(of: ":").map { name[name.index(after: $0)...] } ?? name[...]
    }

    private mutating func begin(_ attributes: [String: String], _ line: Int) {
        counters.sentences += 1
        var coordinate: Coordinate?
        if let latitude = attributes["lat"].flatMap(Self.number), let longitude = attributes["lon"].flatMap(Self.number)
        {
            coordinate = Coordinate(latitude: latitude, longitude: longitude)
        }
        if coordinate == nil { defect(line, "a track point without a position") }
        point = Point(line: line, coordinate: coordinate, depth: depth)
    }

    /// - Parameter isOwn: directly in the point, not in its extensions, where names mean what others want.
    private mutating func set(_ name: Substring, isOwn: Bool, _ line: Int) {
        guard var point else { return }
        let value = Self.number(text)
        switch name {
        case "ele" where isOwn: point.altitude = checked(value, ReceiverRange.altitude, name, line)
        case "time" where isOwn:
            point.time = time(text, line)
            if point.time == nil { defect(line, "no time of the form 2026-03-02T07:00:00Z") }
            if let time = point.time, !ReceiverRange.days.contains(time.daysSince1970) {
                defect(line, "a time that no receiver has, \(time.iso8601)")
            }
        case "fix" where isOwn: point.fix = Self.trimmed(text)
        case "hdop" where isOwn: point.hdop = checked(value, ReceiverRange.dilution, name, line)
        case "sat" where isOwn: point.satellites = checked(value, 0...999, name, line).map { Int($0) }
        case "speed": point.speed = checked(value, ReceiverRange.speed, name, line)
        case "course": point.course = checked(value, ReceiverRange.course, name, line)
        case "accuracy": point.accuracy = checked(value, ReceiverRange.accuracy, name, line)
        default: break
        }
        self.point = point
    }

    private mutating func checked(
        _ value: Double?, _ range: ClosedRange<Double>, _ name: Substring, _ line: Int
    ) -> Double? {
        if let value, range.contains(value) { return value }
        defect(line, "an unreadable <\(name)>")
        return nil
    }

    private mutating func defect(_ line: Int, _ words: String) {
        counters.badFields += 1
        if firstDefect == nil { firstDefect = (line, words) }
    }

    private mutating func finish(_ point: Point, _ emit: (Epoch) -> Void) {
        guard let time = point.time else {
            counters.dateless += 1
            return
        }
        guard let coordinate = point.coordinate, point.fix != "none" else {
            counters.voidEpochs += 1
            let reason: NoFixReason = point.fix == "none" ? .void : .noPosition
            emit(
                .void(
                    VoidEpoch(
                        time: time, timeOfDay: time.timeOfDay, at: .zero, reason: reason,
                        satellitesUsed: point.satellites, hdop: point.hdop)))
            return
        }
        let date = ReceiverRange.days.contains(time.daysSince1970) ? time : nil
        counters.fixes += 1
        if date == nil { counters.dateless += 1 }
        let quality: FixQuality = point.fix == "dgps" ? .dgps : point.fix == "pps" ? .pps : .gps
        let product = point.hdop.flatMap { hdop in
            rangeErrors.metres(for: quality, secondsAdrift: nil).map { $0 * hdop }
        }
        emit(
            .fix(
                Fix(
                    time: date, timeOfDay: time.timeOfDay, at: .zero, coordinate: coordinate,
                    altitudeMSL: point.altitude, horizontalAccuracy: point.accuracy ?? product, speed: point.speed,
                    course: point.course, hdop: point.hdop, satellitesUsed: point.satellites,
                    mode: point.fix == "2d" || point.altitude == nil ? .twoD : .threeD, quality: quality)))
    }

    /// nil unless it is a finite number. Some programs write the comma of their country.
    private static func number(_ text: String) -> Double? {
        var text = trimmed(text)
        if let comma = text.firstIndex(of: ","), !text.contains(".") { text.replaceSubrange(comma...comma, with: ".") }
        return Double(text).flatMap { $0.isFinite ? $0 : nil }
    }

    /// GPX times are UTC; some programs leave the letter out that says so.
    private mutating func time(_ text: String, _ line: Int) -> UTCTime? {
        let text = Self.trimmed(text)
        if let milliseconds = UTCTime.milliseconds(iso8601: text) { return UTCTime(milliseconds: milliseconds) }
        guard let milliseconds = UTCTime.milliseconds(iso8601: text + "Z") else { return nil }
        zoneless = zoneless ?? line
        return UTCTime(milliseconds: milliseconds)
    }

    private static func trimmed(_ text: String) -> String {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        guard let first = text.utf8.firstIndex(where: { !isSpace($0) }),
            let last = text.utf8.lastIndex(where: { !isSpace($0) })
        else { return "" }
        return String(text[first...last])
    }
}
