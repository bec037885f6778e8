import Foundation
import Profiles
import ProfilesTestSupport
import TestSupport
import Testing
import WaypostCore

@Suite struct CompactEncodingTests {
    private static func tree(_ columns: Tree? = nil) -> Tree {
        guard let columns else { return ["encoding": "compact"] }
        return ["encoding": "compact", "columns": columns]
    }

    @Test func writesFlagsAndTextOnceWhenTheyAreConstant() throws {
        var crossing = Sample.crossing
        crossing.location.trackable = "van-8"
        let expected = """
            "moving":1,"event":"geofence","trackable":"van-8","geofence_id":"f-1","geofence_name":"Depot North",\
            "geofence_action":"enter","geofence_source":"DEVICE","reason":"displacement","charging":1,\
            "boot_id":"\(Sample.boot)","odometer":[15230,0]}
            """
        let columns: Tree = ["reason", "charging", "boot_id", "odometer"]
        #expect(try Sample.body(Self.tree(columns), [crossing, crossing]).hasSuffix(expected))
    }

    @Test func writesMixedFlagsAndTextAsColumns() throws {
        var rows: [QueuedLocation] = [Sample.crossing, Sample.row, Sample.bare(seq: 3), Sample.crossing]
        rows[1].location.trackable = "van-8"
        rows[2].location.trackable = nil
        rows[1].location.power.charging = false
        rows[3].location.geofence?.action = .exit
        let expected = """
            "moving":[1,1,0,1],"event":[["geofence"],[0,null,null,0]],"trackable":[["van-7","van-8"],[0,1,null,0]],\
            "geofence_id":[["f-1"],[0,null,null,0]],"geofence_name":[["Depot North"],[0,null,null,0]],\
            "geofence_action":[["enter","exit"],[0,null,null,1]],"geofence_source":[["DEVICE"],[0,null,null,0]],\
            "charging":[1,0,null,1],"quality":[["dgps"],[0,0,null,0]]}
            """
        #expect(try Sample.body(Self.tree(["charging", "quality"]), rows).hasSuffix(expected))
    }

    @Test func wrapsBeyond64Bits() throws {
        var rows = [Sample.row, Sample.row, Sample.row]
        for (index, seq) in ([1, .max, 1] as [Int64]).enumerated() { rows[index].seq = seq }
        #expect(try Sample.body(Self.tree(), rows).contains(#""seq":[1,9223372036854775806,4]"#))
    }

    /// The program of docs/profiles.md.
    @Test func aProgramOfOnesOwnReadsTheColumns() throws {
        var generator = SeededGenerator(seed: 11)
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }
        var rows: [QueuedLocation] = []
        for index in 0..<300 {
            var row = number(0...2) == 0 ? Sample.bare(seq: 0) : number(0...2) == 0 ? Sample.crossing : Sample.row
            row.seq = Int64(index * 10 + number(0...9))
            row.location.time = UTCTime(milliseconds: Int64(1_700_000_000_000 + index * 1000 + number(-2000...2000)))
            row.location.coordinate = Coordinate(
                latitudeE7: Int32(number(-90...90) * 10_000_000), longitudeE7: Int32(number(-1800...1800) * 1_000_000))
            if row.location.speed != nil { row.location.speed = Double(number(0...400)) / 10 }
            if number(0...3) == 0 { row.location.trackable = nil }
            rows.append(row)
        }
        for rows in [rows, [Sample.row]] {
            let body = try Sample.body(Self.tree(["odometer", "charging", "boot_id"]), rows)
            let read = try PublishedProgram.rows(of: "docs/profiles.md", body)
            try #require(read.count == rows.count)
            let wrong = zip(read, rows).filter { !isRow($0, $1) }
            #expect(wrong.isEmpty)
        }
    }

    private func isRow(_ object: [String: Any], _ row: QueuedLocation) -> Bool {
        let (location, place) = (row.location, row.location.coordinate)
        let charging: Int? = location.power.charging.map { $0 ? 1 : 0 }
        guard object["seq"] as? Int64 == row.seq, object["time"] as? Int64 == location.time.milliseconds,
            object["lat"] as? Double == degrees(place.latitudeE7),
            object["lon"] as? Double == degrees(place.longitudeE7)
        else { return false }
        guard object["speed"] as? Double == location.speed,
            object["odometer"] as? Double == location.odometer.rounded(),
            object["moving"] as? Int == (location.moving ? 1 : 0), object["charging"] as? Int == charging
        else { return false }
        return object["trackable"] as? String == location.trackable && object["boot_id"] as? String == row.bootID
            && object["geofence_name"] as? String == location.geofence?.name
    }

    private func degrees(_ e7: Int32) -> Double { (Double(e7) / 10).rounded() / 1e6 }

    @Test func namesTheTrackableUnlessItIsTheDevice() throws {
        var none = Sample.row
        none.location.trackable = nil
        #expect(try !Sample.body(Self.tree(), [Sample.row]).contains("trackable"))
        #expect(try Sample.body(Self.tree(), [none]).hasSuffix(#""trackable":null}"#))
    }

    @Test func roundsBeforeItSubtracts() throws {
        var rows = (0..<3).map { _ in Sample.row }
        for (index, course) in ([359.4, 359.6, 1] as [Double]).enumerated() { rows[index].location.course = course }
        #expect(try Sample.body(Self.tree(), rows).contains(#""bearing":[359,-359,1]"#))
        for index in rows.indices { rows[index].location.speed = 0.04 + 0.04 * Double(index) }
        #expect(try Sample.body(Self.tree(), rows).contains(#""speed":[0,1,0]"#))
    }
}
