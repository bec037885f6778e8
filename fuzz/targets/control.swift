import CLinux
import Glibc

@testable import Daemon
@testable import WaypostControl
@testable import WaypostCore
@testable import WaypostHost

/// libFuzzer entry: whatever clients send, in whatever pieces, and however they end, the server answers each line of theirs
/// once and in its order, one in a turn of the loop, and keeps a frame in each direction at most.
///
/// The input is a script: a byte that chooses the client and what it does, a byte that says how much, and text.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzControl(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    let rig = Rig()
    while !input.isOver {
        let choice = input.byte()
        rig.act(choice, input.byte(), &input)
        rig.pass()
        rig.check()
    }
    rig.settleDown()
    return 0
}

/// A client's end of the socket, and what it may expect.
private final class Client {
    let descriptor: Int32
    /// The last line as far as it was sent.
    private var line: [UInt8] = []
    /// What the id of each reply must be; nil = that is the line's own affair.
    private(set) var expected: [Int?] = []
    private(set) var replies = 0
    private var received: [UInt8] = []
    private var chunk = [UInt8](repeating: 0, count: 65_536)
    private(set) var isClosed = false
    /// It did what the server may close it for.
    var isAtFault = false
    private(set) var hasEnded = false

    init(to path: String) {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let connected = try? withUnixAddress(path) { (address, length) throws(SystemError) in
            connect(descriptor, address, length) == 0
        }
        demand(connected == true, "cannot connect: \(errno)")
        // A small buffer, so that replies wait at the server.
        var bytes: Int32 = 4096
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8], id: Int? = nil) {
        guard !hasEnded, !isClosed, !bytes.isEmpty else { return }
        let startsLine = line.isEmpty
        let count = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        for byte in bytes.prefix(max(0, count)) {
            if byte == 0x0A {
                expected.append(startsLine && count == bytes.count ? id : nil)
                line = []
            } else {
                line.append(byte)
                // Where the server cuts its reads is its own affair: it may close who comes near.
                if line.count > ControlFrame.bytesMax - 4096 { isAtFault = true }
            }
        }
    }

    func sendsNoMore() {
        hasEnded = true
        shutdown(descriptor, Int32(SHUT_WR))
    }

    func receive(atMost limit: Int) {
        guard !isClosed else { return }
        let count = recv(descriptor, &chunk, limit, 0)
        if count < 0, errno == EAGAIN { return }
        guard count > 0 else { return isClosed = true }
        var rest = chunk[..<count]
        while let end = rest.firstIndex(of: 0x0A) {
            take(received + rest[..<end])
            received = []
            rest = rest[(end + 1)...]
        }
        received += rest
        demand(received.count < ControlFrame.bytesMax, "a reply that does not end")
    }

    private func take(_ reply: [UInt8]) {
        demand(reply.count < ControlFrame.bytesMax, "a reply of \(reply.count) bytes")
        demand(replies < expected.count, "more replies than lines: \(String(decoding: reply, as: UTF8.self))")
        let value = JSONReader.read(reply)
        demand(value != nil, "a reply that is no JSON: \(String(decoding: reply, as: UTF8.self))")
        let isAnswer = value?.value(at: ["ok"]) != nil
        demand(isAnswer != (value?.value(at: ["error"]) != nil), "neither an answer nor an error, or both")
        if let id = expected[replies] {
            demand(value?.value(at: ["id"]) == .int(Int64(id)), "the reply to another line than \(id)")
        }
        replies += 1
    }
}

private struct Said: ControlMessage {
    @Field("said", "What it repeats") var said = ""

    init() {}
    init(_ said: String) { self.said = said }
}

