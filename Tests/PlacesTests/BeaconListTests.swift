import Testing
import WaypostCore

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
        func withName(_ name: String) -> String { region.replacing("}", with: #","name":"\#(name)"}"#) }
        let problem = #"[1]: found the id "\#(Self.uuid)/1" again, expected an id that no other beacon region has"#
        #expect(problems("[\(withName("a")),\(withName("b"))]", named) == [problem])
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
        let minorAlone = #"{"data":{"halls":[{"beacon":["\#(Self.uuid)",null,2]}]}}"#
        let problem = "data.halls[0].beacon.2: found it without a major, expected both"
        #expect(problems(minorAlone, mapping) == [problem])
    }

    @Test func oneMistakeRefusesTheWholeList() {
        let noUUID = #".proximityUUID: found no UUID, expected one such as "\#(Self.uuid)""#
        let number = ".major: found another value, expected a whole number from 0 to 65535"
        let good = #""proximityUUID":"\#(Self.uuid)","major":1"#
        func of(_ major: String) -> String { #""proximityUUID":"\#(Self.uuid)","major":\#(major)"# }
        let rows: [(text: String, problem: String)] = [
            ("{}", "the reply: found no array, expected one of beacon regions"),
            ("[1]", "[0]: found something else, expected an object"), (#"[{"major":1}]"#, "[0]" + noUUID),
            (#"[{"proximityUUID":"\#(Self.uuid.dropLast())","major":1}]"#, "[0]" + noUUID),
            (
                #"[{"proximityUUID":"\#(Self.uuid)"}]"#,
                "[0].major: found nothing, expected a whole number from 0 to 65535"
            ),
            ("[{\(good)},{\(of("65536"))}]", "[1]" + number), ("[{\(of("1.5"))}]", "[0]" + number),
            ("[{\(of(#""1""#))}]", "[0]" + number),
            ("[{\(good)},]", "found no valid JSON at byte 68, expected JSON"),
            (#"[{\#(good),"major":2}]"#, "found two members of one name, expected each once"),
        ]
        for (text, problem) in rows { #expect(problems(text) == [problem], "\(text)") }
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
}
