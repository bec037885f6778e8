import Doctor
import Foundation
import Protocols
import TestSupport
import Testing
import WaypostCore

@Suite("Output of doctor") struct ExaminationTests {
    /// A host on which a lot is wrong at once.
    private static var poorHost: Scene {
        var scene = Scene.pi
        scene.source = "kind = \"serial\"\npath = \"/dev/ttyACM0\""
        scene.files["/proc/700/comm"] = "gpsd\n"
        scene.links["/proc/700/fd/5"] = "/dev/ttyACM0"
        scene.files["/proc/self/mountinfo"] = "24 1 0:9 / / rw - overlay o rw\n"
        scene.isClockSynchronised = false
        scene.status.source.state = "unreadable"
        scene.reaches?[0].failure = .init(
            layer: "dns", message: "fleet.example:443: the name fleet.example cannot be resolved")
        return scene
    }

    @Test func aGoodHostFitsOnAPage() throws {
        let lines = try Scene.pi.examined().lines()
        #expect(lines.first == "waypost doctor 1.2.3")
        #expect(lines.last == "verdict: 28 of 28 checks are good")
        #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 }, "\(lines)")
    }

    /// Commands are to be copied and not broken; all else has 80 columns.
    @Test func aPoorHostFitsOnAPageToo() throws {
        let examination = try Self.poorHost.examined()
        let lines = examination.lines()
        #expect(lines.count <= 40 && lines.allSatisfy { $0.count <= 80 || $0.hasPrefix("    > ") }, "\(lines)")
        #expect(lines.last == "verdict: broken: 7 other reader, and 4 more; 1 not known", "\(lines)")
        #expect(lines.contains("skipped because of 7: 13 sentences, 15 fix"), "\(lines)")
        #expect(examination.exitStatus == 1)
    }

    /// What is to be pasted keeps its line; a comment that has no room beside it stands below.
    @Test func wrapsForTheTerminalAndLeavesCommandsWhole() throws {
        var scene = Self.poorHost
        scene.unit?["DeviceAllow"] = "char-188 rw"
        let examination = try scene.examined()
        for columns in [40, 60, 80, 200] {
            let lines = examination.lines(listsAll: true, columns: columns)
            let isWord = { (line: String) in line.trimmingCharacters(in: .whitespaces).split(separator: " ").count == 1
            }
            let tooLong = lines.filter { $0.count > columns && !$0.hasPrefix("    > ") && !isWord($0) }
            #expect(tooLong.isEmpty, "\(columns): \(tooLong)")
            let commands = lines.filter { $0.hasPrefix("    > ") }.map { $0.dropFirst(6) }
            for advice in examination.results.compactMap(\.finding.advice) {
                let command = advice.split(separator: "  # ")[0]
                #expect(commands.contains { $0 == advice || $0 == command }, "\(columns): \(advice)")
            }
        }
        let lines = examination.lines(columns: 60)
        let index = try #require(lines.firstIndex(of: "    > sudo systemctl edit waypost"))
        #expect(lines[index + 1] == "      # [Service] DeviceAllow=char-166 rw")
        #expect(examination.lines(columns: 0) == examination.lines(columns: 40))
    }

