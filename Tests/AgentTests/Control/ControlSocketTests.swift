import CLinux
import Delivery
import EventLoop
import FoundationEssentials
import Glibc
import Positioning
import TestSupport
import Testing

@testable import Agent
@testable import ControlProtocol

@Suite struct ControlSocketTests {
    /// Serves one loop on a thread of its own until the test is over.
    private final class Served {
        let directory: String
        let path: String
        private var thread = pthread_t()
        private let stopper: Int32

        init(group: gid_t? = nil) throws {
            directory = try makeTemporaryDirectory()
            path = directory + "/control.sock"
            stopper = waypost_eventfd()
            let (path, stopper) = (self.path, self.stopper)
            let ready = waypost_eventfd()
            let box = Unmanaged.passRetained(Box(path: path, stopper: stopper, ready: ready))
            pthread_create(&thread, nil, { serve($0!) }, box.toOpaque())
            var descriptor = pollfd(fd: ready, events: Int16(POLLIN), revents: 0)
            guard poll(&descriptor, 1, 60_000) == 1 else { throw SystemError("server did not start") }
            close(ready)
        }

        deinit {
            var one: UInt64 = 1
            write(stopper, &one, 8)
            pthread_join(thread, nil)
            close(stopper)
            unlink(path)
            rmdir(directory)
        }

        func connection() throws -> Int32 {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            try withUnixAddress(path) { (address, length) throws(SystemError) in
                guard connect(descriptor, address, length) == 0 else { throw SystemError("connect") }
            }
            var limit = timeval(tv_sec: 60, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            return descriptor
        }
    }

    @Test func answersARequestWithItsId() throws {
        let served = try Served()
        let reply = try ask(served.path, #"{"id":7,"do":"echo"}"#)
        #expect(String(decoding: reply, as: UTF8.self) == #"{"id":7,"ok":true,"said":"echo"}"#)
    }

    @Test func tellsWhatIsWrongWithAnUnknownVerb() throws {
        let served = try Served()
        let reply = try ask(served.path, #"{"id":7,"do":"fly"}"#)
        #expect(
            String(decoding: reply, as: UTF8.self)
                == #"{"id":7,"error":{"code":"unknown-verb","message":"no fly","hint":"walk"}}"#)
    }

    @Test(arguments: ["", "{", "[]", "null", #"{"do":5}"#, "\u{0}\u{1}", String(repeating: "[", count: 5000)])
    func refusesAFrameThatIsNoRequest(_ text: String) throws {
        let served = try Served()
        let reply = String(decoding: try ask(served.path, text), as: UTF8.self)
        #expect(reply.contains(#""code":"bad-frame""#))
    }

    @Test func answersSeveralRequestsThatComeInPieces() throws {
        let served = try Served()
        let descriptor = try served.connection()
        defer { close(descriptor) }
        let text = Array("{\"id\":1,\"do\":\"echo\"}\n{\"id\":2,\"do\":\"echo\"}\n".utf8)
        for byte in text { _ = send(descriptor, [byte], 1, Int32(MSG_NOSIGNAL)) }
        var received: [UInt8] = []
        while received.count(where: { $0 == 0x0A }) < 2 {
            var chunk = [UInt8](repeating: 0, count: 256)
            let count = recv(descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            received += chunk[..<count]
        }
        let lines = String(decoding: received, as: UTF8.self).split(separator: "\n")
        #expect(lines == [#"{"id":1,"ok":true,"said":"echo"}"#, #"{"id":2,"ok":true,"said":"echo"}"#])
    }

    @Test func anErrorThatQuotesALongRequestFitsIntoAFrame() throws {
        let served = try Served()
        let verb = String(repeating: #"\u0001"#, count: 10_000)
        let reply = try ask(served.path, #"{"id":7,"do":"\#(verb)"}"#)
        #expect(reply.count < ControlFrame.bytesMax)
        #expect(String(decoding: reply, as: UTF8.self).hasPrefix(#"{"id":7,"error":{"code":"unknown-verb""#))
    }

    @Test func closesAClientThatSendsAnEndlessLine() throws {
        let served = try Served()
        let descriptor = try served.connection()
        defer { close(descriptor) }
        let chunk = [UInt8](repeating: UInt8(ascii: "x"), count: 4096)
        var sent = 0
        while sent < 1 << 20 {
            let count = send(descriptor, chunk, chunk.count, Int32(MSG_NOSIGNAL))
            if count <= 0 { break }
            sent += count
        }
        var byte: UInt8 = 0
        #expect(recv(descriptor, &byte, 1, 0) <= 0)
    }

    @Test func letsOwnerAndGroupIn() throws {
        let served = try Served()
        var status = stat()
        #expect(stat(served.path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o660)
    }

    @Test func doesNotTakeTheSocketOfALivingDaemon() throws {
        let served = try Served()
        let loop = try EventLoop()
        let error = #expect(throws: SystemError.self) {
            _ = try ControlServer(path: served.path, group: nil, loop: loop) { _, _ in Acknowledgement() }
        }
        #expect(error?.code == EADDRINUSE)
        #expect(throws: Never.self) { try ask(served.path, #"{"do":"echo"}"#) }
    }

    @Test func replacesTheSocketOfADeadDaemon() throws {
        let directory = try makeTemporaryDirectory()
        let path = directory + "/control.sock"
        let dead = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try withUnixAddress(path) { (address, length) throws(SystemError) in
            guard bind(dead, address, length) == 0 else { throw SystemError("bind") }
        }
        close(dead)
        let loop = try EventLoop()
        let server = try ControlServer(path: path, group: nil, loop: loop) { _, _ in Acknowledgement() }
        server.close()
        #expect(access(path, F_OK) != 0)
        rmdir(directory)
    }

    @Test func leavesAFileAloneThatIsNoSocket() throws {
        let directory = try makeTemporaryDirectory()
        let path = directory + "/precious"
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        let loop = try EventLoop()
        let error = #expect(throws: SystemError.self) {
            _ = try ControlServer(path: path, group: nil, loop: loop) { _, _ in Acknowledgement() }
        }
        #expect(error?.code == EEXIST)
        #expect(access(path, F_OK) == 0)
        unlink(path)
        rmdir(directory)
    }

    /// Root would remove, or give away, what an owner of the directory has put there.
    @Test(.bug(id: 11)) func followsNoLink() throws {
        let directory = try makeTemporaryDirectory()
        let (path, target) = (directory + "/control.sock", directory + "/other.sock")
        let dead = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try withUnixAddress(target) { (address, length) throws(SystemError) in
            guard bind(dead, address, length) == 0 else { throw SystemError("bind") }
        }
        close(dead)
        #expect(symlink(target, path) == 0)
        let loop = try EventLoop()
        let error = #expect(throws: SystemError.self) {
            _ = try ControlServer(path: path, group: getegid(), loop: loop) { _, _ in Acknowledgement() }
        }
        #expect(error?.code == EEXIST)
        for name in [path, target] {
            var status = stat()
            #expect(lstat(name, &status) == 0)
            unlink(name)
        }
        rmdir(directory)
    }

    @Test func clientsThatHangDoNotKeepOthersOut() throws {
        let served = try Served()
        let idle = try (0..<40).map { _ in try served.connection() }
        defer { for descriptor in idle { close(descriptor) } }
        let reply = try ask(served.path, #"{"id":1,"do":"echo"}"#)
        #expect(String(decoding: reply, as: UTF8.self).contains("true"))
    }

    @Test func aLineThatComesInDropsIsNotWaitedForLongerThanOneThatDoesNotCome() throws {
        let served = try Served()
        let descriptor = try served.connection()
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 0, tv_usec: 50_000)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var closed = false
        for _ in 0..<400 where !closed {
            _ = send(descriptor, "x", 1, Int32(MSG_NOSIGNAL))
            var byte: UInt8 = 0
            closed = recv(descriptor, &byte, 1, 0) == 0
        }
        #expect(closed)
    }

    /// As when the user stops the command with Ctrl-Z and lets it go on.
    @Test(.bug(id: 13)) func aSignalDoesNotEndTheWait() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        try withUnixAddress(path) { (address, length) throws(SystemError) in
            guard bind(listener, address, length) == 0, listen(listener, 1) == 0 else { throw SystemError("listen") }
        }
        // Without SA_RESTART, so that it interrupts.
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        sigaction(SIGUSR2, &action, nil)
        let box = Unmanaged.passRetained(Signaller(listener: listener, target: pthread_self()))
        var thread = pthread_t()
        pthread_create(
            &thread, nil, { Unmanaged<Signaller>.fromOpaque($0!).takeRetainedValue().serve() }, box.toOpaque())
        #expect(try ask(path, "{}") == Array("{}".utf8))
        pthread_join(thread, nil)
    }

    @Test func saysThatNoDaemonListens() throws {
        let error = #expect(throws: SystemError.self) {
            try ask("/nonexistent/control.sock", "{}")
        }
        #expect(error?.code == ENOENT)
    }

    @Test func refusesAPathThatIsTooLongForASocket() throws {
        let error = #expect(throws: SystemError.self) {
            try ask("/" + String(repeating: "x", count: 200), "{}")
        }
        #expect(error?.code == ENAMETOOLONG)
    }
}

private func ask(_ path: String, _ request: String) throws(SystemError) -> [UInt8] {
    try ControlClient(path: path).ask(Array(request.utf8))
}

/// Sends signals to whom it is about to answer.
private final class Signaller {
    private let listener: Int32
    private let target: pthread_t

