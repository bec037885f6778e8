import Testing
import WaypostCore

@testable import Channel

@Suite("Who is present") struct PresenceTests {
    private static func item(
        _ action: PresenceAction, _ client: String = "v", _ id: String = "x:0:0", _ asked: String? = nil,
        time: Int = 0
    ) -> String {
        let connection = id.split(separator: ":").first.map(String.init) ?? ""
        let resolution = asked.map {
            #","resolution":{"accuracy":"HIGH","desiredInterval":\#($0),"minimumDisplacement":2}"#
        }
        let data = JSONValue.string(#"{"type":"SUBSCRIBER"\#(resolution ?? "")}"#)
        let text = String(decoding: data.bytes, as: UTF8.self)
        return #"{"action":\#(action.rawValue),"clientId":"\#(client)","connectionId":"\#(connection)","id":"\#(id)","#
            + #""timestamp":\#(time),"data":\#(text)}"#
    }

    private static func presence(_ items: String...) -> String {
        #"{"action":14,"channel":"tracking:a","presence":[\#(items.joined(separator: ","))]}"#
    }

    /// The viewers that change by one item.
    private static func viewers(
        _ rig: Rig, _ action: PresenceAction, _ id: String = "x:0:0", _ asked: String? = nil
    ) -> [String] {
        rig.receive(presence(item(action, "v", id, asked))).viewers
    }

    private static func page(_ serial: String?, _ items: String...) -> String {
        let serial = serial.map { #""channelSerial":"\#($0)","# } ?? ""
        return #"{"action":16,"channel":"tracking:a",\#(serial)"presence":[\#(items.joined(separator: ","))]}"#
    }

    @Test func viewersComeAskAndGo() {
        let rig = Rig.entered()
        #expect(Self.viewers(rig, .enter) == ["+x:v"])
        #expect(Self.viewers(rig, .update, "x:1:0", "50.9") == ["=x:v 50"])
        #expect(Self.viewers(rig, .update, "x:2:0") == ["=x:v"])
        // The connection of another viewer, who is known only from the update.
        #expect(Self.viewers(rig, .update, "y:0:0", "1000.0") == ["+y:v 1000"])
        // What all items of a frame have in common stands before them.
        let common = #""channel":"tracking:a","id":"x:3","connectionId":"x""#
        #expect(rig.receive(#"{"action":14,\#(common),"presence":[{"action":3,"clientId":"v"}]}"#).viewers == ["-x:v"])
        #expect(rig.leave("a").viewers == ["-y:v"])
    }

    @Test func theFormsOfData() {
        func data(_ resolution: String) -> String { #"{"type":"SUBSCRIBER","resolution":\#(resolution)}"# }
        func read(_ text: String, _ encoding: String? = nil) -> PresenceData? {
            PresenceData(.string(text), encoding: encoding)
        }
        func asked(_ ms: Int64, _ displacement: Double) -> PresenceData {
            let request = Resolution(priority: .low, intervalMs: ms, displacement: displacement)
            return .subscriber(request: request, isMalformed: false)
        }
        let text = data(#"{"accuracy":"LOW","desiredInterval":7,"minimumDisplacement":0.5}"#)
        let forms = [read(text), read(text, "json"), PresenceData(JSONReader.read(Array(text.utf8)), encoding: nil)]
        #expect(forms == [asked(7, 0.5), asked(7, 0.5), asked(7, 0.5)])
        let huge = data(#"{"accuracy":"LOW","desiredInterval":1e300,"minimumDisplacement":1}"#)
        #expect(read(huge) == asked(9_000_000_000_000_000, 1))
        let none: [JSONValue?] = [.null, .int(123), nil]
        #expect(none.compactMap { PresenceData($0, encoding: nil) } == [])
        let long = #"{"type":"SUBSCRIBER","x":"\#(String(repeating: "a", count: 5000))"}"#
        let odd = ["", "abc", "1", "null", #"{"type":"subscriber"}"#, #"{"wrongField":1}"#, "[]", long]
        #expect(odd.filter { read($0) != nil } == [] && read(text, "cipher") == nil)
        let malformed = [
            #"{"accuracy":"BEST","desiredInterval":7,"minimumDisplacement":0}"#,
            #"{"accuracy":"low","desiredInterval":7,"minimumDisplacement":0}"#,
            #"{"accuracy":"LOW","desiredInterval":-7,"minimumDisplacement":0}"#,
            #"{"accuracy":"LOW","desiredInterval":7,"minimumDisplacement":-1}"#,
            #"{"accuracy":"LOW","desiredInterval":"7","minimumDisplacement":1}"#, "7", "[]",
        ]
        #expect(malformed.filter { read(data($0)) != .subscriber(request: nil, isMalformed: true) } == [])
    }

    @Test func aMalformedRequestIsWarnedOfOnce() {
        let rig = Rig.entered()
        #expect(rig.receive(Self.presence(Self.item(.enter, "v", "x:0:0", "-1"))).warnings.count == 1)
        let again = rig.receive(Self.presence(Self.item(.update, "v", "x:1:0", "-2")))
        #expect(again.warnings.isEmpty && again.viewers == [])
    }

    // RTP2.
    @Test func olderNewsIsNoNews() {
        let rig = Rig.entered()
        _ = Self.viewers(rig, .enter, "x:5:1", "100")
        for old in ["x:5:1", "x:5:0", "x:4:9"] {
            #expect(Self.viewers(rig, .update, old, "200") + Self.viewers(rig, .leave, old) == [])
        }
        #expect(Self.viewers(rig, .update, "x:10:0", "300") == ["=x:v 300"])
    }

    @Test func aLeaveThatTheServiceMadeIsComparedByTime() throws {
        var map = PresenceMap()
        func item(_ action: PresenceAction, _ id: String, _ time: Int64) -> PresenceItem {
            PresenceItem(
                action: action, connectionID: "x", clientID: "v", id: id, timestamp: time,
                data: .subscriber(request: nil, isMalformed: false))
        }
        _ = map.received(item(.enter, "x:0:0", 100))
        _ = map.received(item(.leave, "synthesized-1", 99))
        #expect(map.present.count == 1)
        _ = map.received(item(.leave, "synthesized-1", 100))
        #expect(map.present.isEmpty)
    }

    // RTP18, RTP19.
    @Test func aSynchronizationRemovesWhoIsNotNamed() {
        let rig = Rig.entered()
        for id in ["x:0:0", "y:0:0", "z:0:0"] { _ = Self.viewers(rig, .enter, id) }
        rig.effects = []
        rig.attached(hasPresence: true, isResumed: true)
        rig.receive(Self.page("1:a", Self.item(.present, "v", "x:0:0")))
        // Between the pages somebody comes, and somebody else goes, of whom the service had said that it was there.
        rig.receive(Self.presence(Self.item(.enter, "v", "w:0:0"), Self.item(.leave, "v", "y:1:0")))
        rig.receive(Self.page("1:", Self.item(.present, "v", "y:0:0")))
        #expect(rig.effects.viewers == ["-y:v", "+w:v", "-z:v"])
        #expect(Self.viewers(rig, .leave, "x:1:0") == ["-x:v"])
    }

    @Test func aSynchronizationOfOnePage() {
        for serial in [nil, "1:", "1"] {
            let rig = Rig.entered(hasPresence: true)
            #expect(rig.receive(Self.page(serial, Self.item(.present))).viewers == ["+x:v"])
            #expect(rig.receive(Self.page(serial)).viewers == ["-x:v"])
        }
    }

    @Test func anotherSynchronizationReplacesTheOneBefore() {
        let rig = Rig.entered(hasPresence: true)
        rig.receive(Self.page("1:a", Self.item(.present, "v", "x:0:0")))
        rig.receive(Self.page("2:", Self.item(.present, "v", "y:0:0")))
        #expect(rig.effects.viewers == ["+x:v", "-x:v", "+y:v"])
    }

    @Test func nobodyIsThereWhereTheServiceNamesNobody() {
        let rig = Rig.entered()
        _ = Self.viewers(rig, .enter)
        #expect(rig.attached(isResumed: true).viewers == ["-x:v"])
    }

    /// Somebody who may be gone must not keep the receiver busy.
    @Test func aLongOutageForgetsThemUntilTheServiceHasTold() {
        let rig = Rig.entered(since: 60)
        rig.receive(Self.presence(Self.item(.enter, "v", "x:0:0"), Self.item(.enter, "v", "y:0:0")))
        rig.effects = []
        rig.lose()
        rig.pass(.seconds(119))
        #expect(rig.effects.viewers == [])
        #expect(rig.pass(.seconds(1)).viewers == ["-x:v", "-y:v"])
        while rig.client.state != .connected {
            rig.pass(.seconds(1))
            rig.connect("d")
        }
        #expect(rig.attached(hasPresence: true).viewers == [])
        #expect(rig.receive(Self.page("1:a", Self.item(.present, "v", "x:0:0"))).viewers == [])
        #expect(rig.receive(Self.page("1:")).viewers == ["+x:v"])
    }

    @Test func anotherPublisherIsWarnedOfOnce() {
        let rig = Rig.entered()
        func publisher(_ action: PresenceAction, _ client: String, _ connection: String) -> [ChannelClient.Effect] {
            let common = #""channel":"tracking:a","id":"\#(connection):0","connectionId":"\#(connection)""#
            let item = #"{"action":\#(action.rawValue),"clientId":"\#(client)","data":"{\"type\":\"PUBLISHER\"}"}"#
            return rig.receive(#"{"action":14,\#(common),"presence":[\#(item)]}"#)
        }
        // Ourselves, and what we left behind.
        #expect(publisher(.enter, "van", "c") == [])
        #expect(publisher(.present, "van", "before") + publisher(.leave, "van", "before") == [])
        #expect(publisher(.present, "bus", "x").warnings == [.secondPublisher(clientID: "bus")])
        #expect(publisher(.update, "bus", "x").warnings == [])
        #expect(publisher(.update, "van", "y").warnings == [.secondPublisher(clientID: "van")])
        #expect(rig.effects.viewers == [])
    }

    @Test func aCrowdIsBounded() {
        let rig = Rig.entered()
        for number in 0..<400 { _ = Self.viewers(rig, .enter, "x\(number):0:0") }
        #expect(rig.effects.viewers.count == PresenceMap.membersMax && rig.effects.warnings == [])
        #expect(rig.client.problems == [.tooManyMembers(trackable: "a", ignored: 150)])
        rig.effects = []
        rig.receive(Self.presence(Self.item(.leave, "v", "x0:1:0"), Self.item(.enter, "v", "x399:1:0")))
        #expect(rig.effects.viewers == ["-x0:v", "+x399:v"])
        _ = Self.viewers(rig, .leave, "x399:2:0")
        #expect(rig.client.problems == [] && rig.client.ignoredMembers == 150)
    }

    /// 200 members that say much of themselves are one frame of more than 128 KiB.
    @Test func aFullChannelIsHeard() {
        let rig = Rig.entered(hasPresence: true)
        let note = String(repeating: "x", count: 900)
        let items = (0..<200).map { number in
            #"{"action":1,"clientId":"v","connectionId":"x\#(number)","id":"x\#(number):0:0","#
                + #""data":"{\"type\":\"SUBSCRIBER\",\"note\":\"\#(note)\"}"}"#
        }
        let page = #"{"action":16,"channel":"tracking:a","presence":[\#(items.joined(separator: ","))]}"#
        #expect(page.utf8.count > 180_000 && page.utf8.count < ChannelClient.Settings.frameBytesMax)
        #expect(rig.receive(page).viewers.count == 200)
    }

    @Test func aFrameThatWasTooLargeIsAProblemUntilTheNextConnection() {
        let rig = Rig.entered(since: 60)
        rig.client.skippedFrame(at: rig.now)
        #expect(rig.client.problems == [.frameSkipped] && rig.client.unreadFrames == 1)
        rig.lose()
        rig.connect("c")
        #expect(rig.client.problems == [])
    }

    @Test func whatNamesNobodyIsCounted() {
        let rig = Rig.entered()
        let long = String(repeating: "x", count: 300)
        rig.receive(
            Self.presence("{}", "1", #"{"action":2}"#, #"{"action":9,"clientId":"v"}"#, Self.item(.enter, long)))
        rig.receive(Self.presence(#"{"action":2,"clientId":"v","connectionId":"x","id":"x:0:0","data":7}"#))
        #expect(rig.effects.viewers == [] && rig.client.ignoredItems == 6)
    }
}
