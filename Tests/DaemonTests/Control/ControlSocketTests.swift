import CLinux
import FoundationEssentials
import Glibc
import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Daemon
@testable import WaypostControl

@Suite struct ControlSocketTests {
    /// Serves one loop on a thread of its own until the test is over.
    private final class Served {
        private let directory: TemporaryDirectory
        let path: String
        private var thread = pthread_t()
        private let stopper: Int32

        init() throws {
            directory = try TemporaryDirectory()
            path = directory.path + "/control.sock"
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

    @Test func answersEachFrame() throws {
        let served = try Served()
        func reply(_ text: String) throws -> String { String(decoding: try ask(served.path, text), as: UTF8.self) }
        #expect(try reply(#"{"id":7,"do":"echo"}"#) == #"{"id":7,"ok":true,"said":"echo"}"#)
        let unknown = #"{"id":7,"error":{"code":"unknown-verb","message":"no fly","hint":"walk"}}"#
        #expect(try reply(#"{"id":7,"do":"fly"}"#) == unknown)
        for text in ["", "{", "[]", "null", #"{"do":5}"#, "\u{0}\u{1}", String(repeating: "[", count: 5000)] {
            #expect(try reply(text).contains(#""code":"bad-frame""#), "\(text.prefix(20))")
        }
        // An error that quotes a long request fits into a frame.
        let long = try reply(#"{"id":7,"do":"\#(String(repeating: #"\u0001"#, count: 10_000))"}"#)
        #expect(long.utf8.count < ControlFrame.bytesMax)
        #expect(long.hasPrefix(#"{"id":7,"error":{"code":"unknown-verb""#))
        // Owner and group are let in.
        var status = stat()
        #expect(stat(served.path, &status) == 0 && status.st_mode & 0o777 == 0o660)
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

    /// Why a server does not start there; nil = it does, and has ended.
    private func refusal(_ path: String, group: gid_t? = nil) throws -> Int32? {
        let loop = try EventLoop()
        do {
            try ControlServer(path: path, group: group, loop: loop) { _, _ in Acknowledgement() }.close()
            return nil
        } catch { return error.code }
    }

    /// What a daemon that was killed leaves.
    private func leaveSocket(_ path: String) throws {
        let dead = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(dead) }
        try withUnixAddress(path) { (address, length) throws(SystemError) in
            guard bind(dead, address, length) == 0 else { throw SystemError("bind") }
        }
    }

    @Test func doesNotTakeTheSocketOfALivingDaemon() throws {
        let served = try Served()
        #expect(try refusal(served.path) == EADDRINUSE)
        #expect(throws: Never.self) { try ask(served.path, #"{"do":"echo"}"#) }
    }

    @Test func replacesTheSocketOfADeadDaemonAndNothingElse() throws {
        let directory = try TemporaryDirectory()
        let (path, file) = (directory.path + "/control.sock", directory.path + "/precious")
        try leaveSocket(path)
        #expect(try refusal(path) == nil && access(path, F_OK) != 0)
        try directory.write("precious", "")
        #expect(try refusal(file) == EEXIST && access(file, F_OK) == 0)
    }

    /// Root would remove, or give away, what an owner of the directory has put there.
    @Test(.bug(id: 11)) func followsNoLink() throws {
        let directory = try TemporaryDirectory()
        let (path, target) = (directory.path + "/control.sock", directory.path + "/other.sock")
        try leaveSocket(target)
        #expect(symlink(target, path) == 0)
        #expect(try refusal(path, group: getegid()) == EEXIST)
        var status = stat()
        for name in [path, target] { #expect(lstat(name, &status) == 0) }
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

    @Test func saysWhyItCannotAsk() throws {
        let rows: [(path: String, code: Int32)] = [
            ("/nonexistent/control.sock", ENOENT), ("/" + String(repeating: "x", count: 200), ENAMETOOLONG),
        ]
        for (path, code) in rows {
            let error = #expect(throws: SystemError.self) { try ask(path, "{}") }
            #expect(error?.code == code)
        }
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
    let (path, stopper, ready): (String, Int32, Int32)

    init(path: String, stopper: Int32, ready: Int32) { (self.path, self.stopper, self.ready) = (path, stopper, ready) }
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
