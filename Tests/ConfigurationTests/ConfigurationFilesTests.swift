import ConfigurationTestSupport
import Glibc
import TestSupport
import Testing

@testable import Configuration

@Suite struct ConfigurationFilesTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/waypost.toml" }

    init() throws { directory = try TemporaryDirectory() }

    private func report() -> [String] {
        do throws(ConfigurationProblems) {
            _ = try AgentConfig.load(path: path, environment: testEnvironment())
            return []
        } catch {
            return error.problems.map { $0.description.replacing(directory.path + "/", with: "") }
        }
    }

    @Test func missingFileIsOneClearProblem() {
        #expect(
            report() == [
                "waypost.toml: found no such file, expected the configuration (name another one with --config)"
            ])
    }

    @Test func directoryIsOneClearProblem() throws {
        try directory.makeDirectory("waypost.toml")
        #expect(report() == ["waypost.toml: found a directory, expected a file"])
    }

    @Test func pipeDoesNotHang() throws {
        #expect(mkfifo(path, 0o600) == 0)
        #expect(report() == ["waypost.toml: found a device or pipe, expected a file"])
    }

    /// A device may act when it is opened: a line drops its modem signals, a watchdog begins to count.
    @Test func nothingButARegularFileIsOpened() throws {
        // Opening its other end fails before that is unlocked.
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        var number: UInt32 = 0
        let tiocgptn: UInt = 0x8004_5430
        try #require(terminal >= 0 && ioctl(terminal, tiocgptn, &number) == 0)
        defer { close(terminal) }
        let line = "/dev/pts/\(number)"
        let failures: [Secret.Reference] = [.file(line), .file(directory.path)]
        for reference in failures {
            guard case .failure(let mistake) = Secret.value(of: reference, testEnvironment()) else {
                Issue.record("\(reference) was read")
                continue
            }
            #expect(mistake.found?.contains("not a regular file") == true)
        }
        #expect(symlink(line, path) == 0)
        #expect(report() == ["waypost.toml: found a device or pipe, expected a file"])
    }

    @Test func hugeFileIsRefused() throws {
        try directory.write("waypost.toml", String(repeating: "#", count: 1 << 20) + "#")
        #expect(report() == ["waypost.toml: found more than 1 MiB, expected a configuration"])
    }

    @Test func soAreDropInsThatAreHugeTogether() throws {
        try directory.write("waypost.toml", smallest)
        try directory.makeDirectory("waypost.d")
        for name in ["a", "b", "c"] {
            try directory.write("waypost.d/\(name).toml", String(repeating: "#", count: 1 << 20))
        }
        #expect(report() == ["waypost.d/b.toml: found more than 2 MiB with the files before it, expected less"])
    }

    /// A line of its own could say that a file is valid, or be of another severity in the journal.
    @Test func aProblemIsOneLineWhateverANameIs() throws {
        try directory.write("waypost.toml", "\"\\n<0>x: valid\" = 1\n" + smallest)
        let found = report()
        #expect(found.count == 1 && found[0].contains(#"\x0a<0>x: valid"#) && !found[0].contains("\n"), "\(found)")
    }

    @Test func dropInsAreMergedInTheOrderOfTheirNames() throws {
        try directory.write(
            "waypost.toml", smallest + upload + "name = \"a\"\n[tracking]\nheartbeat = \"1m\"\nring = \"1m\"")
        try directory.makeDirectory("waypost.d")
        try directory.write("waypost.d/20-late.toml", "[tracking]\nheartbeat = \"3m\"\n")
        try directory.write(
            "waypost.d/10-early.toml",
            "[tracking]\nheartbeat = \"2m\"\n[[endpoint]]\nname = \"b\"\nbase_url = \"https://b.example\"\n")
        try directory.write("waypost.d/30-off.toml.bak", "nonsense")
        let loaded = try AgentConfig.load(path: path, environment: testEnvironment())
        #expect(loaded.config.tracking.motion.heartbeat == .seconds(180))
        #expect(loaded.config.tracking.motion.ring == .seconds(60))
        #expect(loaded.config.endpoints.map(\.settings.name) == ["a", "b"])
        #expect(loaded.files.count == 3)
        #expect(loaded.effective.description.contains("waypost.d/20-late.toml:2\n"))
    }

    @Test func eachProblemNamesItsFile() throws {
        try directory.write("waypost.toml", smallest + upload + "[tracking]\nringg = 1")
        try directory.makeDirectory("waypost.d")
        try directory.write("waypost.d/a.toml", "\n[log]\n  level = 5")
        let found = report().map { String($0.prefix { $0 != " " }) }
        #expect(found == ["waypost.toml:7:1:", "waypost.d/a.toml:3:11:"])
    }

    @Test func syntaxErrorsOfAllFilesAreReported() throws {
        try directory.write("waypost.toml", "a = ")
        try directory.makeDirectory("waypost.d")
        try directory.write("waypost.d/a.toml", "[")
        #expect(report().count == 2)
    }
}

