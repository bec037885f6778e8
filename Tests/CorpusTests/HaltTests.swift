import Scoring
import Testing
import WaypostCore
import WaypostTracking

#if canImport(Glibc)
    import Glibc
#endif

/// Which halts of the recorded logs are stops, at several stop timeouts: judged by looking at the logs, in `Halts.tsv`.
///
/// The rows are those of `HALTS.tsv` of the corpus, which are candidates only, and halts that it leaves out. Verdicts: *stop* = a trip ends here, its
/// standstill lies in the row; *start* = parked when the log begins; *parked* = has been parked since before; *none* = no
/// change of motion; *either* = a stop or none.
@Suite struct HaltTests {
    struct Row: Sendable {
        var log: String
        var start: UTCTime
        var end: UTCTime
        /// By stop timeout in seconds.
        var verdicts: [Int: String]
        var why: String
    }

    static let timeouts = [60, 120, 300]
    private static let tolerance: Int64 = 15_000

    private static let text = (try? file("\(#filePath)".replacing("HaltTests.swift", with: "Halts.tsv"))) ?? ""
    private static let lines = text.split(separator: "\n").count - 1

    static let rows: [Row] = {
        text.split(separator: "\n").dropFirst().compactMap { line in
            let columns = line.split(separator: "\t").map(String.init)
            guard columns.count == 7, let start = instant(columns[1]), let end = instant(columns[2]) else { return nil }
            return Row(
                log: columns[0], start: start, end: end,
                verdicts: Dictionary(uniqueKeysWithValues: zip(timeouts, columns[3...5])), why: columns[6])
        }
    }()

    static let logs = Array(Set(rows.map(\.log))).sorted()

    @Test func theTableHasAVerdictOnEveryCandidate() throws {
        let candidates = try Self.file("\(Corpus.folder)/HALTS.tsv").split(separator: "\n").dropFirst()
            .map { $0.split(separator: "\t") }
        #expect(!candidates.isEmpty)
        for candidate in candidates {
            let row = Self.rows.first { row in
                row.log == candidate[0] && row.start.iso8601.prefix(19) == candidate[1].prefix(19)
                    && row.end.iso8601.prefix(19) == candidate[2].prefix(19)
            }
            #expect(row != nil, "\(candidate) has no verdict")
        }
        let words = ["stop", "start", "parked", "none", "either"]
        #expect(Self.rows.allSatisfy { $0.verdicts.values.allSatisfy(words.contains) && !$0.why.isEmpty })
        #expect(Self.rows.count == Self.lines)
    }

