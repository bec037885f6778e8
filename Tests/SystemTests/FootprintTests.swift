import Foundation
import TestSupport
import Testing

/// What the running daemon has in memory, by its maps.
@Suite(.waiting) struct FootprintTests {
    /// Foundation takes the first short answer of such a file for its end.
    private func maps(of process: Int32) throws -> String {
        let descriptor = open("/proc/\(process)/smaps", O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += chunk[..<count]
        }
    }

    /// Libraries by file name: KiB of their code that are mapped to memory now.
    private func libraries(of process: Int32) throws -> [String: Int] {
        var found: [String: Int] = [:]
        var current: String?
        for line in try maps(of: process).split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count >= 5, words[0].contains("-") {
                let isCode = words[1].hasPrefix("r-x") && words.count > 5 && words[5].contains(".so")
                current = isCode ? words[5].split(separator: "/").last.map(String.init) : nil
            } else if let current, words.first == "Rss:", words.count > 1 {
                found[current, default: 0] += Int(words[1]) ?? 0
            }
        }
        return found
    }

    private func start(_ rig: Rig, source: String) throws -> RunningProgram {
        try rig.startCollector()
        try rig.configure(source: source)
        return try rig.startDaemon()
    }

    @Test func codeOfTheStartIsNotKept() throws {
        let rig = try Rig()
        let server = try LocalServer()
        let daemon = try start(rig, source: "kind = \"tcp\"\nhost = \"127.0.0.1\"\nport = \(server.port)")
        try server.accept()
        // Whatever libcurl brings for protocols that are not used here was run once, to initialise itself.
        var unused: [String] = []
        for _ in 0..<300 where unused.count < 3 {
            unused = try libraries(of: daemon.processID).filter { $0.value == 0 }.map(\.key)
            usleep(200_000)
        }
        #expect(unused.count >= 3, "\(unused)")
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 60) == 0)
    }

    @Test(arguments: [("tcp", false), ("gpsd", true)])
    func libgpsIsThereForGpsdAlone(kind: String, isWanted: Bool) throws {
        let rig = try Rig()
        let server = try LocalServer()
        let daemon = try start(rig, source: "kind = \"\(kind)\"\nhost = \"127.0.0.1\"\nport = \(server.port)")
        try server.accept()
        #expect(try libraries(of: daemon.processID).keys.contains { $0.hasPrefix("libcurl") })
        #expect(try libraries(of: daemon.processID).keys.contains { $0.hasPrefix("libgps.so.") } == isWanted)
        daemon.kill(SIGTERM)
        #expect(try daemon.exitStatus(within: 60) == 0)
    }
}
