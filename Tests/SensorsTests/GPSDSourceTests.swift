import Glibc
import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

@testable import Sensors

/// A gpsd that the test plays, and the source that watches it.
private final class FakeGPSD {
    let server: Listener
    let source: GPSDSource
    let loop: TestLoop

    init(
        device: String? = nil, host: String = "127.0.0.1", port: UInt16? = nil, receiver: ReceiverProfile = .none
    ) throws {
        server = try Listener()
        source = GPSDSource(
            settings: GPSDSettings(host: host, port: port ?? server.port, device: device, receiver: receiver),
            jitter: { 0 })
        loop = TestLoop(source)
    }

    static let version = #"{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}"#
    static let gone = "/dev/waypost-test-no-such-device"

    static func device(_ path: String, activated: String = #""2026-05-04T08:00:00.000Z""#) -> String {
        #"{"class":"DEVICE","path":"\#(path)","driver":"u-blox","activated":\#(activated)}"#
    }

    static func devices(_ paths: String...) -> String {
        #"{"class":"DEVICES","devices":[\#(paths.map { device($0) }.joined(separator: ","))]}"#
    }

    static func tpv(_ second: Int, mode: Int = 3, device: String = "tcp://receiver") -> String {
        let time = UTCTime(date: CivilDate(year: 2026, month: 5, day: 4)!, timeOfDay: second * 1000).iso8601
        return
            #"{"class":"TPV","device":"\#(device)","mode":\#(mode),"time":"\#(time)","lat":48.1173,"lon":11.5166667}"#
    }

    static func connected(devices: String? = FakeGPSD.devices("tcp://receiver")) throws -> FakeGPSD {
        let fake = try FakeGPSD()
        fake.loop.start()
        try fake.connect(devices: devices)
        return fake
    }

    /// Connects, takes the request to watch, and greets.
    func connect(devices: String? = FakeGPSD.devices("tcp://receiver")) throws {
        try server.accept()
        // Time must not pass while a thread connects.
        loop.takeInput(milliseconds: 60_000)
        _ = try request()
        if let devices { try send(Self.version, devices) }
    }

    func send(_ lines: String...) throws { try writeAll(lines.map { $0 + "\r\n" }.joined(), to: server.client) }

