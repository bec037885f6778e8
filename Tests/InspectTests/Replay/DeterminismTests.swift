import CLinux
import Configuration
import Glibc
import Sensors
import TestSupport
import Testing
import WaypostCore
import WaypostHost
import WaypostNMEA
import WaypostTracking

@testable import Inspect

/// The same bytes give the same decisions: whole or in pieces, now or later, in replay or through the source of the daemon.
@Suite struct DeterminismTests {
    /// Everything that can happen on the road, some of it twice.
    private static let tracking: Tracker.Settings = {
        var settings = Tracker.Settings(trackables: [
            Trackable(id: "car"),
            Trackable(
                id: "load",
                constraints: .default(
                    DefaultResolutionConstraints(
                        resolutions: .init(
                            farWithoutSubscriber: Resolution(priority: .low, intervalMs: 20_000, displacement: 200))))),
        ])
        settings.motion.stopTimeout = .seconds(60)
        settings.motion.heartbeat = .seconds(120)
        settings.receiver.sleep = true
        settings.receiver.settle = .seconds(60)
        settings.tripSummary = true
        settings.keepEngineFixes = true
        return settings
    }()

    private static let cases: [(log: String, pieces: [Int])] = Golden.logs.map { name in
        let isLong = ["demo-city-drive", "simulated-parked-drift", "two-second-epochs-over-midnight"].contains(name)
        return (name, isLong ? [61, 4096, 65_536] : [1, 61, 4096])
    }

    @Test(arguments: cases)
    func piecesOfAnyLengthGiveTheSameDecisions(log: String, pieces: [Int]) throws {
        let path = Golden(name: log, form: .replay).log
        let whole = try replayed(path)
        for piece in pieces { #expect(try played(path, inPiecesOf: piece) == whole, "pieces of \(piece)") }
    }

    private func replayed(_ path: String) throws -> String {
        try printed {
            try ReplayLog(ReplaySettings(decoding: NMEADecoder.Settings(), tracking: Self.tracking))
                .run(logs: [path], format: .jsonl, to: $0)
        }
    }

    /// The log through a file source that gets this number of bytes at a time, and through the tracker as the daemon drives it.
    private func played(_ path: String, inPiecesOf length: Int) throws -> String {
        var bytes: [UInt8] = []
        try LogFile.read(path) { chunk in
            chunk.withUnsafeBytes { bytes.append(contentsOf: $0) }
            return true
        }
        var ends: [Int32] = [0, 0]
        // A program that another test starts must not keep them open.
        try #require(waypost_pipe(&ends) == 0)
        defer { for end in ends where end >= 0 { close(end) } }
        let source = FileSource(settings: FileSettings(path: "-"), standardInput: ends[0])
        return try printed { descriptor in
            let printer = try ReplayPrinter(
                format: .jsonl, namesTrackables: true, story: ReplayStory(), descriptor: descriptor, folder: "/tmp")
            var run = TrackerRun(tracker: Tracker(settings: Self.tracking, restored: nil))
            var isEnded = false
            // The times of the loop that reads mean nothing to a log.
            var now = EventTime(nanoseconds: 77_000_000_000)
            func take(_ event: SourceEvent) {
                switch event {
                case .epoch(let epoch, .log(let at), _):
                    printer.decoded(epoch, at: at)
                    guard at > .zero else { return }
                    run.epochReceived(epoch, at: at) { printer.effect($0, decided: $1) }
                case .stateChanged(.ended): isEnded = true
                case .epoch, .stateChanged, .caughtUp, .notice: break
                }
            }
            func turn(waitingFor milliseconds: Int32 = 0) {
                now = now + .milliseconds(13)
                var wait = pollfd(fd: source.descriptor ?? -1, events: Int16(POLLIN), revents: 0)
                if poll(&wait, 1, milliseconds) == 1 { source.descriptorReady(at: now, take) }
                while let due = source.nextDeadline, due <= now { source.deadlineReached(at: now, take) }
            }
            source.start(at: now, take)
            var position = 0
            while position < bytes.count {
                let count = min(length, bytes.count - position)
                let written = bytes[position...].withUnsafeBytes { write(ends[1], $0.baseAddress, count) }
                try #require(written > 0 || errno == EAGAIN)
                position += max(0, written)
                turn()
            }
            close(ends[1])
            ends[1] = -1
            // A process that another test has just forked holds the end of the pipe until it runs its program.
            for _ in 0..<1000 where !isEnded { turn(waitingFor: 10) }
            #expect(isEnded)
            printer.end(source.counters, isNMEA: true, run.tracker)
        }
    }
}
