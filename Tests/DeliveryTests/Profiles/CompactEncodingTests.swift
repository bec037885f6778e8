import Delivery
import Foundation
import Positioning
import TestSupport
import Testing

@Suite struct CompactEncodingTests {
    private static func tree(_ columns: Tree? = nil) -> Tree {
        guard let columns else { return ["encoding": "compact"] }
        return ["encoding": "compact", "columns": columns]
    }

    /// The published example: a full fix, another 4 s later, and after 6 s more one of which nothing else is known.
    private var rows: [QueuedLocation] {
        var second = Sample.row
        second.seq = 1042
        second.location.time = UTCTime(milliseconds: 1_700_000_004_123)
        second.location.coordinate = Coordinate(latitudeE7: 525_200_160, longitudeE7: 134_042_300)
        second.location.horizontalAccuracy = 4.8
        second.location.speed = 12.1
        second.location.course = 270.6
        second.location.altitudeMSL = 34.6
        var third = Sample.bare(seq: 1045)
        third.location.time = UTCTime(milliseconds: 1_700_000_010_123)
        third.location.coordinate = Coordinate(latitudeE7: 525_200_204, longitudeE7: 134_031_450)
        third.location.moving = true
        return [Sample.row, second, third]
    }

    /// Whether an asset moves is known of every row, so this column is constant here.
    @Test func rendersThePublishedExampleByteForByte() throws {
        #expect(
            try Sample.body(Self.tree(), rows) == """
                {"v":2,"device":"van-7","outbox":"7f3a91c2","sent_ms":1700000020500,"n":3,"seq":[1041,1,2],\
                "time":[1700000000123,4000,2000],"lat":[52520007,9,-5],"lon":[13404954,-724,-361],\
                "accuracy":[45,3,null],"speed":[123,-2,null],"bearing":[271,0,null],"altitude":[34,1,null],"moving":1}
                """)
        let request = try RequestRenderer(Sample.settings(Self.tree()), in: Sample.context).request(
            for: Sample.batch(rows))
        #expect(
            request.headers == [
                .init("Content-Type", "application/vnd.waypost.compact+json"),
                .init("Idempotency-Key", "\"7f3a91c2-main-1041-1045\""),
            ])
    }

    @Test func writesFlagsAndTextOnceWhenTheyAreConstant() throws {
        var crossings = [Sample.crossing, Sample.crossing]
        for index in crossings.indices { crossings[index].location.trackable = "van-8" }
        #expect(
            try Sample.body(Self.tree(["reason", "charging", "boot_id", "odometer"]), crossings).hasSuffix(
                #""moving":1,"event":"geofence","trackable":"van-8","geofence_id":"f-1","geofence_name":"Depot North","#
                    + #""geofence_action":"enter","geofence_source":"DEVICE","reason":"displacement","charging":1,"#
                    + #""boot_id":"\#(Sample.boot)","odometer":[15230,0]}"#))
    }

    @Test func writesMixedFlagsAndTextAsColumns() throws {
        var rows = [Sample.crossing, Sample.row, Sample.bare(seq: 3), Sample.crossing]
        rows[1].location.trackable = "van-8"
        rows[2].location.trackable = nil
        rows[1].location.power.charging = false
        rows[3].location.geofence?.action = .exit
        let text = try Sample.body(Self.tree(["charging", "quality"]), rows)
        #expect(
            text.hasSuffix(
                #""moving":[1,1,0,1],"event":[["geofence"],[0,null,null,0]],"trackable":[["van-7","van-8"],[0,1,null,0]],"#
                    + #""geofence_id":[["f-1"],[0,null,null,0]],"geofence_name":[["Depot North"],[0,null,null,0]],"#
                    + #""geofence_action":[["enter","exit"],[0,null,null,1]],"#
                    + #""geofence_source":[["DEVICE"],[0,null,null,0]],"#
                    + #""charging":[1,0,null,1],"quality":[["dgps"],[0,0,null,0]]}"#))
    }

    @Test func wrapsBeyond64Bits() throws {
        var rows = [Sample.row, Sample.row, Sample.row]
        for (index, seq) in [1, Int64.max, 1].enumerated() { rows[index].seq = seq }
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
            for (object, row) in zip(read, rows) {
                let (location, place) = (row.location, row.location.coordinate)
                #expect(object["seq"] as? Int64 == row.seq)
                #expect(object["time"] as? Int64 == location.time.milliseconds)
                #expect(object["lat"] as? Double == (Double(place.latitudeE7) / 10).rounded() / 1e6)
                #expect(object["lon"] as? Double == (Double(place.longitudeE7) / 10).rounded() / 1e6)
                #expect(object["speed"] as? Double == location.speed)
                #expect(object["odometer"] as? Double == location.odometer.rounded())
                #expect(object["moving"] as? Int == (location.moving ? 1 : 0))
                #expect(object["charging"] as? Int == location.power.charging.map { $0 ? 1 : 0 })
                #expect(object["trackable"] as? String == location.trackable)
                #expect(object["geofence_name"] as? String == location.geofence?.name)
                #expect(object["boot_id"] as? String == row.bootID)
            }
        }
    }

    @Test func namesTheTrackableUnlessItIsTheDevice() throws {
        var none = Sample.row
        none.location.trackable = nil
        #expect(try !Sample.body(Self.tree(), [Sample.row]).contains("trackable"))
        #expect(try Sample.body(Self.tree(), [none]).hasSuffix(#""trackable":null}"#))
    }

    @Test func roundsBeforeItSubtracts() throws {
        var rows = (0..<3).map { _ in Sample.row }
        for (index, course) in [359.4, 359.6, 1].enumerated() { rows[index].location.course = course }
        #expect(try Sample.body(Self.tree(), rows).contains(#""bearing":[359,-359,1]"#))
        for index in rows.indices { rows[index].location.speed = 0.04 + 0.04 * Double(index) }
        #expect(try Sample.body(Self.tree(), rows).contains(#""speed":[0,1,0]"#))
    }
}
