import Foundation
import TestSupport
import Testing

/// A dbus-daemon with the rules of the system's bus for signals and answers.
///
/// sd-bus finds it by the environment: at the same place in each test, so that this is set once.
final class TestBus {
    static let path: String = {
        let path = "/tmp/waypost-test-bus.\(getpid())"
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(path)", 1)
        return path
    }()

    private let folder: TemporaryDirectory
    private let process = Process()

    init() throws {
        folder = try TemporaryDirectory()
        try folder.write(
            "bus.conf",
            """
            <busconfig><type>system</type><listen>unix:path=\(Self.path)</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
            <allow send_type="signal"/><allow send_requested_reply="true" send_type="method_return"/>
            <allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/>
            <allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
            </policy></busconfig>
            """)
        process.executableURL = URL(fileURLWithPath: "/usr/bin/dbus-daemon")
        process.arguments = ["--config-file=\(folder.path)/bus.conf", "--nofork", "--nopidfile"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        try #require(eventually(within: 10) { access(Self.path, F_OK) == 0 ? true : nil } == true)
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        unlink(Self.path)
    }
}

/// A value of D-Bus with its type, as far as the services of the tests use them.
indirect enum BusValue {
    case text(String)
    case path(String)
    case flag(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case uint32(UInt32)
    case bytes([UInt8])
    case texts([String])
    case variant(BusValue)
    /// - Parameter types: of an entry, `sv`.
    case dictionary(_ types: String, [(BusValue, BusValue)])

    var type: String {
        switch self {
        case .text: "s"
        case .path: "o"
        case .flag: "b"
        case .int16: "n"
        case .uint16: "q"
        case .uint32: "u"
        case .bytes: "ay"
        case .texts: "as"
        case .variant: "v"
        case .dictionary(let types, _): "a{\(types)}"
        }
    }

    static func properties(_ entries: [(String, BusValue)]) -> BusValue {
        .dictionary("sv", entries.map { (.text($0.0), .variant($0.1)) })
    }

    func write(to bytes: inout [UInt8]) {
        switch self {
        case .text(let text), .path(let text):
            bytes.add(UInt32(text.utf8.count))
            bytes += Array(text.utf8) + [0]
        case .flag(let flag): bytes.add(UInt32(flag ? 1 : 0))
        case .int16(let value): bytes.add(UInt16(bitPattern: value))
        case .uint16(let value): bytes.add(value)
        case .uint32(let value): bytes.add(value)
        case .bytes(let content): bytes.addArray(alignedTo: 1) { $0 += content }
        case .texts(let texts):
            bytes.addArray(alignedTo: 4) { for text in texts { BusValue.text(text).write(to: &$0) } }
        case .variant(let value):
            bytes += [UInt8(value.type.utf8.count)] + Array(value.type.utf8) + [0]
            value.write(to: &bytes)
        case .dictionary(_, let entries):
            bytes.addArray(alignedTo: 8) {
                for (key, value) in entries {
                    $0.pad(to: 8)
                    key.write(to: &$0)
                    value.write(to: &$0)
                }
            }
        }
    }
}

/// A client of the test bus: a service, or somebody who pretends to be one.
final class BusPeer {
    enum Kind: UInt8 { case call = 1, answer, error, signal }

    struct Message {
        var kind: Kind
        var path: String?
        var interface: String?
        var member: String?
        /// Of the call that it answers.
        var answers: UInt32?
        /// nil for a signal to everybody.
        var destination: String?
        var body: [BusValue] = []
        fileprivate(set) var sender = ""
        fileprivate(set) var serial: UInt32 = 0
        /// A text at the beginning of the body.
        fileprivate(set) var text: String?
    }

    private let socket: Int32
    private var serial: UInt32 = 0
    private var received: [UInt8] = []
    private(set) var name = ""
    /// Calls that came, with who sent them.
    private(set) var calls: [Message] = []
    /// What a service answers; nil = nothing at all.
    var answer: (Message) -> [BusValue]? = { _ in nil }

    /// - Parameter owned: a name that it owns.
    init(owning owned: String? = nil) throws {
        socket = Foundation.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let descriptor = socket
        try #require(withUnixAddress(Array(TestBus.path.utf8)) { connect(descriptor, $0, $1) } == 0)
        let user = String(getuid()).utf8.map { "3\($0 - 0x30)" }.joined()
        try send(Array("\0AUTH EXTERNAL \(user)\r\n".utf8))
        try #require(readable())
        var line = [UInt8](repeating: 0, count: 256)
        try #require(recv(socket, &line, line.count, 0) > 2 && line.starts(with: "OK".utf8))
        try send(Array("BEGIN\r\n".utf8))
        name = try ask("Hello").text ?? ""
        if let owned { _ = try ask("RequestName", .text(owned), .uint32(4)) }
    }

    deinit { close(socket) }

    /// Of the bus, whose answer shows that all before it was passed on.
    @discardableResult
    func ask(_ method: String, _ arguments: BusValue...) throws -> Message {
        let bus = "org.freedesktop.DBus"
        let call = try send(
            Message(
                kind: .call, path: "/org/freedesktop/DBus", interface: bus, member: method, destination: bus,
                body: arguments))
        for _ in 0..<100 {
            try #require(readable())
            if let answer = try serve().first(where: { $0.answers == call }) { return answer }
        }
        throw RunningProgram.Unfinished(text: "no answer to \(method)")
    }

    private func readable() -> Bool {
        var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&descriptor, 1, 10_000) == 1
    }

    func signal(
        _ path: String, _ interface: String, _ member: String, to destination: String? = nil, _ body: BusValue...
    ) throws {
        try send(
            Message(
                kind: .signal, path: path, interface: interface, member: member, destination: destination, body: body))
    }

    /// Answers the calls that have come.
    /// - Returns: everything else.
    @discardableResult
    func serve() throws -> [Message] {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(socket, &chunk, chunk.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { break }
            received += chunk[..<count]
        }
        var others: [Message] = []
        while let message = take() {
            guard message.kind == .call else {
                others.append(message)
                continue
            }
            calls.append(message)
            guard let body = answer(message) else { continue }
            try send(Message(kind: .answer, answers: message.serial, destination: message.sender, body: body))
        }
        return others
    }

    /// - Returns: its number.
    @discardableResult
    func send(_ message: Message) throws -> UInt32 {
        serial += 1
        var body: [UInt8] = []
        for value in message.body { value.write(to: &body) }
        var bytes: [UInt8] = [UInt8(ascii: "l"), message.kind.rawValue, 0, 1]
        bytes.add(UInt32(body.count))
        bytes.add(serial)
        let signature = message.body.map(\.type).joined()
        bytes.addArray(alignedTo: 8) {
            if let path = message.path { $0.addField(1, .path(path)) }
            if let interface = message.interface { $0.addField(2, .text(interface)) }
            if let member = message.member { $0.addField(3, .text(member)) }
            if let call = message.answers { $0.addField(5, .uint32(call)) }
            if let destination = message.destination { $0.addField(6, .text(destination)) }
            if !signature.isEmpty {
                $0.pad(to: 8)
                $0 += [8, 1] + Array("g".utf8) + [0, UInt8(signature.utf8.count)] + Array(signature.utf8) + [0]
            }
        }
        bytes.pad(to: 8)
        try send(bytes + body)
        return serial
    }

    private func send(_ bytes: [UInt8]) throws {
        try #require(Foundation.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// The next message; nil while it is not complete.
    private func take() -> Message? {
        guard received.count >= 16 else { return nil }
        let (bodyCount, fieldsCount) = (received.number(at: 4), received.number(at: 12))
        let bodyStart = (16 + fieldsCount + 7) / 8 * 8
        guard received.count >= bodyStart + bodyCount, let kind = Kind(rawValue: received[1]) else { return nil }
        var message = Message(kind: kind)
        message.serial = UInt32(received.number(at: 8))
        var place = 16
        while place < 16 + fieldsCount {
            place = (place + 7) / 8 * 8
            let (code, type) = (received[place], received[place + 2])
            // A code, and a variant of one letter.
            place += 4
            if type == UInt8(ascii: "u") {
                if code == 5 { message.answers = UInt32(received.number(at: place)) }
                place += 4
            } else if type == UInt8(ascii: "g") {
                place += Int(received[place]) + 2
            } else {
                let text = received.text(at: place)
                switch code {
                case 1: message.path = text
                case 2: message.interface = text
                case 3: message.member = text
                case 6: message.destination = text
                case 7: message.sender = text
                default: break
                }
                place += text.utf8.count + 5
            }
        }
        if bodyCount > 4, received.number(at: bodyStart) <= bodyCount - 5 {
            message.text = received.text(at: bodyStart)
        }
        received.removeFirst(bodyStart + bodyCount)
        return message
    }
}

extension [UInt8] {
    fileprivate mutating func pad(to boundary: Int) { while count % boundary != 0 { append(0) } }

    fileprivate mutating func add<Value: FixedWidthInteger>(_ value: Value) {
        pad(to: Value.bitWidth / 8)
        for shift in stride(from: 0, to: Value.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    /// - Parameter boundary: of its elements.
    fileprivate mutating func addArray(alignedTo boundary: Int, _ write: (inout [UInt8]) -> Void) {
        add(UInt32(0))
        let place = count
        pad(to: boundary)
        let start = count
        write(&self)
        let length = UInt32(count - start)
        for byte in 0..<4 { self[place - 4 + byte] = UInt8(truncatingIfNeeded: length >> (byte * 8)) }
    }

    fileprivate mutating func addField(_ code: UInt8, _ value: BusValue) {
        pad(to: 8)
        append(code)
        BusValue.variant(value).write(to: &self)
    }

    fileprivate func number(at place: Int) -> Int {
        (0..<4).reduce(0) { $0 | Int(self[place + $1]) << ($1 * 8) }
    }

    fileprivate func text(at place: Int) -> String {
        String(decoding: self[place + 4..<place + 4 + number(at: place)], as: UTF8.self)
    }
}