@Suite struct TOMLNodeTests {
    /// Keys and values with their places, one line each.
    private func outline(_ table: TOMLTable, _ indent: String = "") -> [String] {
        table.entries.flatMap { entry in
            let place = "\(entry.keyPosition.line):\(entry.keyPosition.column)"
            let value = "\(entry.node.position.line):\(entry.node.position.column)"
            let head = "\(indent)\(entry.key) @\(place) = \(entry.node.description) @\(value)"
            if case .table(let inner) = entry.node.value { return [head] + outline(inner, indent + "  ") }
            return [head]
        }
    }

    @Test func keepsTheWrittenOrderAndEveryPlace() throws {
        let text = "z = 1\n\"ä\" = 'x'\n[t]\n\tb.c = true\n  a = [1,\n2]\n\"q r\" = { y = 0.5, x = 1979-05-27 }\n"
        #expect(
            outline(try TOMLTable.parse(Array(text.utf8), file: "f")) == [
                "z @1:1 = 1 @1:5", "ä @2:1 = \"x\" @2:7", "t @3:2 = a table @3:1", "  b @4:2 = a table @4:2",
                "    c @4:4 = true @4:8", "  a @5:3 = an array @5:7", "  q r @7:1 = a table @7:9",
                "    y @7:11 = 0.5 @7:15", "    x @7:20 = a date or time @7:24",
            ])
    }

    @Test(
        arguments: [
            "a" + String(repeating: ".a", count: 300_000) + " = 1",
            "[" + String(repeating: "a.", count: 300_000) + "a]",
            "a = " + String(repeating: "[", count: 300_000),
            "a = " + String(repeating: "{a=", count: 300_000),
            "a = " + String(repeating: "{a.a.a.a.a.a.a.a.a.a.a.a=", count: 40_000),
        ])
    func deepNestingIsRefusedInsteadOfRunningOutOfStack(text: String) {
        #expect(throws: ConfigurationProblems.self) { try TOMLTable.parse(Array(text.utf8), file: "f") }
    }

    @Test func dotsInCommentsStringsAndNumbersAreNoKeys() throws {
        let dots = String(repeating: ".", count: 100)
        let text =
            "# \(dots)\na = \"\(dots)\"\nb = '''\n\(dots)'''\nc = [\(String(repeating: "1.5, ", count: 100))]\n"
            + "d = \"\\\"\(dots)\" # \(dots)\ne = \"\"\"\(dots)\"\"\"\n"
        #expect(try TOMLTable.parse(Array(text.utf8), file: "f").entries.count == 5)
    }

    /// toml++ 3.3 asserts, or runs into undefined behaviour, on each of these.
    @Test(arguments: ["[[{", "é = 1", "a = 1 é", "[é]"])
    func strayCharactersAreSyntaxErrors(text: String) {
        #expect(throws: ConfigurationProblems.self) { try TOMLTable.parse(Array(text.utf8), file: "f") }
    }

    @Test func textGoesOnBehindABackslash() throws {
        let table = try TOMLTable.parse(Array("a = \"\"\"x\\\n  é ü\"\"\" # ä".utf8), file: "f")
        #expect(table.entries.first?.node.description == "\"xé ü\"")
    }

    @Test func anyBytesGiveATableOrAProblem() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let pieces: [String] = [
            "[", "]", "[[", "{", "}", "=", "\"", "'", "\"\"\"", ".", ",", "\n", "#", "a", "source", "1", "\\u", "\u{0}",
            "é",
        ]
        var bad: [[UInt8]] = []
        for _ in 0..<250 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<60, using: &random) {
                if Int.random(in: 0..<20, using: &random) == 0 {
                    bytes.append(UInt8.random(in: 0...255, using: &random))
                } else {
                    bytes += Array(pieces.randomElement(using: &random)!.utf8)
                }
            }
            do throws(ConfigurationProblems) {
                _ = try AgentConfig.parse([("f", bytes)], environment: testEnvironment())
            } catch {
                let arePlaced = error.problems.allSatisfy { ($0.position?.line ?? 0) >= 1 }
                if error.problems.isEmpty || !arePlaced { bad.append(bytes) }
            }
        }
        #expect(bad == [], "seed \(seed)")
    }
}
