import ConfigurationTestSupport
import Foundation
import TestSupport
import Testing
import WaypostCore
import WaypostHost
import WaypostNMEA

@testable import Inspect

/// GPX and the lines of gpsd as logs, and what of them is broken.
@Suite struct LogDecoderTests {
    private func epochs(
        _ text: String, pieces: Int = .max, settings: NMEADecoder.Settings = .init()
    ) throws -> (epochs: [Epoch], decoder: LogDecoder) {
        var decoder = LogDecoder(settings: settings)
        var epochs: [Epoch] = []
        decoder.begin("log")
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(piece.count)
            try decoder.read(piece.span) { epochs.append($0) }
        }
        try decoder.finish { epochs.append($0) }
        decoder.end { epochs.append($0) }
        return (epochs, decoder)
    }

    private func gpx(_ points: String) -> String {
        "\u{FEFF}<?xml version='1.0'?>\n<!-- a <comment> -->\n<gpx version=\"1.1\"><wpt lat=\"9\" lon=\"9\"/><trk><trkseg>\n"
            + points + "</trkseg></trk></gpx>\n"
    }

    private func problem(_ text: String) -> String? {
        do { _ = try epochs(text) } catch let error as LogProblem { return error.description } catch {}
        return nil
    }

    @Test func readsAllThatATrackPointSays() throws {
        let point = """
            <trkpt lat=" 52.52 " lon='13.4049755'><ele>39.4</ele><time>2026-03-02T08:00:29.5+01:00</time>
            <name><![CDATA[<a>]]></name><fix>dgps</fix><sat>8</sat><hdop>0.9</hdop><extensions><x:TrackPointExtension>
            <x:speed>4.5</x:speed><x:course>12.25</x:course><x:time>never</x:time></x:TrackPointExtension>
            <waypost:accuracy>5.9</waypost:accuracy></extensions></trkpt>

            """
        let time = UTCTime(milliseconds: 1_772_434_829_500)
        let expected = Fix(
            time: time, timeOfDay: time.timeOfDay, at: .zero,
            coordinate: Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_049_755), altitudeMSL: 39.4,
            horizontalAccuracy: 5.9, speed: 4.5, course: 12.25, hdop: 0.9, satellitesUsed: 8, mode: .threeD,
            quality: .dgps)
        for pieces in [1, 7, 4096] {
            let (found, decoder) = try epochs(gpx(point), pieces: pieces)
            #expect(found == [.fix(expected)])
            #expect(decoder.notices.isEmpty && decoder.counters.badFields == 0)
        }
    }

    @Test func numbersThatNoReceiverHasAreLeftOut() throws {
        let (found, decoder) = try epochs(
            gpx(
                """
                <trkpt lat="52" lon="13"><ele>1e300</ele><time>2026-03-02T07:00:00Z</time><hdop>1e308</hdop>
                <speed>1e300</speed><accuracy>-1</accuracy></trkpt>
                """))
        guard case .fix(let fix) = try #require(found.first) else {
            Issue.record("no fix")
            return
        }
        #expect((fix.altitudeMSL, fix.hdop, fix.speed, fix.horizontalAccuracy) == (nil, nil, nil, nil))
        #expect(decoder.counters.badFields == 4)
    }

    @Test func aPointWithoutAFixATimeOrAPositionIsCounted() throws {
        let (found, decoder) = try epochs(
            gpx(
                """
                <trkpt lat="1" lon="2"><time>2026-03-02T07:00:00Z</time><fix>none</fix></trkpt>
                <trkpt lat="1" lon="2"/>
                <trkpt lat="91" lon="2"><time>2026-03-02T07:00:01</time></trkpt>
                <trkpt lat="1" lon="2"><ele>high</ele><time>noon</time></trkpt>

                """))
        #expect(found.count == 2)
        for epoch in found {
            guard case .void = epoch else {
                Issue.record("a fix")
                continue
            }
        }
        #expect(decoder.counters.dateless == 2 && decoder.counters.voidEpochs == 2 && decoder.counters.sentences == 4)
        #expect(
            decoder.notices.map(\.description) == [
                "log:6: a track point without a position; 3 such values were skipped",
                "log:6: times without a zone are read as UTC",
            ])
    }

    static let broken: [(String, String)] = [
        ("<gpx>\n<trk>\n</trkseg>", "log:3: </trkseg> where </trk> is missing, which begins on line 2"),
        ("<gpx>\n<trk>", "log:2: the file ends within <trk>, which begins on line 2"),
        ("<gpx>\n\n<trkpt lat=\"1", "log:3: the file ends within <gpx>, which begins on line 1"),
        (
            "<?xml version=\"1.0\"?>\n<!DOCTYPE gpx [<!ENTITY a \"b\">]><gpx/>",
            "log:2: a document that defines entities of its own is not read"
        ),
        ("<?xml version=\"1.0\"?><kml/>", "log:1: the document is <kml>, not <gpx>"),
        ("<gpx/>\n<kml/>", "log:2: the document is <kml>, not <gpx>"),
        ("<gpx/>text", "log:1: text after the end of the document"),
        ("<gpx a=1/>", "log:1: no quotes around the value of a"),
        ("<gpx a='1' a='2'/>", "log:1: a twice"),
        ("<gpx a='1'b='2'/>", "log:1: no space before an attribute"),
        ("<gpx><!ELEMENT a></gpx>", "log:1: an unknown declaration"),
        ("<gpx>< trk></gpx>", "log:1: no name after \"<\", or none of an attribute"),
    ]

    @Test(arguments: broken)
    func brokenXMLIsNamedWithItsLine(text: String, words: String) {
        #expect(problem(text) == words)
    }

    /// Power went while it was written, or something else was.
    @Test func theBeginningOfADocumentThatEndsTooEarlyCounts() throws {
        let point = "<trkpt lat=\"1\" lon=\"2\"><time>2026-03-02T07:00:00Z</time></trkpt>\n"
        for rest in ["", "<trkpt lat=\"1", "<trkpt lat=\"1\" lon=\"2\"><time>2026-"] {
            let (found, decoder) = try epochs("<gpx><trk><trkseg>\n\(point)\(rest)")
            #expect(found.count == 1)
            let notice = try #require(decoder.notices.first?.description)
            #expect(notice.contains("the file ends within") && notice.hasSuffix("; the points before were read"))
        }
        for pieces in [1, .max] {
            let (found, decoder) = try epochs("<gpx><trk><trkseg>\n\(point)< >\(point)", pieces: pieces)
            #expect(found.count == 1)
            #expect(decoder.notices.first?.description.hasPrefix("log:3: no name after \"<\"") == true)
        }
    }

    static let bounds: [(String, String)] = [
        ("<gpx>" + String(repeating: "<a>", count: 100_000), "more than 64 elements in each other"),
        ("<gpx \(long)", "a tag of more than 16384 bytes"), ("<gpx a='\(long)'/>", "a tag of more than 16384 bytes"),
        (
            "<gpx \(String(repeating: "é", count: 8000))/>",
            "no value of \(String(repeating: "é", count: 142))…"
        ),
        ("<gpx\((0..<65).map { " a\($0)=''" }.joined())/>", "more than 64 attributes"),
    ]
    private static let long = String(repeating: "x", count: 100_000)

    @Test func whatADocumentMayHoldIsBounded() throws {
        for (text, words) in Self.bounds { #expect(problem(text) == "log:1: \(words)") }
        // Long text, comments and CDATA are passed over.
        let comments = "<!--\(Self.long)--><desc>\(Self.long)&amp;</desc><desc><![CDATA[\(Self.long)]]></desc>"
        let point = "<trkpt lat=\"1\" lon=\"2\"><time>2026-03-02T07:00:00Z</time></trkpt>"
        #expect(try epochs(gpx(comments + point)).epochs.count == 1)
    }

    static let beginnings: [(String, Bool)] = [
        ("{            \"class\":\"VERSION\"}\n", false), ("{\t", true), ("\n \n<!-- a --><gpx/>", false), ("<g", true),
        ("\u{FEFF}\u{FEFF}<gpx/>", true), ("<GPX/>", true), ("{1}", true),
        (String(repeating: "\n", count: 1020) + "<gpx/>", false),
        (String(repeating: "\n", count: 1021) + "<gpx/>", true),
        ("{" + String(repeating: " ", count: 1023) + "\"class\":1}\n", true),
    ]

    /// What may still become something is waited for, in pieces of any length.
    @Test(arguments: beginnings)
    func theKindDoesNotDependOnThePieces(text: String, isNMEA: Bool) throws {
        for pieces in [1, 3, .max] { #expect(try epochs(text, pieces: pieces).decoder.isNMEA == isNMEA) }
    }

    /// Whatever is done to a document, it is read or refused, the same in pieces of any length.
    @Test(arguments: testSeeds(1...8))
    func changedDocumentsNeverTrap(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let document = Array(
            gpx(
                "<trkpt lat=\"1\" lon=\"2\"><ele>3</ele><time>2026-03-02T07:00:00Z</time><a b='&#x41;'/></trkpt><![CDATA[x]]>"
            ).utf8)
        let alphabet = Array("<>/&;#![]-?='\"ax \n\u{0}".utf8)
        for _ in 0..<150 {
            var bytes = document
            for _ in 0...Int.random(in: 0...4, using: &random) {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...2, using: &random) {
                case 0: bytes[at] = alphabet.randomElement(using: &random)!
                case 1: bytes.remove(at: at)
                default: bytes.insert(alphabet.randomElement(using: &random)!, at: at)
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            func outcome(_ pieces: Int) -> String {
                do {
                    let (found, decoder) = try epochs(text, pieces: pieces)
                    return "\(found) \(decoder.counters)"
                } catch {
                    return "\(error)"
                }
            }
            #expect(outcome(.max) == outcome(Int.random(in: 1...9, using: &random)), "seed \(seed): \(text)")
        }
    }

    @Test func linesOfGPSDGiveTheFixesOfTheReceiver() throws {
        func file(_ name: String) throws -> String {
            let url = BuiltProducts.repository.appendingPathComponent("fixtures/\(name)")
            return try String(contentsOf: url, encoding: .utf8)
        }
        func places(_ text: String, pieces: Int = .max) throws -> [UTCTime: Coordinate] {
            var places: [UTCTime: Coordinate] = [:]
            for case .fix(let fix) in try epochs(text, pieces: pieces).epochs {
                if let time = fix.time { places[time] = fix.coordinate }
            }
            return places
        }
        let lines = try file("gpsd/simulated-cold-start.jsonl")
        let found = try places(lines)
        let sent = try places(file("nmea/simulated-cold-start.nmea"))
        #expect(found.count > 100)
        #expect(try places(lines, pieces: 61) == found)
        let isClose = found.allSatisfy { time, place in sent[time].map { place.distance(to: $0) < 0.1 } ?? false }
        #expect(isClose, "\(found) and \(sent)")
        let broken = "{\"class\":\"TPV\",\n\n\(String(repeating: "x", count: 70_000))\n"
        let notices = try epochs(lines + broken).decoder.notices
        #expect(notices.first?.words == "no JSON object of gpsd: {\"class\":\"TPV\",")
        #expect(notices.first?.line == lines.split(separator: "\n", omittingEmptySubsequences: false).count)
        #expect(notices.last?.words.hasPrefix("neither a sentence nor an object of gpsd: xxxx") == true)
    }

    static let kinds: [(String, LogKind)] = [
        ("", LogKind.lines), ("$GPRMC", .lines), ("\u{FEFF} \n<?xml", .gpx), ("<gpx>", .gpx), ("<html><body>", .lines),
        ("{\"class\":\"VERSION\"}", .lines), ("\0$GPGGA,", .lines), ("$\0$GPGGA", .lines), ("<!", .lines),
    ]

    @Test(arguments: kinds)
    func aLogIsRecognisedByItsContent(text: String, kind: LogKind) {
        #expect(LogKind.recognised(Array(text.utf8), isAll: true) == kind)
        for count in 0..<text.utf8.count {
            let soFar = LogKind.recognised(Array(text.utf8.prefix(count)), isAll: false)
            #expect(soFar == nil || soFar == kind, "after \(count) bytes")
        }
    }

    static let heads: [([UInt8], String)] = [
        ([0x1F, 0x8B, 8, 0, 0], "it is gzip: zcat log | waypost replay -"),
        ([0x28, 0xB5, 0x2F, 0xFD, 4], "it is zstd: zstdcat log | waypost replay -"),
        ([0xFF, 0xFE, 0x23, 0], "it is UTF-16 text: iconv -f UTF-16 -t UTF-8 log | waypost replay -"),
        ([0x24, 0, 0x47, 0], "it is UTF-16 text: iconv -f UTF-16LE -t UTF-8 log | waypost replay -"),
        ([0, 0x24, 0, 0x47], "it is UTF-16 text: iconv -f UTF-16BE -t UTF-8 log | waypost replay -"),
        (
            Array("<0?0x0m0l0 0v0".utf8.map { $0 == 0x30 ? 0 : $0 }),
            "it is UTF-16 text: iconv -f UTF-16LE -t UTF-8 log | waypost replay -"
        ),
        ([0xFF, 0xFE, 0, 0, 0x24, 0, 0, 0], "it is UTF-32 text: iconv -f UTF-32 -t UTF-8 log | waypost replay -"),
        ([0x50, 0x4B, 3, 4, 20], "it is a ZIP archive: unzip -p log | waypost replay -"),
    ]

    @Test(arguments: heads)
    func saysWhatALogIsThatCannotBeRead(head: [UInt8], words: String) {
        for pieces in 1...head.count {
            var decoder = LogDecoder(settings: .init())
            decoder.begin("log")
            #expect(throws: LogProblem(file: "log", line: 1, words: words)) {
                var rest = head[...]
                while !rest.isEmpty {
                    let piece = Array(rest.prefix(pieces))
                    rest = rest.dropFirst(pieces)
                    try decoder.read(piece.span) { _ in }
                }
                try decoder.finish { _ in }
            }
        }
    }

    static let names: [(String, String)] = [
        ("standard input", "zcat | waypost"), ("my log", "zcat FILE | waypost"), ("a'b", "zcat FILE | waypost"),
    ]

    /// A name with a blank would make another command of it.
    @Test(arguments: names)
    func namesALogSoThatTheCommandWorks(file: String, command: String) {
        var decoder = LogDecoder(settings: .init())
        decoder.begin(file)
        #expect(throws: LogProblem(file: file, line: 1, words: "it is gzip: \(command) replay -")) {
            try decoder.read([0x1F, 0x8B].span) { _ in }
        }
    }

    static let empty: [(String, String?)] = [
        ("", nil),
        (
            "no log\n",
            "no sentence, no fix (not understood: 1): is it a log of a receiver? "
                + "Line 1: neither a sentence nor an object of gpsd: no log"
        ),
        (
            "$GPGGA,1*00\n",
            "no sentence, no fix (bad checksum: 1): is it a log of a receiver? Line 1: a bad checksum: $GPGGA,1*00"
        ),
        ("$GPRMC,101500,V,,,,,,,020326,,,N*53\n", nil), ("$PXYZ,1*16\n", nil), ("{\"class\":\"VERSION\"}\n", nil),
        ("<gpx><wpt lat=\"9\" lon=\"9\"/></gpx>", "no track points; waypoints and routes are no measurements"),
    ]

    @Test(arguments: empty)
    func aLogOfWhichNothingCouldBeReadIsNone(text: String, words: String?) throws {
        let (_, decoder) = try epochs(text)
        #expect(decoder.nothing?.words == words)
        #expect(decoder.nothing == nil || decoder.nothing?.file == "log")
    }

    /// What a resolution keeps of a drive is enough to find its trips again.
    @Test func anExportReplaysToTheSameTrips() throws {
        let folder = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let log = Golden(name: "demo-city-drive", form: .replay).log
        let file = folder + "/drive.gpx"
        let settings = try loaded(smallest + upload + "[sampling]\nrule = \"either\"\n")
        try Data(replayed([log], .gpx, with: settings).utf8).write(to: URL(fileURLWithPath: file))
        func changes(_ log: String) throws -> [(moving: Bool, since: Int)] {
            try replayed([log], .jsonl).split(separator: "\n").compactMap { line in
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                guard object?["type"] as? String == "motionchange", object?["reason"] as? String != "start" else {
                    return nil
                }
                let since = try #require(object?["departed_ms"] as? Int ?? object?["stopped_ms"] as? Int)
                return (object?["moving"] as? Bool == true, since)
            }
        }
        let (original, again) = (try changes(log), try changes(file))
        #expect(again.map(\.moving) == original.map(\.moving))
        for (before, after) in zip(original, again) { #expect(abs(before.since - after.since) <= 60_000) }
    }
}
