import CLinux
import Glibc
import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Daemon
@testable import WaypostControl

/// A server and its clients in one thread: nothing happens but by `pass()`, so each run is the same.
@Suite struct ControlLoadTests {
    private final class Rig {
        let loop: EventLoop
        private(set) var served = 0
        private(set) var postponed: [ControlTicket] = []
        private let directory: TemporaryDirectory
        private var server: ControlServer?
        private var stop: EventLoop.Alarm?

        init(postponedTimeout: Duration = .seconds(600)) throws {
            directory = try TemporaryDirectory()
            loop = try EventLoop()
            server = try ControlServer(
                path: directory.path + "/control.sock", group: getegid(), loop: loop, postponedTimeout: postponedTimeout
            ) { [unowned self] request, ticket throws(ControlError) in
                served += 1
                switch request.verb {
                case "echo": return Said(request.verb)
                case "big": return Said(String(repeating: "x", count: 60_000))
                case "late":
                    ticket.postpone()
                    postponed.append(ticket)
                    return Acknowledgement()
                default: throw ControlError("unknown-verb", "no \(request.verb)")
                }
            }
            stop = loop.alarm { [unowned self] _ in loop.stop() }
        }

        deinit { server?.close() }

        /// Serves what is ready, once.
        func pass() throws {
            stop?.deadline = loop.now
            try loop.run()
        }

        func finish(_ index: Int) {
            postponed.remove(at: index).finish(.success(Said("late")))
        }

        func connect() throws -> Client {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            try withUnixAddress(directory.path + "/control.sock") { (address, length) throws(SystemError) in
                guard Glibc.connect(descriptor, address, length) == 0 else { throw SystemError("connect") }
            }
            return Client(descriptor)
        }
    }

    private final class Client {
        let descriptor: Int32
        var unsent: ArraySlice<UInt8> = []
        /// The lines that have come whole.
        private(set) var replies: [Reply] = []
        private(set) var isClosed = false
        private var received: [UInt8] = []

        struct Reply: Equatable {
            /// Of the request; 0 = it had none, -1 = this is no reply.
            var id: Int
            var isAnswer: Bool
            var start: String
        }

        init(_ descriptor: Int32) { self.descriptor = descriptor }
        deinit { close(descriptor) }

        func say(_ line: String, _ count: Int = 1) {
            unsent = Array(String(repeating: line + "\n", count: count).utf8)[...]
        }

        /// As much of it as the kernel takes.
        func send(atMost limit: Int = .max) {
            let part = Array(unsent.prefix(limit))
            let count = Glibc.send(descriptor, part, part.count, Int32(MSG_NOSIGNAL))
            if count > 0 { unsent.removeFirst(count) }
        }

        func sendsNoMore() { shutdown(descriptor, Int32(SHUT_WR)) }

