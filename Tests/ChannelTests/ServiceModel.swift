import TestSupport
import WaypostCore

@testable import Channel

/// The service with one channel, its viewers and its faults, in memory.
final class ServiceModel {
    private struct Connection {
        var id: String
        var key: String { "\(id)-key" }
        var isAttached = false
        /// The number of the frame that is expected.
        var serial: Int64 = 0
    }

    struct Member: Equatable {
        var connection: String
        var client: String
        var serial: Int
        var data: String
    }

    private var dice: SeededGenerator
    private var connections = 0
    private var current: Connection?
    private var time: Int64 = 1_000_000
    private(set) var members: [String: Member] = [:]
    private(set) var storedIDs: [String] = []
    /// Of the locations that viewers have seen, alone or beside another; seconds.
    private(set) var shownTimes: Set<Double> = []
    private(set) var hasTransport = false
    /// Frames that it sends, in order.
    private var outgoing: [String] = []
    /// That were answered.
    private(set) var requests = 0
    var token = 1
    /// No more faults.
    var isCalm = false
    /// What it saw that no client may do.
    private(set) var complaints: [String] = []

    init(seed: UInt64) { dice = SeededGenerator(seed: seed) }

    func chance(_ one: Int) -> Bool { !isCalm && Int.random(in: 0..<one, using: &dice) == 0 }

