import Delivery
import Profiles
import ProfilesTestSupport
import TestSupport
import Testing
import WaypostCore

/// Random trees, good and bad, and random rows with random nils.
@Suite struct TemplatePropertyTests {
    private struct Maker {
        var random: SeededGenerator

        private static let names = [
            "id", "trackable", "seq", "time_ms", "time_s_float", "time_iso", "received_ms", "boot_id", "lat", "lon",
            "altitude", "accuracy", "hdop", "satellites", "fix_mode", "quality", "simulated", "speed_mps",
            "speed_knots",
            "speed_mph", "bearing", "moving", "event", "reason", "odometer", "odometer_km", "battery_pct",
            "battery_frac",
            "charging", "battery_state", "geofence_id", "geofence_name", "geofence_source", "published",
            "row_trackable",
            "location", "records", "newest", "batch_id", "sent_ms", "device", "vars.asset_id", "vars.none?",
            "secret.key",
            "trip_distance", "nonsense", "time_ns",
        ]
        private static let casts = [
            "int", "ceil", "floor", "round0", "round3", "string", "upper", "bool01", "lptag", "x",
        ]
        private static let defaults = ["-1", "0.5", "null", "\"a\\\"b\"", "true", "1e9", ""]
        private static let texts = [
            "", "a", "é\"\\", "$$", "$[", "[?", "]", "${", "}", "$", "🚐", "\n", "a b", "|", ":",
        ]

        mutating func pick<T>(_ list: [T]) -> T { list[Int.random(in: 0..<list.count, using: &random)] }
        mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

        mutating func leaf() -> String {
            func reference(_ maker: inout Maker) -> String {
                var text = maker.pick(Self.names)
                if maker.chance(4) { text += ":" + maker.pick(Self.casts) }
                if maker.chance(4) { text += "|" + maker.pick(Self.defaults) }
                return text
            }
            if chance(2) { return "$" + reference(&self) }
            return (0..<Int.random(in: 0...4, using: &random)).map { _ in
                chance(3) ? "${" + reference(&self) + "}" : pick(Self.texts)
            }.joined()
        }

        mutating func tree(_ depth: Int) -> ProfileNode {
            switch Int.random(in: 0..<(depth > 3 ? 6 : 9), using: &random) {
            case 0...3: return ProfileNode(.string(leaf()))
            case 4: return ProfileNode(.integer(.random(in: .min ... .max, using: &random)))
            case 5: return ProfileNode(pick([.float(0.5), .float(.nan), .float(1e300), .boolean(true), .float(-0.0)]))
            case 6: return ProfileNode(.array((0..<Int.random(in: 0...4, using: &random)).map { _ in tree(depth + 1) }))
            default:
                return ProfileNode(
                    .table(
                        (0..<Int.random(in: 0...4, using: &random)).map {
                            ProfileNode.Member("k\($0)", tree(depth + 1))
                        }))
            }
        }

        mutating func profile() -> ProfileNode {
            let keys = [
                "record", "body", "url", "headers", "line", "on", "require", "limits", "response", "bind", "columns",
                "max_records", "max_bytes", "encoding", "geofence_actions", "ascii",
            ]
            var members: [ProfileNode.Member] = []
            for key in keys where chance(3) { members.append(.init(key, tree(0))) }
            return ProfileNode(.table(members))
        }

        /// Trees full of nonsense are refused; a good one of which one part is nonsense has a chance to be taken.
        mutating func mutant() -> ProfileNode {
            guard case .table(var members) = NativeProfileTests.native.node.value else { return profile() }
            let place = Int.random(in: 0..<members.count, using: &random)
            if case .table(var inner) = members[place].node.value {
                inner[Int.random(in: 0..<inner.count, using: &random)].node = tree(1)
                members[place].node = ProfileNode(.table(inner))
            } else {
                members[place].node = tree(0)
            }
            return ProfileNode(.table(members))
        }

        private mutating func number() -> Double? {
            pick([
                nil, 0, -0.0, 1, 359.96, 0.04, -1, 1e300, .nan, .infinity, -.infinity,
                Double.random(in: -1000...1000, using: &random),
            ])
        }

        private mutating func text() -> String? {
            pick([nil, "", "a", "é", "\u{0}\r\n\"\\", "🚐", String(repeating: "x", count: 300)])
        }

        mutating func row(_ seq: Int64) -> QueuedLocation {
            let coordinate = Coordinate(
                latitudeE7: .random(in: .min ... .max, using: &random), longitudeE7: .random(in: -9...9, using: &random)
            )
            var location = Location(
                trackable: text(), time: UTCTime(milliseconds: pick([0, -1, 1_700_000_000_123, .max, .min])), at: .zero,
                coordinate: coordinate, altitudeMSL: number(), altitudeHAE: number(), horizontalAccuracy: number(),
                speed: number(), course: number(), hdop: number(), satellitesUsed: pick([nil, 0, .max]),
                mode: pick([nil, FixMode.none, .twoD, .threeD]), quality: pick([nil, .simulated, .rtk]),
                moving: chance(2), event: pick(LocationEvent.allCases), reason: text(), odometer: number() ?? 0,
                power: PowerState(batteryPercent: pick([nil, .max, 50]), charging: pick([nil, true, false])))
            if chance(2) {
                location.geofence = GeofenceCrossing(id: text() ?? "", name: text(), action: pick([.enter, .dwell]))
            }
            if chance(3) {
                location.trip = TripSummary(
                    start: UTCTime(milliseconds: pick([.min, 0])), startCoordinate: coordinate,
                    end: UTCTime(milliseconds: pick([.max, 0])), distance: number() ?? 0, idle: number() ?? 0,
                    maxSpeed: number())
            }
            return QueuedLocation(seq: seq, bootID: text(), receivedMs: pick([nil, .min, .max]), location: location)
        }
    }

