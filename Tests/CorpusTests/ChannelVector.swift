import Channel
import Profiles
import Testing
import WaypostCore
import WaypostTracking

/// What the live channel must make of a vector.
struct ChannelVector {
    private let vector: Vector
    private var input: JSON { vector.input }
    private var expected: JSON { vector.expected }

    init(_ vector: Vector) { self.vector = vector }

    /// - Throws: for a kind that nothing tests.
    func holds() throws {
        switch vector.kind {
        case "publish.retry": try retry()
        case "publish.pending": try pending()
        case "trackable.state": try #expect(.text(trackableState()) == expected)
        case "state.map.connection": try #expect(.text(link(ConnectionState.init, \.link)) == expected)
        case "state.map.channel": try #expect(.text(link(ChannelState.init, \.link)) == expected)
        case "error.class": try errorClass()
        case "presence.action": try #expect(.text(presenceAction()) == expected)
        case "presence.leave": try presenceLeave()
        case "presence.memberKey": try #expect(.text(memberKey()) == expected)
        case "presence.parse": try presenceParse()
        case "schema.presence": #expect(.flag(ChannelSchema.isPresence(input.value)) == expected)
        case "schema.location": #expect(.flag(ChannelSchema.isFeature(input.value)) == expected)
        case "schema.enhanced": #expect(.flag(ChannelSchema.isEnhanced(input.value)) == expected)
        case "wire.location", "wire.location.android": try location()
        case "wire.enhanced": try message(.enhanced)
        case "wire.raw": try message(.raw)
        case "wire.forbidden": try forbidden()
        case "wire.attach": try attach()
        default: throw Malformed("unknown kind \(vector.kind)")
        }
    }

    // What becomes of a message.