    func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &dice) }

    func takeOutgoing() -> String? { outgoing.isEmpty ? nil : outgoing.removeFirst() }

    // The transport.

    func opened(_ request: TransportRequest) {
        if hasTransport { complaints.append("a second transport") }
        hasTransport = true
        outgoing = []
        let secrets = Dictionary(uniqueKeysWithValues: request.secretItems.map { ($0.name, $0.value.revealed) })
        guard secrets["accessToken"] == "\(token)" else {
            return say(#"{"action":9,"error":{"code":40142,"statusCode":401}}"#)
        }
        if let current, secrets["resume"] == current.key, !chance(4) {
            return say(connected(current))
        }
        leaveAll()
        connections += 1
        let new = Connection(id: "c\(connections)")
        current = new
        say(connected(new))
    }

    func lost() {
        hasTransport = false
        outgoing = []
    }

    private func connected(_ connection: Connection) -> String {
        #"{"action":4,"connectionId":"\#(connection.id)","connectionDetails":{"connectionKey":"\#(connection.key)","#
            + #""maxIdleInterval":15000}}"#
    }

    func say(_ text: String) { if hasTransport { outgoing.append(text) } }

    /// Members of a connection that is gone leave in the name of the service.
    private func leaveAll() {
        guard let id = current?.id else { return }
        for (key, member) in members where member.connection == id {
            members[key] = nil
            time += 1
            tell(
                #"{"action":3,"clientId":"\#(member.client)","connectionId":"\#(id)","id":"made-up","timestamp":\#(time)}"#
            )
        }
    }

    // Frames of the client.

    func received(_ text: String) {
        guard hasTransport, let frame = JSONReader.read(Array(text.utf8)), let action = frame["action"]?.integer else {
            return complaints.append("no frame: \(text)")
        }
        switch action {
        case 7: say(#"{"action":8}"#)
        case 10: attach()
        case 14, 15: numbered(frame, action)
        case 17:
            if frame.value(at: ["auth", "accessToken"])?.string != "\(token)" {
                say(#"{"action":6,"error":{"code":40142,"statusCode":401}}"#)
            } else if let current {
                say(connected(current))
            }
        default: complaints.append("action \(action)")
        }
    }

    private func attach() {
        if chance(20) { return say(#"{"action":13,"channel":"tracking:a","error":{"code":90198,"statusCode":500}}"#) }
        if chance(30) { return }
        let wasAttached = current?.isAttached == true
        current?.isAttached = true
        let flags = ClientFrame.attachFlags + (members.isEmpty ? 0 : 1) + (wasAttached ? 4 : 0)
        say(#"{"action":11,"channel":"tracking:a","flags":\#(flags),"channelSerial":"s\#(time)"}"#)
        guard !members.isEmpty else { return }
        let items = members.values.sorted { ($0.connection, $0.client) < ($1.connection, $1.client) }.map {
            item(1, $0)
        }
        let half = items.count / 2
        let pages = [items[..<half], items[half...]]
        let sequence = time
        say(page("\(sequence):x", pages[0]))
        // Some changes come between the pages, of what the second one still says as it was.
        if chance(2) { changeViewers() }
        say(page("\(sequence):", pages[1]))
    }

    private func page(_ serial: String, _ items: ArraySlice<String>) -> String {
        #"{"action":16,"channel":"tracking:a","channelSerial":"\#(serial)","presence":[\#(items.joined(separator: ","))]}"#
    }

    private func item(_ action: Int, _ member: Member) -> String {
        let data = String(decoding: JSONValue.string(member.data).bytes, as: UTF8.self)
        return #"{"action":\#(action),"clientId":"\#(member.client)","connectionId":"\#(member.connection)","#
            + #""id":"\#(member.connection):\#(member.serial):0","data":\#(data)}"#
    }

    private func tell(_ item: String) {
        guard current?.isAttached == true else { return }
        say(#"{"action":14,"channel":"tracking:a","channelSerial":"s\#(time)","presence":[\#(item)]}"#)
    }

    private func numbered(_ frame: JSONValue, _ action: Int64) {
        guard let connection = current, let serial = frame["msgSerial"]?.integer else { return }
        if serial > connection.serial { complaints.append("number \(serial) instead of \(connection.serial)") }
        current?.serial = max(connection.serial, serial + 1)
        if chance(10) {
            // Presence that is refused for good is not tried again.
            let codes = [(42_911, 429), (50_000, 500), (40_160, 401), (91_001, 400), (40_009, 413)]
            let (code, status) = codes[number(0..<(action == 15 ? 5 : 4))]
            return say(
                #"{"action":2,"msgSerial":\#(serial),"count":1,"error":{"code":\#(code),"statusCode":\#(status)}}"#)
        }
        if action == 15 { store(frame["messages"]?.items?.first) } else { present(frame, connection, serial) }
        say(#"{"action":1,"msgSerial":\#(serial),"count":1}"#)
    }

    /// - Returns: status and body; no status = the answer was lost.
    func answer(_ request: ServiceRequest) -> (Int?, String) {
        if chance(8) { return (nil, "") }
        guard request.credential == .token(ChannelSecret("\(token)")) else {
            return (401, #"{"error":{"code":40142,"statusCode":401}}"#)
        }
        if chance(8) { return (number(0..<2) == 0 ? 503 : 200, "<html>") }
        requests += 1
        guard let body = request.body else {
            let items = members.values.sorted { ($0.connection, $0.client) < ($1.connection, $1.client) }
            return (200, "[\(items.map { item(1, $0) }.joined(separator: ","))]")
        }
        store(JSONReader.read(body))
        return chance(8) ? (nil, "") : (201, #"{"channel":"tracking:a"}"#)
    }

    private func store(_ item: JSONValue?) {
        guard let item, let id = item["id"]?.string, let data = item["data"]?.string,
            let update = JSONReader.read(Array(data.utf8)), let location = update["location"],
            let skipped = update["skippedLocations"]?.items
        else { return complaints.append("no message") }
        guard !storedIDs.contains(id) else { return }
        storedIDs.append(id)
        for feature in skipped + [location] {
            if let time = feature.value(at: ["properties", "time"])?.number { shownTimes.insert(time) }
        }
    }

    private func present(_ frame: JSONValue, _ connection: Connection, _ serial: Int64) {
        guard connection.isAttached else { return }
        guard let item = frame["presence"]?.items?.first, let data = item["data"]?.string,
            let action = item["action"]?.integer
        else { return complaints.append("no presence") }
        let member = Member(connection: connection.id, client: "van", serial: Int(serial), data: data)
        members["\(connection.id):van"] = action == 3 ? nil : member
        tell(self.item(Int(action), member))
    }

    // What else happens.

    /// Viewers come, ask for something else, and go.
    func changeViewers() {
        let key = "v\(number(0..<6)):viewer"
        time += 1
        if let member = members[key], number(0..<3) == 0 {
            members[key] = nil
            var gone = member
            gone.serial += 1
            tell(item(3, gone))
        } else {
            let connection = String(key.prefix { $0 != ":" })
            let asked = number(1..<1000)
            let data =
                #"{"type":"SUBSCRIBER","resolution":{"accuracy":"HIGH","desiredInterval":\#(asked),"minimumDisplacement":1}}"#
            let action = members[key] == nil ? 2 : 4
            let member = Member(connection: connection, client: "viewer", serial: Int(time), data: data)
            members[key] = member
            tell(item(action, member))
        }
    }

    func detach() {
        guard current?.isAttached == true, hasTransport else { return }
        current?.isAttached = false
        say(#"{"action":13,"channel":"tracking:a","error":{"code":90198,"statusCode":500}}"#)
    }

    /// The state of the connection is thrown away, as after a long time without one.
    func forget() {
        guard !hasTransport else { return }
        leaveAll()
        current = nil
    }
}
