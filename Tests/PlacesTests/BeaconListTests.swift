import Positioning
import Testing

@testable import Places

@Suite struct BeaconListTests {
    private static let uuid = "F7826DA6-4FA2-4E98-8024-BC5B71E0893E"
    private static let other = "00000000-0000-0000-0000-000000000001"

    private func read(_ text: String, _ mapping: BeaconMapping = .accessoBeacons) throws(ListProblems) -> [BeaconRegion]
    {
        try BeaconList.read(Array(text.utf8), mapping)
    }

    private func problems(_ text: String, _ mapping: BeaconMapping = .accessoBeacons) -> [String] {
        do throws(ListProblems) {
            _ = try read(text, mapping)
            return []
        } catch { return error.lines }
    }

    @Test func theRegionsOfAVenue() throws {
        let text = """
            [{"proximityUUID":"\(Self.uuid)","major":123},
             {"id":9,"proximityUUID":"\(Self.other)","major":0,"name":"x"}]
            """
        #expect(try read(text).map(\.id) == ["\(Self.uuid)/123", "\(Self.other)/0"])
        #expect(try read(text).map(\.name) == [nil, nil])
        #expect(try read("[]").isEmpty)
        let plain = Self.uuid.lowercased().replacing("-", with: "")
        #expect(try read(#"[{"proximityUUID":"\#(plain)","major":65535}]"#).map(\.id) == ["\(Self.uuid)/65535"])
    }

    /// A server may have a record for each beacon.
    @Test func aRegionThatComesAgainIsOne() throws {
        let region = #"{"proximityUUID":"\#(Self.uuid)","major":1}"#
        #expect(try read("[\(region),\(region)]").count == 1)
        var named = BeaconMapping.accessoBeacons
        named.name = ["name"]
        let names = ["a", "b"].map { #"{"proximityUUID":"\#(Self.uuid)","major":1,"name":"\#($0)"}"# }
        #expect(
            problems("[\(names.joined(separator: ","))]", named) == [
                "[1]: found the id \"\(Self.uuid)/1\" again, expected an id that no other beacon region has"
            ])
    }

    @Test func pathsOfOnesOwn() throws {
        var mapping = BeaconMapping()
        mapping.list = ["data", "halls"]
        mapping.uuid = ["beacon", "0"]
        mapping.major = ["beacon", "1"]
        mapping.minor = ["beacon", "2"]
        mapping.name = ["title"]
        let text = """
            {"data":{"halls":[
              {"title":"north","beacon":["\(Self.uuid)",1,2]},
              {"title":"","beacon":["\(Self.uuid)",1]},
              {"beacon":["\(Self.uuid)",null,null]}
            ]}}
            """
        let regions = try read(text, mapping)
        #expect(regions.map(\.id) == ["\(Self.uuid)/1/2", "\(Self.uuid)/1", Self.uuid])
        #expect(regions.map(\.name) == ["north", nil, nil])
        #expect(problems("[]", mapping) == ["data.halls: found no array, expected one of beacon regions"])
        #expect(
            problems(#"{"data":{"halls":[{"beacon":["\#(Self.uuid)",null,2]}]}}"#, mapping) == [
                "data.halls[0].beacon.2: found it without a major, expected both"
            ])
    }

    @Test(arguments: [
        ("{}", "the reply: found no array, expected one of beacon regions"),
        ("[1]", "[0]: found something else, expected an object"),
        (
            #"[{"major":1}]"#,
            #"[0].proximityUUID: found no UUID, expected one such as "F7826DA6-4FA2-4E98-8024-BC5B71E0893E""#
        ),
        (
            #"[{"proximityUUID":"F7826DA6-4FA2-4E98-8024-BC5B71E0893","major":1}]"#,
            #"[0].proximityUUID: found no UUID, expected one such as "F7826DA6-4FA2-4E98-8024-BC5B71E0893E""#
        ),
        (
            #"[{"proximityUUID":"\#(uuid)"}]"#, "[0].major: found nothing, expected a whole number from 0 to 65535"
        ),
        (
            #"[{"proximityUUID":"\#(uuid)","major":1},{"proximityUUID":"\#(uuid)","major":65536}]"#,
            "[1].major: found another value, expected a whole number from 0 to 65535"
        ),
        (
            #"[{"proximityUUID":"\#(uuid)","major":1.5}]"#,
            "[0].major: found another value, expected a whole number from 0 to 65535"
        ),
        (
            #"[{"proximityUUID":"\#(uuid)","major":"1"}]"#,
            "[0].major: found another value, expected a whole number from 0 to 65535"
        ),
        (
            #"[{"proximityUUID":"\#(uuid)","major":1},]"#,
            "found no valid JSON at byte 68, expected JSON"
        ),
        (
            #"[{"proximityUUID":"\#(uuid)","major":1,"major":2}]"#,
            "found two members of one name, expected each once"
        ),
    ])
    func oneMistakeRefusesTheWholeList(_ text: String, _ problem: String) {
        #expect(problems(text) == [problem])
    }

    @Test func moreThanCanBeComparedAreRefused() throws {
        func list(_ count: Int) -> String {
            "[\((0..<count).map { #"{"proximityUUID":"\#(Self.uuid)","major":\#($0)}"# }.joined(separator: ","))]"
        }
        #expect(try read(list(256)).count == 256)
        #expect(problems(list(257)) == ["found 257 beacon regions, expected at most 256"])
        var lists = JoinedLists(own: try read(list(200)), sources: ["venue"])
        #expect(
            throws: ListProblems(
                lines: ["found 57 beacon regions beside 200 others, expected at most 256 together"])
        ) { _ = try lists.received(read(list(57)), of: "venue") }
        #expect(try lists.received(read(list(56)), of: "venue") == ListChange(added: 56))
    }

    /// What a server takes away while the asset is inside is left, and what it gives is entered.
    @Test func regionsComeAndGoWithLists() throws {
        func region(_ major: Int) throws -> [BeaconRegion] {
            try read(#"[{"proximityUUID":"\#(Self.uuid)","major":\#(major)}]"#)
        }
        var lists = JoinedLists(own: try region(1), sources: ["venue"])
        _ = try lists.received(region(2), of: "venue")
        var monitor = BeaconMonitor(lists.joined)
        monitor.scanStarted(at: .zero)
        func sight(_ major: UInt16, at second: Int) -> [BeaconMonitor.Event] {
            let beacon = Beacon(uuid: ProximityUUID(Self.uuid)!, major: major, minor: 1)
            return monitor.sighted(
                BeaconAdvertisement(beacon: beacon, measuredPower: -59), rssi: -70,
                at: EventTime.zero + .seconds(second))
        }
        _ = sight(1, at: 1) + sight(2, at: 1)
        #expect(sight(1, at: 2).contains(.entered(try region(1)[0])))
        #expect(sight(2, at: 2).contains(.entered(try region(2)[0])))
        _ = try lists.received(region(3), of: "venue")
        #expect(
            monitor.regionsChanged(lists.joined, at: EventTime.zero + .seconds(3)) == [
                .left(try region(2)[0], isRemoved: true)
            ])
        #expect(monitor.inside.map(\.major) == [1] && sight(2, at: 4).isEmpty)
        _ = sight(3, at: 5)
        #expect(sight(3, at: 6).contains(.entered(try region(3)[0])))
    }
}