        func receive(atMost limit: Int = 65_536) {
            var chunk = [UInt8](repeating: 0, count: limit)
            let count = recv(descriptor, &chunk, limit, 0)
            if count == 0 || (count < 0 && errno != EAGAIN) { isClosed = true }
            if count > 0 { received += chunk[..<count] }
            while let end = received.firstIndex(of: 0x0A) {
                let start = String(decoding: received[..<min(end, 200)], as: UTF8.self)
                let hasID = start.hasPrefix(#"{"id":"#)
                let isReply = received[..<end].last == UInt8(ascii: "}") && (hasID || start.hasPrefix(#"{"error""#))
                let digits = start.drop { !$0.isNumber }.prefix { $0.isNumber }
                replies.append(
                    Reply(
                        id: isReply ? (hasID ? Int(digits) ?? -1 : 0) : -1, isAnswer: start.contains(#""ok""#),
                        start: start))
                received.removeSubrange(...end)
            }
        }
    }

    @Test func aFloodOfLinesLeavesTheLoopToOthersBetweenAnyTwo() throws {
        let rig = try Rig()
        let client = try rig.connect()
        client.say(#"{"id":1,"do":"echo"}"#, 600)
        while client.replies.count < 600 {
            client.send()
            let before = rig.served
            try rig.pass()
            // One that it had waiting, and one more that came when it had none.
            #expect(rig.served - before <= 2)
            client.receive()
        }
    }

    @Test func whoTakesNoRepliesIsNotServedMore() throws {
        let rig = try Rig()
        let clients = try (0..<4).map { _ in try rig.connect() }
        for client in clients { client.say(#"{"id":1,"do":"big"}"#, 25) }
        for _ in 0..<200 {
            for client in clients { client.send() }
            try rig.pass()
        }
        // What a socket takes is the kernel's business: some 200 KiB. One reply more waits here.
        #expect(rig.served <= clients.count * 8)
        for client in clients {
            while client.replies.count < 25, !client.isClosed {
                client.receive()
                try rig.pass()
            }
            #expect(client.replies.count == 25)
        }
    }

    @Test func linesBehindAPostponedAnswerDoNotLengthenItsTime() throws {
        let rig = try Rig(postponedTimeout: .milliseconds(20))
        let client = try rig.connect()
        client.say(#"{"id":7,"do":"late"}"#)
        let start = rig.loop.now
        while client.replies.isEmpty, rig.loop.now < start + .seconds(4) {
            client.send()
            if client.unsent.isEmpty { client.say(#"{"id":8,"do":"echo"}"#) }
            try rig.pass()
            client.receive()
        }
        let first = try #require(client.replies.first)
        #expect(first.id == 7 && first.start.contains(#""code":"timeout""#))
        // It comes too late, and is not taken for the answer to another line.
        rig.finish(0)
        try rig.pass()
        client.receive()
        #expect(!client.replies.dropFirst().contains { $0.id == 7 })
    }

    @Test func aClientThatHasGoneIsForgottenWithItsPostponedAnswer() throws {
        let rig = try Rig()
        do {
            let client = try rig.connect()
            client.say(#"{"id":7,"do":"late"}"#)
            client.send()
            try rig.pass()
            try rig.pass()
        }
        try rig.pass()
        #expect(rig.postponed.count == 1 && rig.postponed[0].isAbandoned)
        rig.finish(0)
    }

    /// Whatever the pieces in which they come, however slowly replies are taken and whenever its sending end is closed: each
    /// request gets one reply, whole and in its order, and then the connection ends.
    @Test(arguments: testSeeds(1...8)) func eachRequestGetsOneReply(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let rig = try Rig()
        let verbs = ["echo", "echo", "late", "big", "fly"]
        struct Script {
            var client: Client
            var expected: [Bool] = []
            var ids: [Int] = []
            var closes: Bool
            var hasClosed = false
        }
        var scripts: [Script] = try (0..<4).map { _ in
            var script = Script(client: try rig.connect(), closes: Bool.random(using: &random))
            var text = ""
            for id in 1...Int.random(in: 1...40, using: &random) {
                if Int.random(in: 0..<8, using: &random) == 0 {
                    text += ["{", "\u{0}", "null", "[[[", ""].randomElement(using: &random)! + "\n"
                    script.ids.append(0)
                    script.expected.append(false)
                } else {
                    let verb = verbs.randomElement(using: &random)!
                    text += "{\"id\":\(id),\"do\":\"\(verb)\"}\n"
                    script.ids.append(id)
                    script.expected.append(verb != "fly")
                }
            }
            script.client.unsent = Array(text.utf8)[...]
            return script
        }
        for _ in 0..<20_000 {
            let index = Int.random(in: 0..<scripts.count, using: &random)
            let client = scripts[index].client
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where !client.unsent.isEmpty: client.send(atMost: Int.random(in: 1...600, using: &random))
            case 0 where scripts[index].closes && !scripts[index].hasClosed:
                client.sendsNoMore()
                scripts[index].hasClosed = true
            case 1: client.receive(atMost: Int.random(in: 1...30_000, using: &random))
            case 2 where !rig.postponed.isEmpty: rig.finish(Int.random(in: 0..<rig.postponed.count, using: &random))
            default: try rig.pass()
            }
            if scripts.allSatisfy({ $0.client.replies.count == $0.expected.count && (!$0.closes || $0.client.isClosed) }
            ) {
                break
            }
        }
        for script in scripts {
            #expect(script.client.replies.map(\.id) == script.ids, "seed \(seed)")
            #expect(script.client.replies.map(\.isAnswer) == script.expected, "seed \(seed)")
            #expect(script.client.isClosed == script.closes, "seed \(seed)")
        }
    }
}