    @Test(arguments: logs, timeouts)
    func eachHaltIsWhatItIsJudgedToBe(log: String, timeout: Int) throws {
        var settings = Tracker.Settings(trackables: [Trackable(id: "asset")])
        settings.motion.stopTimeout = .seconds(timeout)
        let changes = TrackedLog(try Corpus.bytes(of: log), settings: settings).motionChanges
        let told = changes.map {
            "\($0.moving ? "moving" : "parked") since \(clock($0.since)) by \($0.reason.rawValue)"
        }
        let rows = Self.rows.filter { $0.log == log }
        for row in rows {
            let expected = row.verdicts[timeout] ?? ""
            let got = verdict(on: row, changes)
            #expect(
                got == expected || expected == "either" && (got == "stop" || got == "none"),
                """
                \(log) \(clock(row.start))–\(clock(row.end)) at \(timeout) s: expected \(expected), got \(got)
                why: \(row.why)
                told: \(told.joined(separator: "; "))
                """)
        }
        // And there is no stop where nobody halts.
        for stop in changes where !stop.moving && stop.reason != .start {
            let isInTable = rows.contains { row in
                (row.verdicts[timeout] == "stop" || row.verdicts[timeout] == "either")
                    && stop.since.map { holds(row, $0) } ?? false
            }
            #expect(
                isInTable,
                "\(log) at \(timeout) s: stop since \(clock(stop.since)) by \(stop.reason.rawValue) is in no row; told: \(told.joined(separator: "; "))"
            )
        }
    }

    private func verdict(on row: Row, _ changes: [MotionChange]) -> String {
        if changes.contains(where: { !$0.moving && $0.reason != .start && $0.since.map { holds(row, $0) } ?? false }) {
            return "stop"
        }
        if changes.contains(where: { $0.reason == .start && $0.since.map { holds(row, $0) } ?? false }) {
            return "start"
        }
        let middle = UTCTime(milliseconds: row.start.milliseconds + row.end.milliseconds(since: row.start) / 2)
        let last = changes.last { $0.since.map { $0 <= middle } ?? false }
        return last.map { $0.moving ? "none" : "parked" } ?? "none"
    }

    private func holds(_ row: Row, _ time: UTCTime) -> Bool {
        time.milliseconds >= row.start.milliseconds - Self.tolerance
            && time.milliseconds <= row.end.milliseconds + Self.tolerance
    }

    private func clock(_ time: UTCTime?) -> String { time.map { String($0.iso8601.dropFirst(11).prefix(8)) } ?? "?" }

    /// A receiver that is moored, or never has a fix, goes nowhere, at any timeout and rate of sampling.
    @Test(arguments: Corpus.logs, timeouts)
    func whatDoesNotMoveIsNeverMoving(log: String, timeout: Int) throws {
        let bytes = try Corpus.bytes(of: log)
        let fixes = decode(bytes).epochs.compactMap(\.fix)
        let isStill = log.hasPrefix("static_") || fixes.isEmpty || fixes.allSatisfy { $0.mode == .none }
        guard isStill else { return }
        var settings = Tracker.Settings(trackables: [Trackable(id: "asset")])
        settings.motion.stopTimeout = .seconds(timeout)
        let tracked = TrackedLog(bytes, settings: settings)
        #expect(tracked.motionChanges.allSatisfy { !$0.moving })
        #expect(tracked.tracker.snapshot.odometer == 0)
    }

    /// Holes cut into drives: log, hours and minutes of its beginning and end.
    private static let holes: [(log: String, from: String, to: String)] = [
        ("drive_mtv_f9k_ublox.nmea", "02:33", "02:39"), ("drive_z205_switzerland_sirf.nmea", "11:40", "12:05"),
        ("sail_kernevel_latrinite_9h.nmea", "09:00", "09:20"), ("kayak_tomales.nmea", "17:40", "17:50"),
    ]

    /// What was not seen is a straight line on the odometer, and named; the rest is as if nothing was missing.
    @Test(arguments: holes)
    func aLongGapIsAStraightLineOnTheOdometer(log: String, from: String, to: String) throws {
        let bytes = try Corpus.bytes(of: log)
        let hole = digits(from)..<digits(to)
        var clock = Substring()
        let rest = bytes.split(separator: 0x0A).filter { line in
            let fields = String(decoding: line, as: UTF8.self).split(separator: ",", maxSplits: 2)
            if let first = fields.first, first.hasSuffix("RMC") || first.hasSuffix("GGA"), fields.count > 2 {
                clock = fields[1].prefix(4)
            }
            return Int(clock).map { !hole.contains($0) } ?? true
        }
        let settings = Tracker.Settings(trackables: [Trackable(id: "asset")])
        let whole = TrackedLog(bytes, settings: settings)
        let cut = TrackedLog(Array(rest.joined(separator: [0x0A])), settings: settings)
        func lies(_ location: Location, before hour: Int) -> Bool {
            Int(location.time.iso8601.dropFirst(11).prefix(5).filter { $0 != ":" }).map { $0 < hour } ?? false
        }
        let first = try #require(whole.locations.last { lies($0, before: hole.lowerBound) })
        let last = try #require(whole.locations.last { lies($0, before: hole.upperBound) })
        let line = first.coordinate.distance(to: last.coordinate)
        let unseen = last.odometer - first.odometer
        try #require(line > 300 && unseen > 300)
        let odometer = cut.tracker.snapshot.odometer
        let expected = whole.tracker.snapshot.odometer - unseen + line
        #expect(abs(odometer - expected) < 60 + 0.01 * expected, "\(odometer) m, expected \(expected)")
        #expect(
            abs(cut.tracker.snapshot.gapMetres - line) < 60, "\(cut.tracker.snapshot.gapMetres) m, expected \(line)")
    }

    private func digits(_ clock: String) -> Int { Int(clock.filter { $0 != ":" }) ?? 0 }

    private static func file(_ path: String) throws -> String {
        guard let stream = fopen(path, "rb") else { throw Corpus.Missing(description: "\(path) cannot be opened") }
        defer { fclose(stream) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        return String(decoding: bytes[..<fread(&bytes, 1, bytes.count, stream)], as: UTF8.self)
    }

    /// `2020-02-07T02:14:17Z`
    private static func instant(_ text: String) -> UTCTime? {
        let numbers = text.split(whereSeparator: { "-T:Z".contains($0) }).compactMap { Int($0) }
        guard numbers.count == 6, let date = CivilDate(year: numbers[0], month: numbers[1], day: numbers[2]) else {
            return nil
        }
        let seconds = Int64(date.daysSince1970) * 86_400 + Int64(numbers[3] * 3600 + numbers[4] * 60 + numbers[5])
        return UTCTime(milliseconds: seconds * 1000)
    }
}
