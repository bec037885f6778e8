import Glibc
import TestSupport
import Testing
import WaypostCore

@testable import Sensors

@Suite struct SupplicantWatchTests {
    /// The control socket of an interface.
    private final class Supplicant {
        let folder: String
        private let socket: Int32

        init() throws {
            folder = try makeTemporaryDirectory(in: "/tmp")
            socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            let descriptor = socket
            let bound = withUnixAddress(Array("\(folder)/wlan0".utf8)) { bind(descriptor, $0, $1) }
            try #require(bound == 0)
        }

        deinit {
            close(socket)
            unlink("\(folder)/wlan0")
            rmdir(folder)
        }

        /// Commands that came, each answered, and events after them.
        func serve(_ status: String, events: [String] = []) -> [String] {
            var commands: [String] = []
            var bytes = [UInt8](repeating: 0, count: 256)
            var peer = sockaddr_un()
            var length = socklen_t(MemoryLayout<sockaddr_un>.size)
            func exchange() -> Int {
                length = socklen_t(MemoryLayout<sockaddr_un>.size)
                return withUnsafeMutablePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(socket, &bytes, bytes.count, 0, $0, &length)
                    }
                }
            }
            func send(_ text: String) {
                _ = withUnsafePointer(to: &peer) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(socket, text, text.utf8.count, 0, $0, length)
                    }
                }
            }
            var answerLength: socklen_t = 0
            while true {
                let count = exchange()
                guard count > 0 else { break }
                answerLength = length
                let command = String(decoding: bytes[..<count], as: UTF8.self)
                commands.append(command)
                send(command == "STATUS" ? status : "OK\n")
            }
            length = answerLength
            for event in events { send(event) }
            return commands
        }
    }

    private static let connected = "bssid=AA:bb:cc:00:11:22\nfreq=2412\nssid=North\\x20Hall\nwpa_state=COMPLETED\n"

    @Test func asksOnceAndAfterEachEvent() throws {
        let supplicant = try Supplicant()
        let watch = SupplicantWatch(folder: supplicant.folder)
        watch.process(at: .zero)
        #expect(supplicant.serve("wpa_state=SCANNING\n") == ["ATTACH", "STATUS"])
        watch.process(at: .zero)
        #expect(watch.association == nil)
        _ = supplicant.serve("", events: ["<3>CTRL-EVENT-SCAN-STARTED "])
        watch.process(at: .zero)
        #expect(supplicant.serve("").isEmpty)
        watch.linksChanged(at: .zero)
        #expect(supplicant.serve(Self.connected, events: ["<3>CTRL-EVENT-CONNECTED - Connection"]) == ["STATUS"])
        watch.process(at: .zero)
        #expect(supplicant.serve(Self.connected) == ["STATUS"])
        #expect(watch.association == WiFiAssociation(ssid: Array("North Hall".utf8), bssid: "aa:bb:cc:00:11:22"))
        #expect(watch.nextDeadline(at: .zero) == nil)
    }

    @Test func wiFiDirectIsNotTheNetwork() throws {
        let supplicant = try Supplicant()
        let other = supplicant.folder + "/p2p-dev-wlan0"
        close(creat(other, 0o600))
        defer { unlink(other) }
        let watch = SupplicantWatch(folder: supplicant.folder)
        watch.process(at: .zero)
        #expect(supplicant.serve(Self.connected) == ["ATTACH", "STATUS"])
    }

    @Test func anEndIsTriedAgainLater() throws {
        var supplicant: Supplicant? = try Supplicant()
        let folder = try #require(supplicant?.folder)
        let watch = SupplicantWatch(folder: folder)
        watch.process(at: .zero)
        _ = supplicant?.serve(Self.connected)
        watch.process(at: .zero)
        #expect(watch.association != nil)
        supplicant = nil
        watch.linksChanged(at: .zero)
        #expect(watch.association == nil && watch.descriptor == nil)
        let fifth: EventTime = .zero + .seconds(5)
        var deadlines: [EventTime?] = [watch.nextDeadline(at: .zero)]
        watch.process(at: fifth)
        deadlines.append(watch.nextDeadline(at: .zero))
        #expect(deadlines == [fifth, fifth + .seconds(10)])
    }

    @Test(arguments: [
        "", "=", "ssid=a\nbssid=b\n", "wpa_state=COMPLETED\nbssid=b\n", "wpa_state=COMPLETED\nssid=\nbssid=b\n",
        "wpa_state=COMPLETED\nssid=\(String(repeating: "x", count: 33))\nbssid=b\n", "wpa_state=COMPLETED\nssid=\\",
    ])
    func noAssociation(reply: String) {
        #expect(SupplicantWatch.association(in: Array(reply.utf8)) == nil)
    }

    @Test func namesMayHaveAnyBytes() {
        let reply = "wpa_state=COMPLETED\nssid=a\\\"\\\\\\n\\xc3\\xa9\\xzz=\\e\nbssid=B\n"
        let ssid = SupplicantWatch.association(in: Array(reply.utf8))?.ssid
        #expect(ssid == "a\"\\\né" + "zz=\u{1B}")
    }
}
