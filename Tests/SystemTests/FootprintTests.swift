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

    /// Code of the start is not kept, and libgps is there for gpsd alone.
    @Test(.enabled(if: geteuid() == 0, "the daemon shows its maps to root alone"), arguments: ["tcp", "gpsd"])
    func onlyWhatIsUsedIsInMemory(kind: String) throws {
        let rig = try Rig()
        let server = try LocalServer()
        try rig.configure(source: "kind = \"\(kind)\"\nhost = \"127.0.0.1\"\nport = \(server.port)")
        let daemon = try rig.startDaemon()
        try server.accept()
        let names = try libraries(of: daemon.processID).keys
        #expect(names.contains { $0.hasPrefix("libcurl") })
        #expect(names.contains { $0.hasPrefix("libgps.so.") } == (kind == "gpsd"), "\(names)")
        // Whatever libcurl brings for protocols that are not used here was run once, to initialise itself.
        let unused = try eventually(within: 15) { () -> Int? in
            let count = try libraries(of: daemon.processID).count { $0.value == 0 }
            return count >= 3 ? count : nil
        }
        #expect(unused != nil)
        try daemon.stop()
    }
}
