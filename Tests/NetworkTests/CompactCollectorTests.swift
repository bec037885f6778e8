import Foundation
import Protocols
import Testing

@testable import Network

/// The built collector takes bodies in columns.
@Suite struct CompactCollectorTests {
    /// The example of the specification.
    private static let body = #"""
        {"v":2,"device":"van-7","outbox":"7f3a91c2","sent_ms":1700000020500,"n":3,"seq":[1041,1,2],"time":[1700000000123,4000,2000],"lat":[52520007,9,-5],"lon":[13404954,-724,-361],"accuracy":[45,3,null],"speed":[123,-2,null],"bearing":[271,0,null],"altitude":[34,1,null],"moving":[1,1,null]}
        """#
    /// The same rows in version 1.
    private static let earlier = #"""
        {"v":1,"device":"van-7","outbox":"7f3a91c2","sent_ms":1700000020500,"n":3,"seq":[1041,1,3],"time":[1700000000123,4000,6000],"lat":[52520007,9,4],"lon":[13404954,-724,-1085],"accuracy":[45,3,null],"speed":[123,-2,null],"bearing":[271,0,null],"altitude":[34,1,null],"moving":[1,1,null]}
        """#
    private static let id = "7f3a91c2-main-1041-1045"

    private func request(_ collector: CollectorProcess, _ body: String, gzip: Bool = false) -> UplinkRequest {
        UplinkRequest(
            url: collector.url,
            headers: [
                .init("Content-Type", "application/vnd.waypost.compact+json"),
                .init("Idempotency-Key", "\"\(Self.id)\""),
            ], body: Array(body.utf8), gzip: gzip)
    }

    @Test(arguments: [body, earlier]) func turnsColumnsIntoRecords(_ body: String) throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        let reply = try loop.reply(request(collector, body, gzip: true))
        #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
        let head = #"{"device":"van-7","outbox":"7f3a91c2","batch_id":"\#(Self.id)","trackable":"van-7","#
        #expect(
            try collector.lines() == [
                #"""
                \#(head)"location":{"lat":52.520007,"lon":13.404954},"timeStamp":1700000000,"time_ms":1700000000123,"seq":1041,"accuracy":4.5,"speed":12.3,"bearing":271,"altitude":34,"moving":true}
                """#,
                #"""
                \#(head)"location":{"lat":52.520016,"lon":13.404230},"timeStamp":1700000004,"time_ms":1700000004123,"seq":1042,"accuracy":4.8,"speed":12.1,"bearing":271,"altitude":35,"moving":true}
                """#,
                #"""
                \#(head)"location":{"lat":52.520020,"lon":13.403145},"timeStamp":1700000010,"time_ms":1700000010123,"seq":1045}
                """#,
            ])
        #expect(try loop.reply(request(collector, body)).status == 200)
        #expect(try collector.counts(loop, "duplicate_batches") == [1])
    }

    @Test func readsTextsFlagsAndTheOptionalColumns() throws {
        let collector = try CollectorProcess()
        let body = #"""
            {"v":2,"device":"van-7","outbox":"7f3a91c2","n":2,"seq":[7,1],"time":[-1,0],"lat":[-5,0],"lon":[0,-1],"moving":1,"event":[["geofence"],[null,0]],"trackable":[["a\"b"],[0,null]],"geofence_id":[["g1"],[null,0]],"geofence_action":[["enter"],[null,0]],"geofence_server_id":[["f-1"],[null,0]],"odometer":[15230,4],"battery_pct":[87,0],"altitude_hae":[74,null],"satellites":[9,-1],"charging":[0,1],"external_power":0,"simulated":[null,1],"reason":"time","quality":[["gps","dgps"],[1,0]],"fix_mode":"3d","boot_id":"5d0f","tyre_pressure":[[1],2]}
            """#
        let reply = try PollLoop().reply(request(collector, body))
        #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
        let head = #"{"device":"van-7","outbox":"7f3a91c2","batch_id":"\#(Self.id)","#
        #expect(
            try collector.lines() == [
                #"""
                \#(head)"location":{"lat":-0.000005,"lon":0.000000},"timeStamp":-1,"time_ms":-1,"seq":7,"odometer":15230,"battery":87,"altitude_hae":74,"satellites":9,"moving":true,"charging":false,"external_power":false,"trackable":"a\"b","reason":"time","quality":"dgps","fix_mode":"3d","boot_id":"5d0f"}
                """#,
                #"""
                \#(head)"location":{"lat":-0.000005,"lon":-0.000001},"timeStamp":-1,"time_ms":-1,"seq":8,"odometer":15234,"battery":87,"satellites":8,"moving":true,"charging":true,"external_power":false,"simulated":true,"event":"geofence","reason":"time","quality":"gps","fix_mode":"3d","boot_id":"5d0f","geofence":{"id":"g1","action":"enter","server_id":"f-1"}}
                """#,
            ])
    }

    private static let wrongColumns: [(correct: String, wrong: String, reason: String)] = [
        (#""v":2"#, #""v":3"#, "v: only versions 1 and 2 are understood"),
        (#""n":3"#, #""n":4"#, "seq: must be an array of 4 cells"),
        (#""n":3"#, #""n":0"#, "n: must be 1 to"),
        (#""n":3,"#, "", "n: is missing"),
        (#"[1041,1,2]"#, "[1041,1,-1]", "row 2: seq 1042 does not rise"),
        (#"[1041,1,2]"#, "[1041,null,2]", "seq: must be known in all rows"),
        (#"[1041,1,2]"#, "[9007199254740992,9007199254740992,1]", "seq[1]: the sum"),
        (#"[1041,1,2]"#, "[1,4503599627370497,0]", "seq[2]: the sum"),
        (#""lat":[52520007,9,-5],"#, "", "lat: is missing"),
        (#"[52520007,9,-5]"#, "[52520007,9,39999991]", "row 2.location.lat: 92.520016 is outside"),
        (#"[45,3,null]"#, "[45,3.5,null]", "accuracy[1]: must be a whole number"),
        (#"[45,3,null]"#, "[45,3]", "accuracy: must be an array of 3 cells"),
        (#""moving":[1,1,null]"#, #""moving":[1,2,null]"#, "moving: a flag is"),
        (#""moving":[1,1,null]"#, #""event":[["x"],[0,1,null]]"#, "event[1][1]: there is no word 1"),
        (#""moving":[1,1,null]"#, #""event":[["x"],[0,0]]"#, "event: must be [[words]"),
        (#"{"v":2,"#, #"[{"v":2,"#, "not JSON"),
    ]

    @Test func saysWhatIsWrongWithColumns() throws {
        let collector = try CollectorProcess()
        let loop = try PollLoop()
        for row in Self.wrongColumns {
            let body = Self.body.replacingOccurrences(of: row.correct, with: row.wrong)
            #expect(try loop.refusal(request(collector, body))?.hasPrefix(row.reason) == true, "\(row)")
        }
    }
}
