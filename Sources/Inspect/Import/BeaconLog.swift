import Places
import WaypostCore
import WaypostHost

/// Beacons that were sighted while a log was recorded, in order: one JSON object a line.
package struct BeaconLog: Sendable {
    /// When a beacon was sighted.
    enum Moment: Hashable, Sendable {
        case utc(UTCTime)
        /// Since the first dated fix of the log.
        case sinceStart(Duration)
    }

    struct Sighting: Hashable, Sendable {
        var moment: Moment
        var advertisement: BeaconAdvertisement
        /// dBm; nil = unknown.
        var rssi: Int?
        /// Of the file, from 1.
        var line: Int
    }

    private static let lineMax = 4096
    /// What most makers give.
    private static let usualPower: Int8 = -59
    /// A century.
    private static let secondsMax = 3.2e9

    let path: String
    private(set) var sightings: [Sighting] = []

    /// Reads all of it: a mistake shows before anything is printed.
    ///
    /// - Parameter path: `-` is standard input.
    /// - Throws: `LogFailure.content` with the line of the first mistake.
    package init(path: String) throws(LogFailure) {
        self.path = path
        var line: [UInt8] = []
        var number = 0
        var mistake: LogProblem?
        func end() -> Bool {
            number += 1
            do throws(Mistake) { try read(line, number) } catch {
                mistake = LogProblem(file: path, line: number, words: error.words)
            }
            line.removeAll(keepingCapacity: true)
            return mistake == nil
        }
        do throws(SystemError) {
            try LogFile.read(path) { chunk in
                for index in 0..<chunk.count {
                    if chunk[index] == UInt8(ascii: "\n") {
                        if !end() { return false }
                    } else if line.count <= Self.lineMax {
                        line.append(chunk[index])
                    }
                }
                return true
            }
        } catch { throw .system(error) }
        if mistake == nil, !line.isEmpty { _ = end() }
        if let mistake { throw .content(mistake) }
    }

    private struct Mistake: Error {
        var words: String

        init(_ name: String, _ expected: String) { words = "\(name): expected \(expected)" }
        init(words: String) { self.words = words }
    }

    private mutating func read(_ line: [UInt8], _ number: Int) throws(Mistake) {
        guard line.contains(where: { $0 > 0x20 }) else { return }
        guard line.count <= Self.lineMax, let object = JSONReader.read(line), object.members != nil else {
            throw Mistake(words: "expected a JSON object such as {\"time\":\"2026-03-02T07:00:00Z\",\"uuid\":…}")
        }
        let sighting = Sighting(
            moment: try Self.moment(object["time"]), advertisement: try Self.advertisement(object),
            rssi: try Self.number(object, "rssi", -128...19).map { Int($0) }, line: number)
        if let last = sightings.last?.moment, !Self.isInOrder(last, sighting.moment) {
            throw Mistake("time", "one that is not before that of the line above, and of the same kind")
        }
        sightings.append(sighting)
    }

    private static func moment(_ value: JSONValue?) throws(Mistake) -> Moment {
        if let text = value?.string, let milliseconds = UTCTime.milliseconds(iso8601: text) {
            return .utc(UTCTime(milliseconds: milliseconds))
        }
        guard let seconds = value?.number, (0...secondsMax).contains(seconds) else {
            throw Mistake(
                "time", "a UTC such as \"2026-03-02T07:00:00.250Z\", or the seconds since the first fix of the log")
        }
        return .sinceStart(.milliseconds(Int64((seconds * 1000).rounded())))
    }

    private static func advertisement(_ object: JSONValue) throws(Mistake) -> BeaconAdvertisement {
        guard let uuid = object["uuid"]?.string.flatMap({ ProximityUUID($0) }) else {
            throw Mistake("uuid", "a UUID such as \"F7826DA6-4FA2-4E98-8024-BC5B71E0893E\"")
        }
        guard let major = try number(object, "major", 0...65_535), let minor = try number(object, "minor", 0...65_535)
        else { throw Mistake("major, minor", "both") }
        let power = try number(object, "power", -128...127).map { Int8($0) }
        return BeaconAdvertisement(
            beacon: Beacon(uuid: uuid, major: UInt16(major), minor: UInt16(minor)), measuredPower: power ?? usualPower)
    }

    /// nil where there is none.
    private static func number(
        _ object: JSONValue, _ name: String, _ range: ClosedRange<Int64>
    ) throws(Mistake) -> Int64? {
        guard let value = object[name], value != .null else { return nil }
        guard let number = value.integer, range.contains(number) else {
            throw Mistake(name, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private static func isInOrder(_ one: Moment, _ other: Moment) -> Bool {
        switch (one, other) {
        case (.utc(let one), .utc(let other)): one <= other
        case (.sinceStart(let one), .sinceStart(let other)): one <= other
        default: false
        }
    }
}
