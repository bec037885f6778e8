@testable import Channel
@testable import WaypostCore

/// libFuzzer entry: whatever the service of the channel says, and whatever the owner does, there is one transport at a
/// time and frames go into an open one; numbered frames leave no number out; each message is settled once; viewers come
/// before they ask and go; no secret is shown; and a deadline that was reached does not come again.
///
/// The input is a script: a byte that chooses what is done next, and what it is done with.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChannel(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    var rig = Rig(choice: input.byte())
    while !input.isOver {
        rig.act(input.byte(), &input)
        rig.check()
    }
    rig.end()
    return 0
}

private let trackables = ["a", "b", "c"]
private let secret = "hush"

private struct Rig {
    private var client: ChannelClient
    private var now = EventTime.zero
    private var isOpen = false
    private var isRenewing = false
    private var unsettled: Set<String> = []
    private var number = 0
    private var viewers: [String: Set<String>] = [:]
    private var nextSerial: Int64 = 0
    private var asked: [ServiceRequest] = []
    private let feature: ChannelFeature

    init(choice: UInt8) {
        var settings = ChannelClient.Settings(host: "h", clientID: "van")
        if choice & 1 != 0 { settings.fallbackHosts = ["i", "j"] }
        if choice & 2 != 0 { settings.firstReconnectSpread = .zero }
        let credential: ChannelCredential? = choice & 4 != 0 ? nil : .token(ChannelSecret(secret))
        client = ChannelClient(settings, credential: credential)
        feature = ChannelFeature(
            coordinate: Coordinate(latitudeE7: 1, longitudeE7: 2), altitude: nil, accuracy: 3, bearing: nil, speed: nil,
            time: UTCTime(milliseconds: 1000))
        guard choice & 8 == 0 else { return }
        for trackable in trackables.prefix(2) { attach(trackable, 0) }
        connect(0)
        for trackable in trackables.prefix(2) {
            receive(#"{"action":11,"channel":"tracking:\#(trackable)","flags":720897}"#)
        }
    }

    mutating func act(_ choice: UInt8, _ input: inout Input) {
        let more = choice >> 4
        let trackable = trackables[Int(more) % trackables.count]
        switch choice & 15 {
        case 0: receive(String(decoding: input.line(), as: UTF8.self))
        case 1: receiveFrame(input.byte(), trackable, &input)
        case 2: receivePresence(input.byte(), trackable, &input)
        case 3: connect(more)
        case 4: answer(more, &input)
        case 5: publish(trackable, isRaw: more > 7)
        case 6: attach(trackable, more)
        case 7: take { $0.leave(trackable, at: $1) }
        case 8: lose(byServer: more & 1 != 0, jitter: Double(more) / 16)
        case 9: now = now + .milliseconds(Int64(input.number(bytes: 2)))
        case 10: reachDeadline(jitter: Double(more) / 16)
        case 11, 12: renew(more)
        case 13: take { more & 1 == 0 ? $0.retry(at: $1) : $0.networkReturned(at: $1) }
        case 14: if more == 0 { take { $0.close(at: $1) } } else { answerRequest(more, &input) }
        default: take { $0.deadlineReached(jitter: 0.5, at: $1) }
        }
    }

    private mutating func attach(_ trackable: String, _ more: UInt8) {
        let resolution = Resolution(priority: .high, intervalMs: Int64(more), displacement: 1)
        take { $0.attach(trackable, PublisherPresence(resolution: resolution), at: $1) ?? [] }
    }

    private mutating func publish(_ trackable: String, isRaw: Bool) {
        number += 1
        let name: ChannelMessage.Name = isRaw ? .raw : .enhanced
        guard
            let message = ChannelMessage(id: "q-\(number)", name: name, feature: feature, skipped: [], bytesMax: 65_536)
        else { fatalError("a message that viewers would not read") }
        do throws(ChannelClient.Refusal) {
            let effects = try client.publish(message, of: trackable, at: now)
            unsettled.insert(message.id)
            take(effects)
        } catch {
            // Its location rides along with a later one.
        }
    }

    private mutating func connect(_ more: UInt8) {
        receive(
            #"{"action":4,"connectionId":"c\#(more & 3)","connectionDetails":{"connectionKey":"\#(secret)","#
                + #""maxIdleInterval":\#(more & 4 == 0 ? 0 : 15000),"connectionStateTtl":\#(more & 8 == 0 ? 120000 : 1)}}"#
        )
    }

    private mutating func receiveFrame(_ choice: UInt8, _ trackable: String, _ input: inout Input) {
        let actions: [Int] = [0, 6, 8, 9, 9, 11, 11, 13, 13, 15, 16, 17, 1, 2, 14, 12]
        let codes = [40_142, 40_160, 50_000, 42_911, 40_000, 91_001, 40_009, 0]
        let code = codes[Int(choice >> 4) & 7]
        let error = #""error":{"code":\#(code),"statusCode":\#(code / 100)}"#
        let channel = choice >> 7 == 0 ? #""channel":"tracking:\#(trackable)","# : ""
        let flags = [0, 1, 4, 5, 720_896, 720_897, 720_900, 196_608][Int(input.byte()) & 7]
        receive(
            #"{"action":\#(actions[Int(choice & 15)]),\#(channel)"flags":\#(flags),"channelSerial":"s:",\#(error)}"#)
    }

    private mutating func receivePresence(_ choice: UInt8, _ trackable: String, _ input: inout Input) {
        let data = [
            #""data":"{\"type\":\"SUBSCRIBER\"}","#, #""data":{"type":"PUBLISHER"},"#, "", #""data":7,"#,
            #""data":"{\"type\":\"SUBSCRIBER\",\"resolution\":{\"accuracy\":\"LOW\",\"desiredInterval\":9,\"minimumDisplacement\":1}}","#,
        ][Int(choice >> 4) % 5]
        let action = Int(choice & 15) % 5
        let isPage = choice & 8 != 0
        let serial = ["", "1:a", "1:", "2:a"][Int(input.byte()) & 3]
        let id = input.byte()
        receive(
            #"{"action":\#(isPage ? 16 : 14),"channel":"tracking:\#(trackable)","channelSerial":"\#(serial)","presence":["#
                + #"{"action":\#(action),"clientId":"v\#(id & 3)",\#(data)"connectionId":"x","id":"x:\#(id >> 4):0"}]}"#
        )
    }

    private mutating func answer(_ more: UInt8, _ input: inout Input) {
        let back = Int64(input.byte() & 7)
        let error =
            more & 1 == 0
            ? "" : #","error":{"code":\#(more & 2 == 0 ? 40160 : 50000),"statusCode":\#(more & 2 == 0 ? 401 : 500)}"#
        receive(
            #"{"action":\#(more & 1 == 0 ? 1 : 2),"msgSerial":\#(nextSerial - back),"count":\#(more >> 2)\#(error)}"#)
    }

    private mutating func answerRequest(_ more: UInt8, _ input: inout Input) {
        guard !asked.isEmpty else { return }
        let request = asked.remove(at: Int(more >> 2) % asked.count)
        let status = [nil, 200, 401, 503][Int(more & 3)]
        let body =
            switch input.byte() & 7 {
            case 0: input.line()
            case 1: Array(#"[{"action":1,"clientId":"v","connectionId":"x","data":"{\"type\":\"SUBSCRIBER\"}"}]"#.utf8)
            case 2: Array(#"{"error":{"code":40142,"statusCode":401}}"#.utf8)
            case 3: Array(#"{"error":{"code":40160,"statusCode":401}}"#.utf8)
            default: Array((request.body == nil ? "[]" : "{}").utf8)
            }
        take { $0.answered(request.number, status: status, body: body, jitter: 0.5, at: $1) }
    }

    private mutating func receive(_ text: String) { if isOpen { take { $0.received(text, jitter: 0.5, at: $1) } } }

    private mutating func lose(byServer: Bool, jitter: Double) {
        guard isOpen else { return }
        isOpen = false
        take { $0.transportLost(byServer: byServer, jitter: jitter, at: $1) }
    }

    private mutating func renew(_ more: UInt8) {
        guard isRenewing || more > 13 else { return }
        isRenewing = false
        if more & 1 == 0 {
            let credential: ChannelCredential =
                more & 2 == 0 ? .token(ChannelSecret(secret)) : .key(ChannelSecret(secret))
            take { $0.credentialRenewed(credential, at: $1) }
        } else {
            take { $0.credentialUnavailable("none", isTransient: more & 2 == 0, jitter: 0, at: $1) }
        }
    }

    private mutating func reachDeadline(jitter: Double) {
        guard let deadline = client.nextDeadline else { return }
        now = max(now, deadline)
        take { $0.deadlineReached(jitter: jitter, at: $1) }
        if let next = client.nextDeadline { demand(next > now, "the deadline comes again") }
    }

    private mutating func take(_ call: (inout ChannelClient, EventTime) -> [ChannelClient.Effect]) {
        take(call(&client, now))
    }

    private mutating func take(_ effects: [ChannelClient.Effect]) {
        for effect in effects {
            demand(!"\(effect)".contains(secret), "a secret is shown")
            switch effect {
            case .openTransport:
                demand(!isOpen, "a second transport")
                isOpen = true
            case .closeTransport:
                demand(isOpen, "nothing to close")
                isOpen = false
            case .send(let frame):
                demand(isOpen, "a frame without a transport")
                take(frame)
            case .renewCredential: isRenewing = true
            case .settled(_, _, let id, _): demand(unsettled.remove(id) != nil, "settled twice, or never published")
            case .subscriberChanged(let change):
                let isThere = viewers[change.trackable]?.contains(change.member) == true
                switch change.action {
                case .add: demand(!isThere, "a viewer comes twice")
                case .update: demand(isThere, "a viewer asks who is not there")
                case .remove: demand(isThere, "a viewer goes who is not there")
                }
                if case .remove = change.action {
                    viewers[change.trackable]?.remove(change.member)
                } else {
                    viewers[change.trackable, default: []].insert(change.member)
                }
            case .request(let request): asked.append(request)
            case .connectionChanged, .requestsArrive, .channelChanged, .trackableChanged, .warned: break
            }
        }
    }

    private mutating func take(_ frame: ClientFrame) {
        demand(JSONReader.read(Array(frame.text.utf8)) != nil, "a frame that is no JSON")
        let serial: Int64
        switch frame {
        case .presence(_, let number, _, _, _), .message(_, let number, _): serial = number
        case .attach, .detach, .close, .authorize: return
        }
        // Another connection counts from 0; what was sent before goes out again.
        demand(serial <= nextSerial, "a number is left out")
        guard serial == nextSerial || serial == 0 else { return }
        nextSerial = serial + 1
    }

    func check() {
        for (_, there) in viewers { demand(there.count <= PresenceMap.membersMax, "a crowd") }
        demand(unsettled.count <= 2 * trackables.count, "more than one message of a name is in flight")
        if client.state == .connected || client.state == .closing { demand(isOpen, "connected without a transport") }
        if client.state == .failed || client.state == .closed { demand(!isOpen, "a transport that nobody needs") }
    }

    mutating func end() {
        take { $0.close(at: $1) }
        demand(unsettled.isEmpty, "a message that is never settled")
        demand(viewers.values.allSatisfy(\.isEmpty), "viewers that never go")
        for _ in 0..<3 where client.nextDeadline != nil { reachDeadline(jitter: 0) }
        demand(!isOpen && client.nextDeadline == nil, "it never ends")
    }
}
