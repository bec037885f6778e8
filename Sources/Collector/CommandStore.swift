import WaypostCore

/// Commands for devices, and what devices have answered, by device: an example for the author of a server.
///
/// It is in memory alone, and holds texts as they came. docs/remote.md is the protocol.
struct CommandStore {
    typealias Answer = SettingsStore.Answer

    /// Bytes of a command: devices read no longer one.
    static let bytesMax = 4096
    /// Commands of a device that wait for a batch.
    static let waitingMax = 16
    /// Commands of a device that wait no longer, and answers, each.
    static let rememberedMax = 32
    private static let devicesMax = 1000
    private static let idMax = 64

    struct Command {
        enum State: String {
            case waiting
            /// With the answer to a batch. Whether it arrived is known from what the device answers.
            case sent
            /// No batch came in time.
            case expired
        }

        var id: String
        var verb: String
        /// When its author sent it, and until when a device may begin with it; UTC in milliseconds.
        var came: Int64
        var expires: Int64
        var state = State.waiting
        /// As its author has sent both: the store need not have the key.
        var text: [UInt8]
        var signature: String?
    }

    private struct Device {
        /// The newest last.
        var commands: [Command] = []
        /// Ids and JSON, the newest last.
        var answers: [(id: String, text: [UInt8])] = []

        mutating func expire(at now: Int64) {
            for index in commands.indices where commands[index].state == .waiting && commands[index].expires < now {
                commands[index].state = .expired
            }
        }

        mutating func forget() {
            let past = commands.indices.filter { commands[$0].state != .waiting }
            for index in past.dropLast(rememberedMax).reversed() { commands.remove(at: index) }
            answers.removeFirst(max(0, answers.count - rememberedMax))
        }
    }

    private var devices: [String: Device] = [:]

    /// A command that its author sends a second time is sent to the device a second time, which carries it out once.
    /// - Parameter now: UTC in milliseconds.
    mutating func send(_ text: [UInt8], to device: String, signature: String? = nil, at now: Int64) -> Answer {
        guard let command = Self.command(text, for: device, signature: signature, at: now) else {
            return .refused(400, "not a command of this device with id, do and expires, in one line of ASCII")
        }
        guard command.expires >= now else { return .refused(400, "it has expired") }
        guard hasRoom(for: device) else { return .refused(507, "too many devices") }
        var entry = devices[device] ?? Device()
        entry.expire(at: now)
        let waiting = entry.commands.filter { $0.state == .waiting }
        guard !waiting.contains(where: { $0.id == command.id }) else { return .refused(409, "it waits already") }
        guard waiting.count < Self.waitingMax else { return .refused(429, "too many commands wait") }
        entry.commands.removeAll { $0.id == command.id }
        entry.answers.removeAll { $0.id == command.id }
        entry.commands.append(command)
        entry.forget()
        devices[device] = entry
        return Answer(status: 202)
    }

    /// The headers of an answer to a batch that have the next command in them. It is handed out once.
    mutating func next(for device: String, at now: Int64) -> [String: String] {
        guard var entry = devices[device] else { return [:] }
        entry.expire(at: now)
        defer {
            entry.forget()
            devices[device] = entry
        }
        guard let index = entry.commands.firstIndex(where: { $0.state == .waiting }) else { return [:] }
        entry.commands[index].state = .sent
        let command = entry.commands[index]
        var headers = ["Waypost-Command": String(decoding: command.text, as: UTF8.self)]
        headers["Waypost-Signature"] = command.signature
        return headers
    }

    /// A device says what became of a command. The last answer to each counts.
    mutating func answered(_ text: [UInt8], by device: String) -> Answer {
        guard text.count <= SettingsStore.bytesMax, let id = JSONReader.read(text)?["id"]?.string, Self.isUsable(id)
        else { return .refused(400, "not an answer to a command") }
        guard hasRoom(for: device) else { return .refused(507, "too many devices") }
        var entry = devices[device] ?? Device()
        entry.answers.removeAll { $0.id == id }
        entry.answers.append((id, text))
        entry.forget()
        devices[device] = entry
        return Answer(status: 204)
    }

    /// `{"waiting":[…],"sent":[…],"expired":[…],"answers":[…]}`, each as it came, the newest last.
    mutating func list(of device: String, at now: Int64) -> Answer {
        devices[device]?.expire(at: now)
        guard let entry = devices[device] else { return .refused(404, "no commands for this device") }
        var json = JSONWriter()
        json.beginObject()
        for state in [Command.State.waiting, .sent, .expired] {
            json.key(state.rawValue)
            Self.write(entry.commands.filter { $0.state == state }.map(\.text), to: &json)
        }
        json.key("answers")
        Self.write(entry.answers.map(\.text), to: &json)
        json.endObject()
        return Answer(status: 200, headers: ["Content-Type": "application/json"], body: json.bytes)
    }

    /// The newest last, each with what the device answered.
    func commands(of device: String) -> [(command: Command, answer: JSONValue?)] {
        guard let entry = devices[device] else { return [] }
        return entry.commands.map { command in
            (command, entry.answers.last { $0.id == command.id }.flatMap { JSONReader.read($0.text) })
        }
    }

    private func hasRoom(for device: String) -> Bool {
        devices[device] != nil || devices.count < Self.devicesMax
    }

    /// It becomes a header as it is: anything that may not stand there would also spoil its signature.
    private static func command(
        _ text: [UInt8], for device: String, signature: String?, at now: Int64
    ) -> Command? {
        guard text.count <= bytesMax, text.first == UInt8(ascii: "{"), text.last == UInt8(ascii: "}"),
            text.allSatisfy({ (0x20...0x7E).contains($0) }), let value = JSONReader.read(text),
            let id = value["id"]?.string, isUsable(id), let verb = value["do"]?.string,
            let expires = value["expires"]?.string.flatMap(UTCTime.milliseconds(iso8601:)),
            value["device"] == nil || value["device"]?.string == device
        else { return nil }
        return Command(id: id, verb: verb, came: now, expires: expires, text: text, signature: signature)
    }

    private static func isUsable(_ id: String) -> Bool {
        (1...idMax).contains(id.utf8.count) && id.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    }

    private static func write(_ texts: [[UInt8]], to json: inout JSONWriter) {
        json.beginArray()
        for text in texts { text.withUnsafeBufferPointer { json.value(rendered: $0) } }
        json.endArray()
    }
}