private final class Rig {
    private static let directory: String = {
        let place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        var name = Array("\(place)/waypost-fuzz-XXXXXX".utf8CString)
        demand(mkdtemp(&name) != nil, "no directory")
        return String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    private static let big = String(repeating: "x", count: 30_000)
    private let host: ScriptedHost
    private let loop: EventLoop
    private var server: ControlServer?
    private var stop: EventLoop.Alarm?
    private var postponed: [ControlTicket] = []
    private var clients: [Client]
    private var servedInTurn = 0
    private var number = 0

    init() {
        let path = Self.directory + "/control.sock"
        guard let host = try? ScriptedHost() else { fatalError("no descriptors") }
        self.host = host
        loop = EventLoop(on: host)
        clients = []
        do throws(SystemError) {
            server = try ControlServer(path: path, group: nil, loop: loop) {
                [unowned self] request, ticket throws(ControlError) in try answer(request, ticket)
            }
        } catch {
            fatalError("\(error)")
        }
        stop = loop.alarm { [unowned self] _ in loop.stop() }
        host.turn = { [unowned self] in servedInTurn = 0 }
        clients = (0..<4).map { _ in Client(to: path) }
        pass()
    }

    deinit { server?.close() }

    private func answer(_ request: RequestFrame, _ ticket: ControlTicket) throws(ControlError) -> any ControlMessage {
        servedInTurn += 1
        demand(servedInTurn == 1, "two lines in one turn")
        switch request.verb {
        case "big": return Said(Self.big)
        case "late":
            ticket.postpone()
            postponed.append(ticket)
        case "early":
            ticket.postpone()
            ticket.finish(.success(Said("early")))
        case "refused":
            let order: EndpointRequest = try request.read()
            throw ControlError("refused", order.endpoint ?? "", hint: order.after)
        default: return Said(request.verb)
        }
        return Acknowledgement()
    }

    func act(_ choice: UInt8, _ amount: UInt8, _ input: inout Input) {
        let client = clients[Int(choice >> 6)]
        switch choice & 7 {
        case 0: client.send(input.bytes(Int(amount)))
        case 1, 2:
            let verbs = ["echo", "big", "late", "early", "refused"]
            number += 1
            client.send(
                Array(#"{"id":\#(number),"do":"\#(verbs[Int(amount) % verbs.count])"}"#.utf8) + [0x0A], id: number)
        case 3: client.receive(atMost: 1 + Int(amount) * 256)
        // Quotes and control characters, of which a reply needs six bytes for each.
        case 4:
            client.send(Array(#"{"do":""#.utf8))
            for _ in 0...amount { client.send([UInt8](repeating: choice & 8 == 0 ? 0x61 : 0x7F, count: 200)) }
            client.send(Array(#""}"#.utf8) + [0x0A])
        case 5:
            host.bootTime = host.bootTime + .milliseconds(20 * Int64(amount))
            if amount > 0 { for client in clients { client.isAtFault = true } }
        case 6:
            guard !postponed.isEmpty else { return }
            postponed.remove(at: Int(amount) % postponed.count).finish(.success(Said("late")))
        default:
            if amount & 1 == 0 { return client.sendsNoMore() }
            clients[Int(choice >> 6)] = Client(to: Self.directory + "/control.sock")
        }
    }

    /// Serves what is ready.
    func pass() {
        stop?.deadline = loop.now
        do throws(SystemError) { try loop.run() } catch { fatalError("\(error)") }
    }

    /// What the server keeps of each client: what is not served, which ends at most one read behind the end of a line, and
    /// one reply.
    func check() {
        guard let server, let kept = Mirror(reflecting: server).descendant("clients") else { fatalError("no clients") }
        var count = 0
        for (_, entry) in Mirror(reflecting: kept).children {
            guard let client = Mirror(reflecting: entry).descendant("value") else { continue }
            let mirror = Mirror(reflecting: client)
            guard let received = mirror.descendant("received") as? [UInt8],
                let unsent = mirror.descendant("unsent") as? ArraySlice<UInt8>
            else { fatalError("a client without buffers") }
            demand(received.count <= ControlFrame.bytesMax, "\(received.count) bytes wait to be served")
            demand(unsent.count <= ControlFrame.bytesMax, "\(unsent.count) bytes wait to be sent")
            count += 1
        }
        demand(count <= 16, "\(count) clients")
    }

    /// Everybody takes what there is for him: in the end each line has its reply.
    func settleDown() {
        for client in clients { client.sendsNoMore() }
        var turns = 0
        while clients.contains(where: { !$0.isClosed }) {
            turns += 1
            demand(turns < 20_000, "it never ends")
            while !postponed.isEmpty { postponed.removeFirst().finish(.success(Said("late"))) }
            pass()
            check()
            for client in clients { client.receive(atMost: 65_536) }
        }
        for client in clients where !client.isAtFault {
            demand(
                client.replies == client.expected.count, "\(client.replies) replies to \(client.expected.count) lines")
        }
    }
}