    @Test func everyFailureEndsInOneCommand() throws {
        let lines = try Self.poorHost.examined().lines(listsAll: true)
        for (index, line) in lines.enumerated() where line.hasPrefix("broken: ") || line.hasPrefix("degraded: ") {
            guard index + 1 < lines.count else { continue }
            let next = lines[(index + 1)...].first { !$0.hasPrefix("    ") || $0.hasPrefix("    > ") }
            #expect(next?.hasPrefix("    > ") == true, "\(line)")
        }
        for number in 1...28 { #expect(lines.contains { $0.contains(": \(number) ") }, "\(number)") }
    }

    @Test func endsAsStatusDoes() throws {
        #expect(try Scene.pi.examined().exitStatus == 0)
        var scene = Scene.pi
        scene.daemon = .absent
        #expect(try scene.examined().exitStatus == 2)
        scene.daemon = .unreachable("not permitted: use sudo")
        #expect(try scene.examined().exitStatus == 77)
        scene = .pi
        scene.status.version = "0.0.1"
        #expect(try scene.examined().exitStatus == 1)
    }

    @Test func jsonSaysTheSame() throws {
        let examination = try Self.poorHost.examined()
        let json = try #require(JSONReader.read(Array(examination.json.utf8)))
        let words: [String?] = ["verdict", "version"].map { json[$0]?.string }
        #expect(words == [examination.verdict, "1.2.3"] && json["exit_status"]?.integer == 1)
        let checks: [JSONValue] = try #require(json["checks"]?.items)
        let numbers: [Int64] = checks.compactMap { $0["number"]?.integer }
        #expect(numbers == Array(1...28))
        let states: [String] = examination.results.map { $0.finding.state.rawValue }
        #expect(checks.compactMap { $0["state"]?.string } == states)
        #expect(checks[6]["advice"]?.string?.hasPrefix("kind = \"gpsd\"") == true)
        #expect(checks[12]["because_of"]?.integer == 7 && checks[12]["advice"] == nil)
        #expect(json["endpoints"]?.items?.first?["failed"]?.string == "dns")
    }

    @Test func jsonHasTheTimeOfEachLayer() throws {
        var scene = Scene.pi
        scene.reaches?[0].stages = UplinkStages(
            lookup: .microseconds(1260), connect: .milliseconds(20), handshake: .microseconds(40_500),
            firstByte: .milliseconds(30), certificate: .init(from: 1_790_000_000, until: 1_798_761_600))
        scene.reaches?.append(
            .init(
                endpoint: "spare", host: "[::1]", peer: "[::1]:80",
                failure: .init(layer: "connect", message: "refused"), milliseconds: 1))
        let json = try #require(JSONReader.read(Array(try scene.examined().json.utf8)))
        let endpoints = try #require(json["endpoints"]?.items)
        #expect(endpoints.count == 2 && endpoints[0]["name"]?.string == "main")
        #expect(endpoints[0]["lookup_ms"]?.number == 1.3 && endpoints[0]["connect_ms"]?.number == 20)
        #expect(endpoints[0]["tls_ms"]?.number == 40.5 && endpoints[0]["first_byte_ms"]?.number == 30)
        #expect(endpoints[0]["certificate_expires"]?.string == "2027-01-01T00:00:00.000Z")
        #expect(endpoints[0]["failed"] == nil && endpoints[1]["failed"]?.string == "connect")
        #expect(endpoints[1]["server"]?.string == "[::1]:80" && endpoints[1]["connect_ms"] == nil)
    }

    /// Names and contents that steer a terminal, end a line, or would be commands of their own where they are pasted.
    @Test func whatDevicesAndFilesSayStaysText() throws {
        let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}'; reboot; '\u{85}\"$(reboot)`reboot`"
        var scene = Scene.pi
        scene.source = "kind = \"serial\"\npath = \"/dev/ttyACM0\""
        scene.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/serial"] = evil
        scene.files["/proc/700/comm"] = evil
        scene.files["/proc/700/cgroup"] = "0::/\(evil.filter { $0 != "/" }).service\n"
        scene.links["/proc/700/fd/5"] = "/dev/ttyACM0"
        scene.files["/proc/800/comm"] = "ModemManager"
        scene.files["/run/udev/data/c166:0"] = "E:ID_MM_CANDIDATE=1\nE:\nE:=\nE:X=\(evil)\n"
        scene.kernelLog = [.init(at: 1, "claimed by \(evil) brltty")]
        scene.status.version = evil
        scene.status.queue.diskError = evil
        scene.reaches?[0].failure = .init(layer: "tls", message: evil)
        scene.reaches?[0].peer = "\(evil):80"
        scene.files["/etc/group"] = "\(evil.filter { $0 != ":" }):x:\(getegid()):\n"
        scene.files["/proc/500/status"] = "Uid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nGroups:\t991 \n"
        let examination = try scene.examined()
        let lines = examination.lines(listsAll: true)
        let steering = lines.joined().unicodeScalars.filter { $0.value < 0x20 || $0 == "\u{202e}" || $0.value == 0x85 }
        #expect(steering.isEmpty, "\(lines)")
        for line in lines where line.hasPrefix("    > ") {
            let unquoted = line.replacing("\\'", with: "").split(separator: "'", omittingEmptySubsequences: false)
                .enumerated()
                .filter { $0.offset % 2 == 0 }.map(\.element).joined()
            #expect(!unquoted.contains("reboot") && !unquoted.contains("$("), "\(line)")
        }
        #expect(examination.state(8) == .degraded && examination.finding(8)?.advice?.contains("serial") == false)
    }

    @Test func survivesAStatusOfAnyNumbers() throws {
        for number in [Int.max, Int.min, 0, -1] {
            var scene = Scene.pi
            (scene.status.source.checksumErrors, scene.status.source.badBytes) = (number, number)
            (scene.status.source.bytes, scene.status.source.sentences) = (number, number)
            scene.status.source.baud = number
            (scene.status.source.satellitesInView, scene.status.source.satellitesStrong) = (number, number)
            for span in [Double.infinity, -.infinity, .nan, 1e300, -1e300] {
                (scene.status.uptime, scene.status.motion.lastFixAge) = (span, span)
                scene.bytesPerSecond = span
                #expect(try scene.examined().results.count == 28)
            }
        }
    }

    @Test func survivesFilesOfAnyContent() throws {
        for seed in 1...20 {
            var generator = SeededGenerator(seed: UInt64(seed))
            var scene = Scene.pi
            for path in scene.files.keys.sorted() where Int.random(in: 0..<3, using: &generator) == 0 {
                let count = Int.random(in: 0..<200, using: &generator)
                let scalars = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
                scene.files[path] = String(decoding: scalars, as: UTF8.self)
            }
            let examination = try scene.examined()
            #expect(examination.results.count == 28, "seed \(seed)")
        }
        var scene = Scene.pi
        scene.files["/proc/cmdline"] = String(repeating: "console=", count: 100_000)
        scene.files["/run/udev/data/c166:0"] = String(repeating: "E:A=B\n", count: 100_000)
        #expect(try scene.examined().state(10) == .ok)
    }

    /// docs/doctor.md has one row for each check, with its number and name.
    @Test func theManualListsEveryCheck() throws {
        let page = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("docs/doctor.md"), encoding: .utf8)
        let lines: [Substring] = page.split(separator: "\n")
        var rows: [[String]] = []
        for line in lines where line.hasPrefix("| ") {
            let cells: [String] = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            if Int(cells[0]) != nil { rows.append(cells) }
        }
        let names: [String] = Check.all.map { "\($0.number) \($0.name)" }
        #expect(rows.map { "\($0[0]) \($0[1])" } == names)
        #expect(rows.allSatisfy { $0.count == 5 && !$0.contains("") })
        let hidden = lines.first { $0.hasPrefix("Checks without a cause") }
        #expect(hidden?.contains("1, 9, 18 and 19") == true)
    }
}