    private func row(_ seq: Int64, ms: Int64, published: Bool = true) -> QueuedLocation {
        QueuedLocation(
            seq: seq, bootID: nil, receivedMs: nil,
            location: Location(
                trackable: "t", time: UTCTime(milliseconds: ms), at: .zero,
                coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), horizontalAccuracy: 4, moving: true,
                published: published))
    }

    private func retry() throws {
        let outcomes = try Fields.read(input) { try $0.array("outcomes") }
        var feed = LocationFeed(queue: "q", name: .enhanced, cursor: 0)
        let rows = [row(1, ms: 1000)]
        var message = feed.next(rows, bytesMax: 65_536, at: .zero)
        var attempts = 0
        for outcome in outcomes {
            #expect(message?.id == "q-1")
            attempts += 1
            switch outcome {
            case .text("ok"): feed.acknowledged(at: .zero)
            case .text("fail500"): message = feed.refused(ChannelError(statusCode: 500), jitter: 0, at: .zero)
            case .text("fail400"): message = feed.refused(ChannelError(statusCode: 400), jitter: 0, at: .zero)
            default: throw Malformed("unknown outcome \(outcome)")
            }
        }
        #expect(feed.inFlight == nil)
        let next = feed.next(
            rows + [row(2, ms: 2000)], bytesMax: 65_536, at: EventTime(nanoseconds: 3_600_000_000_000))
        try Fields.read(expected) { (fields) throws in
            #expect(try fields.number("attempts") == Double(attempts))
            #expect(try fields.flag("lastSentUpdated") == (feed.cursor == 1))
            #expect(try fields.flag("movedToSkipped") == (next?.skippedCount == 1))
        }
    }

    private func pending() throws {
        var sampler = LocationSampler(settings: .init())
        var feed = LocationFeed(queue: "q", name: .enhanced, cursor: 0)
        var rows: [QueuedLocation] = []
        var sent: [JSON] = []
        let resolution = try Fields.read(input) { fields in
            let resolution = try fields.resolution("resolution")
            for event in try fields.array("events") {
                try Fields.read(event) { event in
                    guard let ms = try event.optionalNumber("fix") else {
                        _ = try event.number("ack")
                        return feed.acknowledged(at: .zero)
                    }
                    let time = UTCTime(milliseconds: Int64(ms))
                    let coordinate = Coordinate(latitudeE7: 0, longitudeE7: 0)
                    let isSelected =
                        sampler.sample(.init(time: time, coordinate: coordinate), resolution: resolution) != nil
                    rows.append(row(Int64(rows.count + 1), ms: Int64(ms), published: isSelected))
                    if feed.next(rows, bytesMax: 65_536, at: .zero) != nil { sent.append(.number(ms)) }
                }
            }
            return resolution
        }
        #expect(resolution.intervalMs > 0 && feed.next(rows, bytesMax: 65_536, at: .zero) == nil)
        try Fields.read(expected) { (fields) throws in
            #expect(try fields.array("sentTimes") == sent)
            let waiting = rows.filter { $0.seq > feed.cursor }
            #expect(
                try fields.array("skippedTimes") == waiting.map { .number(Double($0.location.time.milliseconds)) })
        }
    }

    // States and errors.

    private func trackableState() throws -> String {
        try Fields.read(input) { fields in
            func link(_ key: String) throws -> ChannelLink {
                let word = try fields.text(key)
                guard let link = ChannelLink(rawValue: word) else { throw Malformed("unknown link \(word)") }
                return link
            }
            let (hasSent, isEntered) = (try fields.flag("sentAtLeastOne"), try fields.flag("presenceEntered"))
            return try TrackableState(
                connection: link("connection"), channel: link("channel"), isShown: hasSent && isEntered,
                isSubscribed: fields.flag("presenceSubscribed")
            ).rawValue
        }
    }

    private func link<State>(_ state: (String) -> State?, _ link: (State) -> ChannelLink) throws -> String {
        guard case .text(let word) = input, let state = state(word) else { throw Malformed("unknown state \(input)") }
        return link(state).rawValue
    }

    private func errorClass() throws {
        let error = ChannelError(statusCode: Int(try Fields.read(input) { try $0.number("statusCode") }))
        try Fields.read(expected) { (fields) throws in
            #expect(try fields.flag("fatal") == error.isFatal)
            #expect(try fields.flag("retriable") == error.isRetriable)
        }
    }

    // Presence.

    /// What the resolution board is told of a member that was there before where it leaves.
    private func presenceAction() throws -> String {
        try Fields.read(input) { fields in
            let word = try fields.text("action")
            guard let action = PresenceAction.allCases.first(where: { "\($0)".uppercased() == word }) else {
                throw Malformed("unknown action \(word)")
            }
            let data = try fields.value("data").value
            let isLeaving = action == .leave || action == .absent
            let before = isLeaving ? [Self.item(.present, data, serial: 0)] : []
            return Self.told(before, then: Self.item(action, data, serial: 1))
        }
    }

    private static func item(_ action: PresenceAction, _ data: JSONValue?, serial: Int) -> JSONValue {
        .object(
            [
                .init("action", .int(action.rawValue)), .init("clientId", .string("viewer")),
                .init("connectionId", .string("c2")), .init("id", .string("c2:\(serial):0")),
            ] + (data.map { [.init("data", $0)] } ?? []))
    }

    private static func frame(_ members: [JSONValue.Member]) -> String {
        String(decoding: JSONValue.object(members + [.init("channel", .string("tracking:t"))]).bytes, as: UTF8.self)
    }

    /// - Returns: add, remove or ignore.
    private static func told(_ before: [JSONValue], then item: JSONValue) -> String {
        var client = ChannelClient(.init(host: "h", clientID: "van"), credential: .token(ChannelSecret("x")))
        _ = client.attach("t", PublisherPresence(resolution: nil), at: .zero)
        var effects = client.received(#"{"action":4,"connectionId":"c"}"#, jitter: 0, at: .zero)
        effects += client.received(frame([.init("action", .int(11))]), jitter: 0, at: .zero)
        for item in before {
            _ = client.received(
                frame([.init("action", .int(14)), .init("presence", .array([item]))]), jitter: 0, at: .zero)
        }
        effects = client.received(
            frame([.init("action", .int(14)), .init("presence", .array([item]))]), jitter: 0, at: .zero)
        for case .subscriberChanged(let change) in effects {
            switch change.action {
            case .add: return "add"
            case .update: return "updateIfKnown"
            case .remove: return "remove"
            }
        }
        return "ignore"
    }

    private func presenceLeave() throws {
        let wire = try Fields.read(input) { try $0.value("wire") }
        guard let members = wire.value.members else { throw Malformed("no wire message") }
        // The frame around it names the connection, as that of the service does.
        let leave = JSONValue.object(members + [.init("connectionId", .string("c2")), .init("id", .string("c2:9:0"))])
        let subscriber = JSONValue.object([.init("type", .string("SUBSCRIBER"))])
        var enter = Self.item(.enter, subscriber, serial: 0).members ?? []
        enter.removeAll { $0.name == "clientId" }
        enter.append(.init("clientId", wire.value["clientId"] ?? .null))
        #expect(.text(Self.told([.object(enter)], then: leave)) == expected)
    }

    private func memberKey() throws -> String {
        try Fields.read(input) { fields in
            try PresenceItem.memberKey(connectionID: fields.text("connectionId"), clientID: fields.text("clientId"))
        }
    }

    private func presenceParse() throws {
        let data = try Fields.read(input) { fields -> PresenceData? in
            let encoding: String? = if case .text(let text) = fields.optional("encoding") { text } else { nil }
            return PresenceData(try fields.value("data").value, encoding: encoding)
        }
        guard expected != .null else {
            #expect(data == nil)
            return
        }
        try Fields.read(expected) { (fields) throws in
            let (type, resolution) = (try fields.text("type"), try fields.optionalResolution("resolution"))
            let isSubscriber = type == "SUBSCRIBER"
            #expect(data == (isSubscriber ? .subscriber(request: resolution, isMalformed: false) : .publisher))
        }
    }

    // The wire.

    private func location() throws {
        let feature = try Fields.read(input) { fields in
            ChannelFeature(
                Location(
                    trackable: "t", time: UTCTime(milliseconds: Int64(try fields.number("timeMs"))), at: .zero,
                    coordinate: try fields.coordinate(), altitudeMSL: try fields.optionalNumber("altitude"),
                    horizontalAccuracy: try fields.optionalNumber("accuracyM"),
                    speed: try fields.optionalNumber("speedMps"), course: try fields.optionalNumber("bearingDeg"),
                    moving: true))
        }
        guard expected != .null else {
            #expect(feature == nil)
            return
        }
        let message = try #require(feature.flatMap { Self.message(.enhanced, $0) })
        #expect(try Self.read(message.data)["location"]?.comparable == expected.value.comparable)
    }

    private static func message(_ name: ChannelMessage.Name, _ feature: ChannelFeature) -> ChannelMessage? {
        ChannelMessage(id: "q-1", name: name, feature: feature, skipped: [], bytesMax: 65_536)
    }

    private static func read(_ text: String) throws -> JSONValue { try #require(JSONReader.read(Array(text.utf8))) }

    private static func feature(_ value: JSONValue) throws -> ChannelFeature {
        let properties = try #require(value["properties"])
        let items = try #require(value.value(at: ["geometry", "coordinates"])?.items)
        let coordinates = items.compactMap(\.number)
        func number(_ name: String) throws -> Double { try #require(properties[name]?.number) }
        let place = try #require(Coordinate(latitude: coordinates[1], longitude: coordinates[0]))
        return ChannelFeature(
            coordinate: place, altitude: coordinates[2], accuracy: try number("accuracyHorizontal"),
            bearing: try number("bearing"),
            speed: try number("speed"), time: UTCTime(milliseconds: Int64(try number("time") * 1000)))
    }

    private func message(_ name: ChannelMessage.Name) throws {
        let feature = try Fields.read(input) { fields in
            #expect(try fields.array("skipped").isEmpty)
            return try Self.feature(fields.value("location").value)
        }
        let message = try #require(Self.message(name, feature))
        let frame = ClientFrame.message(channel: "tracking:<trackableId>", serial: 0, message)
        let sent = try Self.read(frame.text)
        let item = try #require(sent["messages"]?.items?.first)
        try Fields.read(expected) { (fields) throws in
            #expect(try sent["channel"]?.string == fields.text("channel"))
            #expect(try item["name"]?.string == fields.text("name"))
            #expect(try fields.flag("dataIsJSONString") == (item["data"]?.string != nil))
            #expect(try fields.value("encoding").value == item["encoding"] ?? .null)
            let text = try #require(item["data"]?.string)
            let data = try Self.read(text)
            #expect(try data.comparable == fields.value("data").value.comparable)
        }
    }

    /// None of what the reference's viewers break off at can be said.
    private func forbidden() throws {
        #expect(expected == .text("never emitted"))
        let place = Coordinate(latitudeE7: 1, longitudeE7: 2)
        let time = UTCTime(milliseconds: 0)
        for accuracy in [-1, 0, Double.nan, -Double.infinity, nil] as [Double?] {
            let location = Location(
                trackable: "t", time: time, at: .zero, coordinate: place, horizontalAccuracy: accuracy, moving: true)
            #expect(ChannelFeature(location) == nil)
        }
        let feature = ChannelFeature(
            coordinate: place, altitude: nil, accuracy: 3, bearing: nil, speed: nil, time: time)
        for name in ChannelMessage.Name.allCases {
            let message = try #require(Self.message(name, feature))
            let frame = try Self.read(ClientFrame.message(channel: "c", serial: 0, message).text)
            let items = try #require(frame["messages"]?.items)
            #expect(items.count == 1 && items[0]["encoding"] == nil)
            let data = try #require(items[0]["data"]?.string)
            #expect(try Self.read(data).members != nil)
        }
    }

    private func attach() throws {
        #expect(
            try Fields.read(input) { try $0.array("modes") }
                == [.text("PRESENCE"), .text("PUBLISH"), .text("PRESENCE_SUBSCRIBE")])
        let flags = try Fields.read(expected) { try $0.number("flags") }
        #expect(try Self.read(ClientFrame.attach(channel: "c", serial: nil).text)["flags"]?.number == flags)
    }
}

extension JSON {
    fileprivate var value: JSONValue {
        switch self {
        case .null: .null
        case .flag(let flag): .bool(flag)
        case .number(let number): Int64(exactly: number).map(JSONValue.int) ?? .double(number)
        case .text(let text): .string(text)
        case .array(let items): .array(items.map(\.value))
        case .object(let members):
            .object(members.sorted { $0.key < $1.key }.map { .init($0.key, $0.value.value) })
        }
    }
}

extension JSONValue {
    /// With the order of members and the form of numbers left aside.
    fileprivate var comparable: JSON {
        switch self {
        case .null: .null
        case .bool(let flag): .flag(flag)
        case .int, .double, .decimal: .number(number ?? .nan)
        case .string(let text): .text(text)
        case .array(let items): .array(items.map(\.comparable))
        case .object(let members):
            .object(Dictionary(members.map { ($0.name, $0.value.comparable) }) { first, _ in first })
        }
    }
}
