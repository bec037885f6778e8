import Glibc

@testable import Daemon
@testable import Sensors
@testable import WaypostControl
@testable import WaypostCore
@testable import WaypostHost

/// libFuzzer entry: whatever clients of the metrics port send, in whatever pieces, and however they end, each gets one complete
/// answer at most, the numbers only for their question under our own name, and what the server keeps is bounded.
///
/// The input is a script: a byte that chooses the client and what it does, a byte that says how much, and text.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzMetrics(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    guard let rig = Rig() else { return 0 }
    while !input.isOver {
        let choice = input.byte()
        rig.act(choice, input.byte(), &input)
        rig.pass()
        rig.check()
    }
    rig.settleDown()
    return 0
}

/// A client's end of a connection.
private final class Client {
    private let descriptor: Int32
    private var sent: [UInt8] = []
    private var received: [UInt8] = []
    private(set) var isClosed = false

    init(to port: UInt16) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        // Closed without a trace: the system has fewer ports than there are inputs.
        var lingering = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &lingering, socklen_t(MemoryLayout<linger>.size))
        isClosed = SocketAddress(numericHost: "127.0.0.1", port: port)?.withPointer { connect(descriptor, $0, $1) } != 0
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) {
        let count = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        sent += bytes.prefix(max(0, count))
    }

    func sendsNoMore() { shutdown(descriptor, Int32(SHUT_WR)) }

    func receive() {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN { return }
        guard count > 0 else { return isClosed = true }
        received += chunk[..<count]
        check()
    }

    /// What has come is the beginning of one answer, or all of it.
    private func check() {
        let answer = String(decoding: received, as: UTF8.self)
        guard let end = answer.firstOccurrence(of: "\r\n\r\n") else { return }
        let head = answer[..<end.lowerBound]
        let status = head.dropFirst("HTTP/1.1 ".utf8.count).prefix(3)
        demand(head.hasPrefix("HTTP/1.1 "), "no answer of HTTP: \(head)")
        demand(["200", "400", "404", "405", "421", "431"].contains(status), "status \(status)")
        guard let length = head.firstOccurrence(of: "Content-Length: ").flatMap({ range in
            Int(head[range.upperBound...].prefix { $0.isNumber })
        }) else { fatalError("no length: \(head)") }
        demand(answer[end.upperBound...].utf8.count <= length, "more than an answer")
        guard status == "200" else { return }
        let question = String(decoding: sent, as: UTF8.self).lowercased()
        demand(question.firstOccurrence(of: "get /metrics") != nil, "an answer to no question")
        demand(question.firstOccurrence(of: "host") != nil, "an answer to who may be a page of another site")
    }
}

private final class Rig {
    private let host: ScriptedHost
    private let loop: EventLoop
    private let server: MetricsServer
    private var stop: EventLoop.Alarm?
    private var clients: [Client] = []

    /// nil while the system has no port.
    init?() {
        guard let host = try? ScriptedHost(), let address = SocketAddress(numericHost: "127.0.0.1", port: 0) else {
            return nil
        }
        (self.host, loop) = (host, EventLoop(on: host))
        guard let server = try? MetricsServer(address, hostName: "van", loop: loop, status: { Status() }) else {
            return nil
        }
        self.server = server
        stop = loop.alarm { [unowned self] _ in loop.stop() }
        clients = (0..<6).map { _ in Client(to: server.port) }
        pass()
    }

    deinit { server.close() }

    func act(_ choice: UInt8, _ amount: UInt8, _ input: inout Input) {
        let index = Int(choice >> 5) % clients.count
        switch choice & 7 {
        case 0, 1: clients[index].send(input.bytes(Int(amount)))
        case 2: clients[index].send(Array("GET /metrics HTTP/1.1\r\nHost: van\r\n".utf8))
        case 3: clients[index].send([UInt8](repeating: 0x61 + amount % 26, count: 16 * Int(amount)))
        case 4: clients[index].receive()
        case 5: host.bootTime = host.bootTime + .milliseconds(40 * Int64(amount))
        case 6: clients[index].sendsNoMore()
        default: clients[index] = Client(to: server.port)
        }
    }

    /// Serves what is ready.
    func pass() {
        stop?.deadline = loop.now
        do throws(SystemError) { try loop.run() } catch { fatalError("\(error)") }
    }

    func check() {
        guard let kept = Mirror(reflecting: server).descendant("clients") else { fatalError("no clients") }
        var count = 0
        for (_, entry) in Mirror(reflecting: kept).children {
            guard let client = Mirror(reflecting: entry).descendant("value"),
                let head = Mirror(reflecting: client).descendant("head") as? [UInt8]
            else { fatalError("a client without a head") }
            demand(head.count < 2 * 4096, "\(head.count) bytes of a head are kept")
            count += 1
        }
        demand(count <= 4, "\(count) clients")
    }

    /// In the end everybody is closed: who asked by himself, who did not by the server.
    func settleDown() {
        for _ in 0..<8 {
            pass()
            for client in clients where !client.isClosed { client.receive() }
        }
        host.bootTime = host.bootTime + .seconds(6)
        for _ in 0..<8 {
            pass()
            for client in clients where !client.isClosed { client.receive() }
        }
        check()
        demand(clients.allSatisfy(\.isClosed), "somebody is never closed")
    }
}
