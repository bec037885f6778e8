import Glibc
import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

@testable import Sensors

/// One look at a gpsd that the test plays.
@Suite struct GPSDFindingTests {
    private let server: Listener

    init() throws { server = try Listener() }

    private static let version =
        #"{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}"# + "\r\n"
    private static let device = #"{"class":"DEVICE","path":"/dev/waypost-test-a","driver":"u-blox","native":1}"#
    private static func devices(_ devices: String...) -> String {
        #"{"class":"DEVICES","devices":[\#(devices.joined(separator: ","))]}"# + "\r\n"
    }

    /// What the look makes of what `play` says once it is connected.
    private func finding(
        device: String? = nil, host: String = "127.0.0.1", timeout: Duration = .seconds(60),
        _ play: () throws -> Void
    ) throws -> GPSDFinding {
        let settings = GPSDSettings(host: host, port: server.port, device: device)
        let asking = try BackgroundCall("") { settings.inquire(timeout: timeout) }
        try play()
        var ready = pollfd(fd: asking.descriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&ready, 1, 60_000) == 1)
        return try #require(asking.answer)
    }

    private func answer(_ texts: String...) throws {
        try server.accept()
        for text in texts { try writeAll(text, to: server.client) }
    }

    @Test func tellsReleaseProtocolAndDevices() throws {
        let finding = try finding { try answer(Self.version, Self.devices(Self.device)) }
        #expect(finding.words == "gpsd 3.22 (protocol 3.14) with /dev/waypost-test-a (u-blox)")
        #expect(finding.problem == "/dev/waypost-test-a is unplugged")
        // It asked for the list and woke nobody.
        var request = [UInt8](repeating: 0, count: 256)
        let count = recv(server.client, &request, request.count, Int32(MSG_DONTWAIT))
        #expect(String(decoding: request.prefix(max(0, count)), as: UTF8.self) == "?DEVICES;\n")
    }

    @Test func aReceiverThatIsThereIsNoProblem() throws {
        let remote = Self.devices(#"{"class":"DEVICE","path":"tcp://receiver:2000"}"#)
        let finding = try finding(device: "tcp://receiver:2000") { try answer(Self.version, remote) }
        #expect(finding.words == "gpsd 3.22 (protocol 3.14) with tcp://receiver:2000")
        #expect(finding.problem == nil)
    }

    @Test func aDeviceThatIsMissingIsNamedWithThoseThatAreThere() throws {
        let one = try finding(device: "/dev/b") { try answer(Self.version, Self.devices(Self.device)) }
        #expect(one.problem == "gpsd does not have /dev/b; it has /dev/waypost-test-a")
        let none = try finding { try answer(Self.version, Self.devices()) }
        #expect(none.words == "gpsd 3.22 (protocol 3.14) without a device")
        #expect(none.problem?.hasPrefix("gpsd has no device: ") == true)
    }

    @Test func aProtocolOfTheFutureIsSaidSo() throws {
        let later = Self.version.replacing("\"proto_major\":3", with: "\"proto_major\":4")
        let finding = try finding { try answer(later, Self.devices(Self.device)) }
        #expect(finding.problem == "gpsd 3.22 uses protocol 4.14, expected 3")
    }

    static let hosts: [(String, String)] = [("127.0.0.1", "systemctl start gpsd.socket"), ("0.0.0.0", "-G")]

    @Test(arguments: hosts)
    func whereNobodyListensItSaysWhatToDo(_ host: String, _ advice: String) throws {
        let closed = try Listener(listens: false)
        let finding = GPSDSettings(host: host, port: closed.port).inquire(timeout: .seconds(60))
        #expect(finding.words == nil)
        let problem = try #require(finding.problem)
        #expect(problem.contains("\(host):\(closed.port)") && problem.contains(advice), "\(problem)")
    }

    @Test func aServerThatSaysNothingIsNotWaitedForLong() throws {
        let silent = try finding(timeout: .milliseconds(200)) { try server.accept() }
        #expect(silent.problem?.contains("does not answer like gpsd") == true)
        let half = try finding(timeout: .seconds(2)) { try answer(Self.version) }
        #expect(half.problem?.hasPrefix("gpsd at 127.0.0.1:\(server.port) does not list its devices") == true)
        #expect(half.version?.release == "3.22")
    }

    @Test(
        arguments: [
            "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "{\"class\":\"VERSION\"}\r\n",
            "\0\u{1B}[2J\n",
            String(repeating: "x", count: 30_000), "\n\n\n", "{\"class\":\"DEVICES\",\"devices\":[{}]}\n",
        ])
    func whateverElseAnswersIsNoGPSD(_ text: String) throws {
        let finding = try finding {
            try server.accept()
            try writeAll(text, to: server.client)
            server.hangUp()
        }
        #expect(finding.words == nil)
        #expect(finding.problem != nil)
    }

    @Test func aFloodOfLinesEndsWithTheTimeout() throws {
        let finding = try finding(timeout: .milliseconds(500)) {
            try server.accept()
            let flood = Array(String(repeating: "{\"class\":\"X\"}\n", count: 1000).utf8)
            while send(server.client, flood, flood.count, Int32(MSG_NOSIGNAL)) > 0 {}
        }
        #expect(finding.version == nil && finding.problem != nil)
    }
}
