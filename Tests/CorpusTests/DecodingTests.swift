import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

@Suite("Decoding of recorded logs") struct DecodingTests {
    @Test func corpusIsThere() {
        #expect(Corpus.logs.count >= 63, "no logs in \(Corpus.folder): set WAYPOST_CORPUS")
    }

    @Test(arguments: Corpus.logs) func givesTheExpectedFixes(_ log: String) throws {
        let rows = try Corpus.expectedRows(of: log)
        let epochs = decode(try Corpus.bytes(of: log)).epochs.filter(\.toldATime)
        var differences: [String] = []
        for (row, epoch) in zip(rows, epochs) {
            differences += difference(row, epoch, hasForeignGST: log == Self.logWithGSTFirst)
        }
        if log == Self.logWithOverlookedGNS {
            let overlooked = [" mode:", " altitude:", " hdop:"].map { "2026-02-06T17:06:00.000Z\($0)" }
            differences.removeAll { difference in overlooked.contains { difference.hasPrefix($0) } }
        }
        if rows.count != epochs.count { differences.append("\(rows.count) rows expected, got \(epochs.count)") }
        #expect(differences.isEmpty, "\(log): \(differences.count): \(differences.prefix(8).joined(separator: "\n"))")
    }

    // The expected files have no row for epochs that tell no time; waypost tells them as void, because a receiver
    // without a fix is news. Everything else has its row.
    @Test(arguments: Corpus.logs) func tellsVoidEpochsWithoutTimeOnTop(_ log: String) throws {
        let untimed = decode(try Corpus.bytes(of: log)).epochs.filter { !$0.toldATime }
        #expect(untimed.count == Self.untimedVoidEpochs[log] ?? 0)
    }

    private static let untimedVoidEpochs = [
        "gpsd_ericsson-gru04.log": 1, "gpsd_foretrex-201.log": 5, "gpsd_quectel.log": 8, "gpsd_tcp-torture.log": 1,
    ]

    // The expected accuracies of this log are those of the next epoch: GST comes first in its cycle, and the reference
    // lets it join the epoch before although it has a time of its own.
    private static let logWithGSTFirst = "gpsd_polarx2.log"

    // The reference overlooks the one GNS of this log, which has the time of the GLL before it: mode, altitude and HDOP
    // are missing in its row.
    private static let logWithOverlookedGNS = "gpsd_ericsson-gru04.log"

    @Test func takesAltitudeFromGNSWithoutGGA() throws {
        let fix = try #require(decode(try Corpus.bytes(of: Self.logWithOverlookedGNS)).epochs.compactMap(\.fix).last)
        #expect(fix.altitudeMSL == 1443.9)
        #expect(fix.hdop == 0.53)
        #expect(fix.satellitesUsed == 21)
        #expect(fix.mode == .threeD)
    }

    @Test func takesGSTForTheEpochOfItsOwnTime() throws {
        let fixes = decode(try Corpus.bytes(of: Self.logWithGSTFirst)).epochs.compactMap(\.fix)
        let accuracies = fixes.map { ($0.horizontalAccuracy ?? 0) * 1000 }.map { Int($0.rounded()) }
        // hypot of the two sigmas of $GPGST,112257.00 … 112301.00
        #expect(accuracies == [317_742, 320_517, 324_262, 328_111, 331_989])
    }

    @Test(arguments: [
        ("drive_mtv_f9k_ublox.nmea", 1654), ("drive_z205_switzerland_sirf.nmea", 10_323),
        ("sail_kernevel_latrinite_9h.nmea", 25_158), ("marine_gofree_mixed.nmea", 142),
        ("gpsd_quectel-eg25-g.log", 23), ("gpsd_gp-320fw-2019-04-07-coldboot.log", 2),
        ("gpsd_gp-320fw-2019-04-06-overflow.log", 21), ("gpsd_ericsson-gru04.log", 2), ("gpsd_gpsdf.log", 51),
        ("gpsd_garmin-geko201.log", 0), ("gpsd_GPSmap-76S.log", 0), ("gpsd_tn200.log", 0), ("gpsd_skytraq.log", 0),
        ("gpsd_quectel-l76k-nmea.log", 151), ("gpsd_tcp-torture.log", 1), ("gpsd_udp-test.log", 1),
    ])
    func losesNoFixOfTheNastiestLogs(_ log: String, fixes: Int) throws {
        let result = decode(try Corpus.bytes(of: log))
        #expect(result.epochs.compactMap(\.fix).count == fixes)
        #expect(result.counters.fixes == fixes)
    }

    /// Chunks of one byte, of odd lengths and of a page give the same epochs, places to go on from and counts.
    @Test(arguments: Corpus.logs) func givesTheSameInAnyChunks(_ log: String) throws {
        let bytes = try Corpus.bytes(of: log)
        let whole = decode(bytes)
        for chunk in [1, 2, 7, 61, 4096] where chunk > 2 || bytes.count < 400_000 {
            let cut = decode(bytes, chunk: chunk)
            #expect(cut.epochs == whole.epochs, "chunks of \(chunk)")
            #expect(cut.resumes == whole.resumes, "chunks of \(chunk)")
            #expect(cut.counters == whole.counters, "chunks of \(chunk)")
        }
    }

