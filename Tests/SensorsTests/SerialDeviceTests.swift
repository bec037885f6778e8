import Glibc
import TestSupport
import Testing
import WaypostCore

@testable import Sensors

@Suite struct SerialDeviceTests {
    private static let devices = [
        SerialDevice(node: "/dev/ttyACM0", usb: USBIdentity(vendor: 0x1546, product: 0x01A8)),
        SerialDevice(node: "/dev/ttyUSB0", usb: USBIdentity(vendor: 0x0403, product: 0x6001, serial: "A10XYZ")),
        SerialDevice(node: "/dev/ttyUSB1", usb: USBIdentity(vendor: 0x0403, product: 0x6001, serial: "A10ABC")),
    ]

    static let identities: [(USBIdentity?, String)] = [
        (USBIdentity(id: "1546:01a8"), "/dev/ttyACM0"), (USBIdentity(id: "0403:6001"), "/dev/ttyUSB0"),
        (USBIdentity(serial: "A10ABC"), "/dev/ttyUSB1"),
        (USBIdentity(id: "0403:6001", serial: "A10ABC"), "/dev/ttyUSB1"),
    ]

    @Test(arguments: identities)
    func isFoundByWhatItIs(identity: USBIdentity?, node: String) throws {
        let name = SerialName.usb(try #require(identity))
        #expect(try name.node(among: { Self.devices }) == node)
    }

    @Test func aMissingOneIsSaidWithWhatIsThere() {
        let name = SerialName.usb(USBIdentity(vendor: 0x1546, product: 0x01A9))
        let problem = #expect(throws: SourceProblem.self) { try name.node(among: { Self.devices }) }
        let expected = "no serial line of usb 1546:01a9 is plugged in; there are /dev/ttyACM0 (1546:01a8), "
        #expect(problem?.description.hasPrefix(expected) == true)
        let none = #expect(throws: SourceProblem.self) { try name.node(among: { [] }) }
        #expect(none?.description.hasSuffix("there is no USB serial device at all") == true)
    }

    @Test(arguments: ["1546", "1546:1a8", "1546:01a8:1", "15+6:01a8", "+546:01a8", "1546-01a8", "", ":", "ubloxx:01a8"])
    func whatIsNoIdIsRefused(text: String) {
        #expect(USBIdentity(id: text) == nil)
    }

    @Test func idsAreWrittenWithFourDigits() {
        #expect(USBIdentity(id: "0403:000A")?.id == "0403:000a")
        #expect(USBIdentity(id: "0403:000A", serial: "X")?.description == "0403:000a X")
    }

    @Test func theHostCanBeAsked() {
        // Whatever is plugged in here.
        for device in SerialDevice.all() { #expect(device.node.hasPrefix("/dev/") && device.usb.id != nil) }
    }
}

/// Plugging and unplugging, as the loop is told of it.
@Suite struct HotplugTests {
    private let s9600 = LineSpeed(baud: 9600)!
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func started() -> TestLoop {
        let loop = TestLoop(SerialSource(settings: .alone(folder.path("gps"), speed: .fixed(s9600))))
        loop.start()
        return loop
    }

    private func plugged() throws -> PseudoTerminal {
        let line = try PseudoTerminal()
        try #require(symlink(line.path, folder.path("gps")) == 0)
        return line
    }

    private func event(_ action: String, _ node: String) -> DeviceEvent {
        DeviceEvent(action: action, subsystem: "tty", name: "ttyX", node: node, properties: [:])
    }

    /// Events that were lost are a reason to look, too.
    @Test(arguments: [true, false]) func anEventOpensAtOnceAndStartsThePausesAnew(isKnown: Bool) throws {
        let loop = started()
        loop.pass(.seconds(40))
        // Something else was plugged in.
        loop.deviceChanged(event("add", "/dev/ttyUSB7"))
        #expect(loop.source.nextDeadline == loop.now + .seconds(1))
        let line = try plugged()
        loop.deviceChanged(isKnown ? event("add", line.path) : nil)
        #expect(loop.source.descriptor != nil)
        // Events about others change nothing for a line that is open.
        loop.deviceChanged(event("remove", "/dev/ttyUSB7"))
        loop.deviceChanged(event("add", "/dev/ttyUSB7"))
        loop.deviceChanged(nil)
        #expect(loop.source.descriptor != nil && loop.states.map(\.word) == ["opening", "lost", "opening"])
    }

    @Test func aDeviceThatIsGoneByItsEventIsLetGo() throws {
        let line = try plugged()
        let loop = started()
        try line.send(Receiver.rmc(0))
        loop.takeInput()
        loop.deviceChanged(event("remove", line.path))
        #expect(loop.source.descriptor == nil)
        #expect(loop.lossReason == "\(folder.path("gps")) is unplugged (removed)")
        // What had begun of an epoch is all of it.
        #expect(loop.seconds == [0])
        #expect(loop.source.nextDeadline == loop.now + .seconds(1))
    }

    @Test func followsTheDeviceToAnotherNumber() throws {
        let lines = [try PseudoTerminal(), try PseudoTerminal()]
        var plugged: [SerialDevice] = []
        let usb = USBIdentity(vendor: 0x1546, product: 0x01A8, serial: "G8")
        let settings = SerialSettings(device: .usb(USBIdentity(serial: "G8")), speed: .fixed(s9600))
        let loop = TestLoop(SerialSource(settings: settings, devices: { plugged }))
        loop.start()
        #expect(loop.source.name == "serial usb G8")
        #expect(loop.lossReason?.contains("there is no USB serial device") == true)
        for (index, line) in lines.enumerated() {
            plugged = [SerialDevice(node: line.path, usb: usb)]
            loop.deviceChanged(event("add", line.path))
            try line.send(Receiver.epoch(index * 10))
            loop.takeInput()
            loop.pass(.seconds(1))
            plugged = []
            line.unplug()
            loop.reach { loop.states.last?.word == "lost" }
        }
        #expect(loop.seconds == [0, 10])
    }

    @Test func asleepNobodyLooks() throws {
        let loop = started()
        #expect(loop.setAsleep(true))
        let line = try plugged()
        loop.deviceChanged(event("add", line.path))
        #expect(loop.source.descriptor == nil && loop.source.nextDeadline == nil)
    }

    /// As a user without privileges, whom a mode keeps out.
    @Test func missingPermissionIsWaitedForAfterAPlug() throws {
        let path = folder.path("gps")
        let loop = started()
        loop.forget()
        // A folder without permission to search it answers as a node without permission to open it does.
        #expect(chmod(folder.path, 0) == 0)
        defer { chmod(folder.path, 0o700) }
        // This thread alone: root may search everything.
        let actAs = unsafeBitCast(dlsym(nil, "setfsuid"), to: (@convention(c) (uid_t) -> CInt).self)
        if getuid() == 0 { _ = actAs(65_534) }
        defer { if getuid() == 0 { _ = actAs(0) } }
        loop.deviceChanged(event("add", path))
        loop.pass(.milliseconds(4900))
        #expect(loop.states.isEmpty)
        loop.pass(.seconds(2))
        #expect(loop.lossReason?.contains("is not in group") == true)
    }
}

/// A gpsd that has the line too.
@Suite struct LineOwnerTests {
    private static let greeting =
        "{\"class\":\"VERSION\",\"release\":\"3.22\",\"rev\":\"3.22\",\"proto_major\":3,\"proto_minor\":14}\r\n"

    private func host(_ port: Int) -> GPSDInquiry.Host {
        var host = GPSDInquiry.Host()
        host.socket = "/nowhere"
        host.port = UInt16(port)
        return host
    }

    private func devices(_ paths: String...) -> String {
        let list = paths.map { "{\"class\":\"DEVICE\",\"path\":\"\($0)\",\"activated\":\"2026-05-04T00:00:00.000Z\"}" }
        return "{\"class\":\"DEVICES\",\"devices\":[\(list.joined(separator: ","))]}\r\n"
    }

    /// A line on which nothing comes, so that the gpsd of the server is asked.
    private func silent() throws -> (line: PseudoTerminal, server: LocalServer, loop: TestLoop) {
        let (line, server) = (try PseudoTerminal(), try LocalServer())
        var settings = SerialSettings(device: .path(line.path), speed: .fixed(try #require(LineSpeed(baud: 9600))))
        settings.gpsd = host(server.port)
        let loop = TestLoop(SerialSource(settings: settings))
        loop.start()
        loop.pass(.seconds(5))
        return (line, server, loop)
    }

    @Test func aSilentLineIsGPSDs() throws {
        let (line, server, loop) = try silent()
        #expect(loop.states.last == .silent)
        try server.accept()
        let answer = Array((Self.greeting + devices("/dev/other", line.path)).utf8)
        // In pieces, as it may come.
        loop.reach { !loop.source.awaitsWritability }
        for cut in [answer[..<40], answer[40..<180], answer[180...]] {
            server.send(Array(cut))
            loop.takeInput()
        }
        loop.reach { loop.source.remark != nil }
        #expect(loop.notices.count == 1)
        #expect(loop.source.remark?.contains("gpsd has \(line.path) too") == true)
        #expect(loop.source.remark?.contains("USBAUTO=false") == true)
        // The line goes on.
        try line.send(Receiver.epoch(10))
        loop.takeInput()
        #expect(loop.states.last == .receiving)
    }

    @Test func anotherLineOfGPSDsIsNoneOfOurs() throws {
        let (line, server, loop) = try silent()
        defer { line.unplug() }
        try server.accept()
        server.send(Array((Self.greeting + devices("/dev/other")).utf8))
        loop.reach { loop.source.nextDeadline == nil }
        #expect(loop.source.remark == nil && loop.notices.isEmpty)
    }

    @Test func aGPSDThatDoesNotAnswerIsNotWaitedFor() throws {
        let (line, server, loop) = try silent()
        defer { withExtendedLifetime(server) {} }
        #expect(loop.source.descriptor != nil)
        loop.pass(.seconds(2))
        #expect(loop.source.remark == nil && loop.source.nextDeadline == nil)
        try line.send(Receiver.epoch(10))
        loop.takeInput()
        #expect(loop.states.last == .receiving)
    }

    @Test func pathsAreFoundInTheAnswerOnlyWhenItIsWhole() {
        func found(_ text: String) -> [String]? { GPSDInquiry.devices(in: Array(text.utf8)) }
        let whole = Self.greeting + devices("/dev/a", "/dev/b")
        #expect(found(whole) == ["/dev/a", "/dev/b"])
        #expect(found(String(whole.dropLast(3))) == nil)
        #expect(found(Self.greeting) == nil)
        #expect(found(devices()) == [])
        #expect(found("{\"class\":\"DEVICES\",\"devices\":[{\"path\":\"/dev/a}\r\n") == [])
    }

    @Test func whereOnlySystemdListensNobodyIsAsked() throws {
        let folder = try TemporaryFolder()
        let server = try LocalServer()
        var host = host(server.port)
        host.socket = try folder.write("", to: "gpsd.sock")
        host.services = [folder.path("service")]
        #expect(host.isSocketActivated)
        #expect(GPSDInquiry(about: ["/dev/a"], host: host, at: .zero) == nil)
        try folder.write("", to: "service")
        #expect(!host.isSocketActivated)
        #expect(GPSDInquiry(about: ["/dev/a"], host: host, at: .zero) != nil)
    }
}