    /// What the source asked for: waits for it.
    func request() throws -> String {
        var ready = pollfd(fd: server.client, events: Int16(POLLIN), revents: 0)
        try #require(poll(&ready, 1, 60_000) == 1)
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(server.client, &buffer, buffer.count, 0)
        try #require(count > 0)
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    var words: [String] { loop.states.map(\.word) }
}

@Suite struct GPSDSourceTests {
    @Test func watchesAndReadsFixes() throws {
        let fake = try FakeGPSD()
        fake.loop.start()
        try fake.server.accept()
        fake.loop.takeInput(milliseconds: 60_000)
        let request = try fake.request()
        #expect(
            request.hasPrefix("?WATCH={") && request.contains(#""enable":true"#) && request.contains(#""json":true"#))
        try fake.send(FakeGPSD.version, FakeGPSD.devices("tcp://receiver"))
        try fake.send(FakeGPSD.tpv(1), FakeGPSD.tpv(1), FakeGPSD.tpv(2))
        fake.loop.reach { fake.loop.seconds == [1, 2] }
        #expect(fake.words == ["opening", "receiving"])
        #expect(fake.source.version?.release == "3.22")
        #expect(fake.source.devices.map(\.driver) == ["u-blox"])
        #expect(fake.source.device == "tcp://receiver")
    }

    @Test func asksForTheConfiguredDevice() throws {
        let fake = try FakeGPSD(device: "/dev/a")
        fake.loop.start()
        try fake.server.accept()
        fake.loop.takeInput(milliseconds: 60_000)
        let request = try fake.request()
        #expect(request.contains(#""device":"/dev/a""#))
    }

    @Test func splitLinesAndManyAtOnce() throws {
        let fake = try FakeGPSD.connected()
        let text = FakeGPSD.tpv(1) + "\r\n"
        for start in stride(from: 0, to: text.utf8.count, by: 40) {
            try writeAll(String(text.dropFirst(start).prefix(40)), to: fake.server.client)
            fake.loop.awaitInput()
        }
        // What came together is in memory after one read: none of it may wait for the next byte.
        try writeAll((2...21).map { FakeGPSD.tpv($0) + "\r\n" }.joined(), to: fake.server.client)
        fake.loop.reach { fake.loop.seconds == Array(1...21) }
    }

    @Test func moreLinesThanATurnTakesAreNotLeftLying() throws {
        let fake = try FakeGPSD.connected()
        let lines = String(repeating: "{\"class\":\"X\"}\r\n", count: 1400)
        try writeAll(lines + FakeGPSD.tpv(1) + "\r\n" + FakeGPSD.tpv(2) + "\r\n", to: fake.server.client)
        fake.loop.reach { fake.loop.seconds == [1, 2] }
    }

    @Test func whatSpeaksAnotherLanguageIsSaidSo() throws {
        let fake = try FakeGPSD.connected(devices: nil)
        try writeAll(String(repeating: "x", count: 20_480), to: fake.server.client)
        fake.loop.reach { fake.loop.lossReason != nil }
        #expect(fake.loop.lossReason?.contains("is not gpsd") == true)
        #expect(fake.source.nextDeadline == fake.loop.now + .seconds(1))
    }

    @Test func theEndInTheMiddleOfALine() throws {
        let fake = try FakeGPSD.connected()
        try fake.send(FakeGPSD.tpv(1), FakeGPSD.tpv(2))
        try writeAll(String(FakeGPSD.tpv(3).prefix(60)), to: fake.server.client)
        fake.loop.reach { fake.loop.seconds == [1] }
        fake.server.hangUp()
        fake.loop.reach { fake.loop.lossReason != nil }
        #expect(fake.loop.seconds == [1, 2])
        #expect(fake.loop.lossReason?.contains("gpsd closed the connection") == true)
    }

    @Test func aRestartedDaemonIsFoundAgain() throws {
        let fake = try FakeGPSD.connected()
        try fake.send(FakeGPSD.tpv(1), FakeGPSD.tpv(2))
        fake.loop.reach { fake.loop.seconds == [1] }
        fake.server.hangUp()
        fake.loop.reach { fake.loop.seconds == [1, 2] && fake.source.descriptor == nil }
        fake.loop.pass(.seconds(1))
        try fake.connect()
        // The last fix again, and the next ones.
        try fake.send(FakeGPSD.tpv(2), FakeGPSD.tpv(3), FakeGPSD.tpv(4))
        fake.loop.reach { fake.loop.seconds == [1, 2, 3] }
        #expect(fake.words == ["opening", "receiving", "lost", "opening", "receiving"])
    }

    @Test func silenceIsALostReceiverWithAReason() throws {
        let fake = try FakeGPSD.connected(devices: FakeGPSD.devices(FakeGPSD.gone))
        try fake.send(FakeGPSD.tpv(1, device: FakeGPSD.gone))
        fake.loop.reach { fake.loop.states.last == .receiving }
        fake.loop.pass(.milliseconds(4999))
        #expect(fake.loop.states.last == .receiving)
        fake.loop.pass(.milliseconds(1))
        #expect(try fake.request() == "?DEVICES;\n")
        try fake.send(FakeGPSD.devices(FakeGPSD.gone))
        fake.loop.reach { fake.loop.lossReason != nil }
        #expect(fake.loop.lossReason == "\(FakeGPSD.gone) is unplugged")
        // The connection is kept, and nothing is due.
        #expect(fake.source.descriptor != nil && fake.source.nextDeadline == nil)
        try fake.send(FakeGPSD.tpv(9, device: FakeGPSD.gone))
        fake.loop.reach { fake.loop.states.last == .receiving }
    }

    @Test func aGPSDThatDoesNotAnswerEitherIsGivenASecond() throws {
        let fake = try FakeGPSD.connected()
        try fake.send(FakeGPSD.tpv(1))
        fake.loop.reach { fake.loop.states.last == .receiving }
        fake.loop.pass(.seconds(6))
        #expect(fake.loop.lossReason?.contains("not even its devices") == true)
        #expect(fake.source.nextDeadline == nil)
    }

    @Test func noDeviceIsSaidAtOnceAndPluggingIsSeen() throws {
        let fake = try FakeGPSD.connected(devices: #"{"class":"DEVICES","devices":[]}"#)
        fake.loop.reach { fake.loop.lossReason != nil }
        #expect(fake.loop.lossReason?.contains("gpsd has no device") == true)
        try fake.send(FakeGPSD.device("/dev/a"))
        fake.loop.reach { fake.loop.states.last == .opening }
        try fake.send(FakeGPSD.tpv(1, device: "/dev/a"))
        fake.loop.reach { fake.loop.states.last == .receiving }
        try fake.send(FakeGPSD.device("/dev/a", activated: "0"))
        fake.loop.reach { fake.loop.seconds == [1] }
        #expect(fake.loop.states.last?.word == "lost")
    }

    @Test func aDeviceThatGPSDDoesNotHaveIsNamed() throws {
        let fake = try FakeGPSD(device: "/dev/b")
        fake.loop.start()
        try fake.connect(devices: FakeGPSD.devices("/dev/a"))
        fake.loop.reach { fake.loop.lossReason != nil }
        #expect(fake.loop.lossReason == "gpsd does not have /dev/b; it has /dev/a")
        try fake.send(
            FakeGPSD.tpv(1, device: "/dev/a"), FakeGPSD.tpv(2, device: "/dev/b"), FakeGPSD.tpv(3, device: "/dev/b"))
        fake.loop.reach { fake.loop.seconds == [2] }
    }

    @Test func anotherReceiverTakesOverFromASilentOne() throws {
        let fake = try FakeGPSD.connected(devices: FakeGPSD.devices("/dev/a", "/dev/b"))
        try fake.send(FakeGPSD.tpv(1, device: "/dev/a"))
        fake.loop.reach { fake.loop.seconds == [1] }
        for second in 2...8 {
            fake.loop.pass(.seconds(1))
            try fake.send(FakeGPSD.tpv(second, device: "/dev/b"))
            let before = fake.source.counters.sentences
            #expect(fake.loop.awaitInput() && fake.source.counters.sentences > before)
        }
        fake.loop.pass(.milliseconds(300))
        #expect(fake.loop.seconds.first == 1 && fake.loop.seconds.last == 8)
        #expect(!fake.loop.seconds.contains(2))
        #expect(fake.loop.lossReason == nil)
    }

    static let pauses: [(String, [Int64])] = [
        ("127.0.0.1", [1, 2, 4, 8, 10, 10]), ("0.0.0.0", [1, 2, 4, 8, 16, 32, 60, 60]),
    ]

    @Test(arguments: pauses)
    func refusedConnectionsBackOff(host: String, expected: [Int64]) throws {
        let refusing = try Listener(listens: false)
        let fake = try FakeGPSD(host: host, port: refusing.port)
        fake.loop.start()
        var pauses: [Int64] = []
        for _ in expected {
            while fake.source.descriptor != nil { fake.loop.takeInput(milliseconds: 60_000) }
            let next = try #require(fake.source.nextDeadline)
            pauses.append(next.duration(since: fake.loop.now).milliseconds / 1000)
            fake.loop.pass(next.duration(since: fake.loop.now))
        }
        #expect(pauses == expected)
        #expect(fake.words == ["opening", "lost"])
        #expect(fake.loop.lossReason?.contains("cannot connect to gpsd at \(host)") == true)
    }

    @Test func asleepItHangsUp() throws {
        let fake = try FakeGPSD.connected()
        try fake.send(FakeGPSD.tpv(1))
        fake.loop.reach { fake.loop.states.last == .receiving }
        #expect(fake.loop.setAsleep(true))
        #expect(fake.loop.seconds == [1])
        #expect(fake.source.descriptor == nil && fake.source.nextDeadline == nil)
        #expect(fake.loop.setAsleep(false))
        fake.server.hangUp()
        try fake.connect()
        try fake.send(FakeGPSD.tpv(5), FakeGPSD.tpv(6))
        fake.loop.reach { fake.loop.seconds == [1, 5] }
    }

    @Test func anUnknownProtocolIsNotedOnce() throws {
        let fake = try FakeGPSD.connected(devices: nil)
        let version = #"{"class":"VERSION","release":"9.0","proto_major":4,"proto_minor":0}"#
        try fake.send(version, FakeGPSD.devices("tcp://receiver"), version, FakeGPSD.tpv(1), FakeGPSD.tpv(2))
        fake.loop.reach { fake.loop.seconds == [1] }
        #expect(fake.loop.notices.count == 1)
    }

    @Test func anEpochOfManyLinesCostsAFewWakeUps() throws {
        let fake = try FakeGPSD.connected()
        for second in 1...20 {
            if second == 10 { fake.loop.forget() }
            try fake.send(FakeGPSD.tpv(second))
            fake.loop.takeInput()
            for _ in 0..<8 { try fake.send(FakeGPSD.tpv(second)) }
            fake.loop.pass(.seconds(1))
        }
        #expect(fake.loop.seconds == Array(10...20))
        #expect(fake.loop.wakeUps <= 11 * 3)
    }

    /// - Parameter step: seconds between the fixes of the receiver once it is asked for one in five.
    @Test(arguments: [5, 1]) func asksForARateAndMeasuresWhatComes(step: Int) throws {
        let fake = try FakeGPSD(receiver: .gpsdCycle)
        fake.loop.start()
        try fake.connect(devices: FakeGPSD.devices("/dev/ttyACM0"))
        fake.loop.reach { !fake.source.devices.isEmpty }
        fake.source.setInterval(.seconds(5), at: fake.loop.now) { _ in }
        var second = 0
        func fix(_ step: Int) throws {
            second += step
            let known = fake.loop.seconds.count
            fake.loop.pass(.seconds(Int64(step)))
            try fake.send(FakeGPSD.tpv(second, device: "/dev/ttyACM0"))
            fake.loop.reach { fake.loop.seconds.count > known }
        }
        // What it does by itself is not what is wanted.
        for _ in 0..<5 { try fix(1) }
        #expect(try fake.request() == #"?DEVICE={"path":"/dev/ttyACM0","cycle":5.000};"# + "\n")
        // gpsd says yes in any case.
        try fake.send(#"{"class":"DEVICE","path":"/dev/ttyACM0","cycle":5.00}"#)
        for _ in 0..<5 { try fix(step) }
        #expect(fake.source.rate == ReceiverRate(wanted: 5000, measured: Int64(step) * 1000, isHonoured: step == 5))
        #expect(fake.loop.notices.filter { $0.contains("rate not honoured") }.count == (step == 5 ? 0 : 1))
    }

    @Test func silenceThatWasAskedForIsNoLoss() throws {
        let fake = try FakeGPSD(receiver: .gpsdCycle)
        fake.loop.start()
        try fake.connect()
        for second in 0..<5 {
            try fake.send(FakeGPSD.tpv(second))
            fake.loop.takeInput()
            fake.loop.pass(.seconds(1))
        }
        fake.source.setInterval(.seconds(20), at: fake.loop.now) { _ in }
        #expect(try fake.request().contains("20.000"))
        fake.loop.pass(.seconds(50))
        #expect(fake.loop.states.last == .receiving)
        fake.loop.pass(.seconds(20))
        #expect(fake.loop.states.last?.word == "lost")
    }

    @Test func requestsAreWellFormed() {
        #expect(
            GPSDRequest.cycle(of: #"a"b\c"#, interval: .seconds(61)) == #"?DEVICE={"path":"a\"b\\c","cycle":61.000};"#
                + "\n")
        #expect(GPSDRequest.cycle(of: "a", interval: .zero)?.contains("0.010") == true)
        #expect(GPSDRequest.cycle(of: "a", interval: .seconds(Int64.max))?.contains("3600.000") == true)
        #expect(GPSDRequest.cycle(of: "a\nb", interval: .seconds(1)) == nil)
        #expect(GPSDRequest.cycle(of: "", interval: .seconds(1)) == nil)
    }

    @Test(arguments: testSeeds(81...82))
    func survivesGarbage(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let fake = try FakeGPSD.connected()
        let line = Array((FakeGPSD.tpv(1) + "\r\n").utf8)
        for _ in 0..<300 {
            var bytes = line
            for _ in 0..<6 {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            try #require(bytes.withUnsafeBytes { write(fake.server.client, $0.baseAddress, $0.count) } == bytes.count)
            fake.loop.awaitInput(milliseconds: 1)
        }
        try fake.send("", FakeGPSD.tpv(100), FakeGPSD.tpv(101))
        #expect(fake.loop.run { fake.loop.seconds.contains(100) }, "seed \(seed)")
    }
}