    /// Going on at the place that came with any epoch gives exactly the epochs after it.
    @Test(arguments: Corpus.logs) func goesOnBehindAnyEpoch(_ log: String) throws {
        let bytes = try Corpus.bytes(of: log)
        let whole = decode(bytes)
        var seed: UInt64 = 0
        for byte in log.utf8 { seed = seed &* 31 &+ UInt64(byte) }
        var generator = SeededGenerator(seed: seed)
        let places = (0..<12).map { _ in Int.random(in: 0..<max(1, whole.epochs.count), using: &generator) }
        for place in Set(places + [0, whole.epochs.count - 1]) where whole.epochs.indices.contains(place) {
            let rest = decode(bytes, resume: whole.resumes[place])
            let expected = withoutDriftFromUnknownStart(Array(whole.epochs[(place + 1)...]))
            #expect(withoutDriftFromUnknownStart(rest.epochs) == expected, "seed \(seed), after epoch \(place)")
            #expect(rest.resumes == Array(whole.resumes[(place + 1)...]), "seed \(seed), after epoch \(place)")
        }
    }

    /// Dead reckoning right behind a place to go on from has no accuracy, because its start is not known any more.
    private func withoutDriftFromUnknownStart(_ epochs: [Epoch]) -> [Epoch] {
        var epochs = epochs
        for i in epochs.indices {
            guard case .fix(var fix) = epochs[i] else { continue }
            guard fix.quality == .deadReckoning || fix.quality == .manual || fix.quality == .simulated else { break }
            fix.horizontalAccuracy = nil
            epochs[i] = .fix(fix)
        }
        return epochs
    }

    /// Cut at any place, a log neither traps nor gives an epoch that the whole log has not, but for the last.
    @Test(arguments: Corpus.logs) func survivesTruncation(_ log: String) throws {
        let bytes = try Corpus.bytes(of: log)
        let whole = decode(bytes).epochs
        var generator = SeededGenerator(seed: UInt64(bytes.count))
        for _ in 0..<4 {
            let length = Int.random(in: 0...bytes.count, using: &generator)
            let cut = decode(Array(bytes[..<length])).epochs
            #expect(cut.count <= whole.count, "first \(length) bytes")
            #expect(cut.dropLast().elementsEqual(whole.prefix(max(0, cut.count - 1))), "first \(length) bytes")
        }
    }

    /// The u-blox F9K in a car against a survey-grade inertial system at the same times.
    @Test func fixesLieWithinTwoMetresOfTheTruth() throws {
        let fixes = decode(try Corpus.bytes(of: "drive_mtv_f9k_ublox.nmea")).epochs.compactMap(\.fix)
        let truth = decode(try Corpus.bytes(of: "drive_mtv_f9k_ublox.truth.gga")).epochs.compactMap(\.fix)
        let places = Dictionary(truth.map { ($0.timeOfDay, $0.coordinate) }, uniquingKeysWith: { first, _ in first })
        let errors = fixes.compactMap { fix in places[fix.timeOfDay].map { fix.coordinate.distance(to: $0) } }.sorted()
        try #require(errors.count > 1500)
        #expect(errors[errors.count / 2] < 0.7)
        #expect(errors[errors.count * 95 / 100] < 1.2)
        #expect(errors.last! < 2)
    }

    private func difference(_ row: ExpectedRow, _ epoch: Epoch, hasForeignGST: Bool) -> [String] {
        var found: [String] = []
        func check(_ what: String, _ equal: Bool, _ expected: Any?, _ actual: Any?) {
            if !equal { found.append("\(row.time) \(what): expected \(expected as Any), got \(actual as Any)") }
        }
        func near(_ a: Double?, _ b: Double?, _ tolerance: Double) -> Bool {
            guard let a, let b else { return a == nil && b == nil }
            return abs(a - b) <= tolerance * 1.000001
        }
        switch epoch {
        case .void(let void):
            check("verdict", row.mode == 1, row.mode, void.reason)
            check("time of day", void.timeOfDay.map(UTCTime.clock) == String(row.clock), row.clock, void.timeOfDay)
            check("quality", (row.quality ?? 0) == void.quality.rawValue, row.quality, void.quality)
        case .fix(let fix):
            check("mode", row.mode == fix.mode.rawValue, row.mode, fix.mode)
            check("time of day", UTCTime.clock(fix.timeOfDay) == row.clock, row.clock, fix.timeOfDay)
            check("time", fix.time?.iso8601 == (row.hasDate ? row.time : nil), row.time, fix.time?.iso8601)
            check(
                "latitude", row.latitudeE7.map { abs($0 - Int(fix.coordinate.latitudeE7)) <= 1 } ?? false,
                row.latitudeE7, fix.coordinate)
            check(
                "longitude", row.longitudeE7.map { abs($0 - Int(fix.coordinate.longitudeE7)) <= 1 } ?? false,
                row.longitudeE7, fix.coordinate)
            check("altitude", near(row.altitude, fix.altitudeMSL, 0.1), row.altitude, fix.altitudeMSL)
            check("speed", near(row.speed, fix.speed, 0.001), row.speed, fix.speed)
            check("course", near(row.track, fix.course, 0.01), row.track, fix.course)
            check("hdop", near(row.hdop, fix.hdop, 0.005), row.hdop, fix.hdop)
            check("quality", (row.quality ?? fix.quality.rawValue) == fix.quality.rawValue, row.quality, fix.quality)
            if let gst = row.gst, gst > 0, !hasForeignGST {
                check("accuracy", near(gst, fix.horizontalAccuracy, 0.005), gst, fix.horizontalAccuracy)
            }
        }
        return found
    }
}