    @Test func neverTrapsOnAnyTree() {
        let seed = testSeed(1)
        var maker = Maker(random: SeededGenerator(seed: seed))
        let ages = RowAges(
            AgeReference(now: .zero, started: .zero, trusted: UTCTime(milliseconds: .max)),
            RecordingTimes(earlierThrough: .max))
        var good = 0
        for round in 0..<300 {
            let tree = round % 2 == 0 ? maker.profile() : maker.mutant()
            guard case .success(let profile) = Profile.compile("x", tree: tree, constants: Sample.constants) else {
                continue
            }
            good += 1
            let settings = Sample.settings(profile)
            let rows = (0..<3).map { maker.row($0) }
            _ = BatchPlanner(settings).plan(rows, limit: 2, isEnd: maker.chance(2), ages: ages)
            _ = RequestRenderer(settings, in: Sample.context).request(for: Sample.batch(rows))
            _ = RequestRenderer(settings, in: Sample.context).bindRequest()
        }
        #expect(good > 10, "seed \(seed)")
    }

    @Test func writesGoodJSONWhateverIsNil() throws {
        let seed = testSeed(2)
        var maker = Maker(random: SeededGenerator(seed: seed))
        var good = 0
        for round in 0..<800 {
            let isASCII = maker.chance(2)
            let tree: ProfileNode =
                round % 4 == 0
                ? NativeProfileTests.native.node
                : ProfileNode(
                    .table([
                        .init("record", maker.tree(0)), .init("ascii", ProfileNode(.boolean(isASCII))),
                        .init("body", Tree(dictionaryLiteral: ("l", "$records"), ("n", "$newest")).node),
                    ]))
            guard case .success(let profile) = Profile.compile("x", tree: tree, constants: Sample.constants) else {
                continue
            }
            good += 1
            var batch = Sample.batch((0..<2).map { maker.row($0) }, sentMs: maker.pick([nil, .min, .max]))
            batch.newest = maker.chance(2) ? maker.row(9) : nil
            let body = RequestRenderer(Sample.settings(profile), in: Sample.context).request(for: batch).body
            let mayHaveNull = String(describing: tree).contains("|null")
            var reader = StrictJSON(body, allowsNull: mayHaveNull)
            if !reader.isGood || (isASCII && round % 4 != 0 && !body.allSatisfy { $0 < 0x80 }) {
                Issue.record("seed \(seed), round \(round): \(String(decoding: body, as: UTF8.self))")
            }
        }
        #expect(good > 200, "seed \(seed)")
    }
}

/// RFC 8259, and no more; empty names are refused too.
private struct StrictJSON {
    private let bytes: [UInt8]
    private let allowsNull: Bool
    private var index = 0

    init(_ bytes: [UInt8], allowsNull: Bool) {
        self.bytes = bytes
        self.allowsNull = allowsNull
    }

    var isGood: Bool {
        mutating get { value() && index == bytes.count }
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func take(_ text: String) -> Bool {
        guard bytes[index...].starts(with: text.utf8) else { return false }
        index += text.utf8.count
        return true
    }

    private mutating func value() -> Bool {
        switch next {
        case UInt8(ascii: "{"): list("}") { $0.member() }
        case UInt8(ascii: "["): list("]") { $0.value() }
        case UInt8(ascii: "\""): string() != nil
        case UInt8(ascii: "t"): take("true")
        case UInt8(ascii: "f"): take("false")
        case UInt8(ascii: "n"): allowsNull && take("null")
        default: number()
        }
    }

    private mutating func member() -> Bool {
        guard let length = string(), length > 0 else { return false }
        return take(":") && value()
    }

    private mutating func list(_ end: String, _ item: (inout StrictJSON) -> Bool) -> Bool {
        index += 1
        if take(end) { return true }
        repeat { guard item(&self) else { return false } } while take(",")
        return take(end)
    }

    private mutating func string() -> Int? {
        guard take("\"") else { return nil }
        let start = index
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { return nil }
            index += 1
            guard byte == UInt8(ascii: "\\") else { continue }
            guard let escape = next, "\"\\/bfnrtu".utf8.contains(escape) else { return nil }
            index += escape == UInt8(ascii: "u") ? 5 : 1
        }
        let length = index - start
        return take("\"") ? length : nil
    }

    private mutating func number() -> Bool {
        _ = take("-")
        guard let first = next, (0x30...0x39).contains(first) else { return false }
        let whole = digits()
        if first == 0x30, whole > 1 { return false }
        return take(".") ? digits() > 0 : true
    }

    private mutating func digits() -> Int {
        let start = index
        while let byte = next, (0x30...0x39).contains(byte) { index += 1 }
        return index - start
    }
}
