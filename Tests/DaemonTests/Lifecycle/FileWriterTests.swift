import FoundationEssentials
import Glibc
import TestSupport
import Testing
import WaypostHost

@testable import Daemon

@Suite struct FileWriterTests {
    private let directory: TemporaryDirectory
    private let loop: EventLoop
    private let writer: FileWriter

    init() throws {
        directory = try TemporaryDirectory()
        loop = try EventLoop()
        writer = FileWriter(mode: 0o644, isDurable: false, loop: loop)
    }

    private func path(_ name: String) -> String { "\(directory.path)/\(name)" }
    private func isThere(_ name: String) -> Bool { access(path(name), F_OK) == 0 }

    /// Whenever its thread comes to the end of it: before the removal or after.
    @Test(.bug(id: 13), arguments: 0..<50) func whatWasRemovedWhileItWasWrittenDoesNotComeBack(round: Int) throws {
        var ended: [String] = []
        writer.done = { problem, path in if problem == nil { ended.append(path) } }
        writer.write([1], to: path("a"))
        for _ in 0..<round { sched_yield() }
        writer.remove(path("a"))
        try loop.run { !ended.isEmpty }
        #expect(ended == [path("a")] && !isThere("a") && !isThere("a.new"))
    }

    @Test func aVersionThatWaitsIsRemovedAndALaterOneIsWritten() throws {
        var ended: [String] = []
        writer.done = { _, path in ended.append(path) }
        writer.write([1], to: path("a"))
        writer.write([2], to: path("b"))
        writer.remove(path("b"))
        try loop.run { ended == [path("a")] }
        #expect(isThere("a") && !isThere("b"))
        writer.write([1], to: path("a"))
        writer.remove(path("a"))
        writer.write([3], to: path("a"))
        try loop.run { ended.count == 3 }
        #expect(try directory.read("a") == "\u{3}")
        writer.remove(path("a"))
        #expect(!isThere("a"))
    }

    @Test func eachVersionIsReportedWhenItIsThereAndNoEarlier() throws {
        var ended: [String] = []
        for text in ["first", "passed over", "last"] {
            writer.write(Array(text.utf8), to: path("a")) { [directory] problem in
                ended.append("\(text): \(problem ?? (try? directory.read("a")) ?? "nothing")")
            }
        }
        try loop.run { ended.count == 2 }
        #expect(ended == ["first: first", "last: last"])
    }

    @Test func saysOfWhichFileItSpeaks() throws {
        var said: (problem: String?, path: String)?
        writer.done = { said = ($0, $1) }
        writer.write([1], to: path("none/a"))
        try loop.run { said != nil }
        #expect(said?.path == path("none/a") && said?.problem?.contains("No such file") == true)
    }
}