    init(listener: Int32, target: pthread_t) { (self.listener, self.target) = (listener, target) }

    func serve() -> UnsafeMutableRawPointer? {
        let client = accept(listener, nil, nil)
        var line = [UInt8](repeating: 0, count: 16)
        _ = read(client, &line, line.count)
        for _ in 0..<1000 {
            pthread_kill(target, SIGUSR2)
            sched_yield()
        }
        _ = send(client, "{}\n", 3, Int32(MSG_NOSIGNAL))
        close(client)
        return nil
    }
}

/// A reply of the tests' own.
struct Said: ControlMessage {
    @Field("said", "What it repeats") var said = ""

    init() {}
    init(_ said: String) { self.said = said }
}

private final class Box {
    let path: String
    let stopper: Int32
    let ready: Int32

    init(path: String, stopper: Int32, ready: Int32) {
        self.path = path
        self.stopper = stopper
        self.ready = ready
    }
}

private func serve(_ pointer: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    let box = Unmanaged<Box>.fromOpaque(pointer).takeRetainedValue()
    guard let loop = try? EventLoop(),
        let server = try? ControlServer(
            path: box.path, group: nil, loop: loop,
            answer: { request, _ throws(ControlError) in
                guard request.verb == "echo" else {
                    throw ControlError("unknown-verb", "no \(request.verb)", hint: "walk")
                }
                return Said(request.verb)
            }),
        (try? loop.watch(box.stopper) { _, _ in loop.stop() }) != nil
    else { return nil }
    var one: UInt64 = 1
    write(box.ready, &one, 8)
    try? loop.run()
    server.close()
    return nil
}
