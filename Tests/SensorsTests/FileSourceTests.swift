import Glibc
import Testing
import WaypostCore
import WaypostNMEA

@testable import Sensors

@Suite struct FileSourceTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func loop(
        _ path: String, follow: Bool = false, playback: FileSettings.Playback = .maximum, startAt: FilePosition? = nil
    ) -> TestLoop {
        TestLoop(FileSource(settings: FileSettings(path: path, follow: follow, playback: playback), startAt: startAt))
    }

    /// A log of which the end is reached.
    private func followed(_ path: String, _ pollsOnly: Bool) -> TestLoop {
        let source = FileSource(settings: FileSettings(path: path, follow: true))
        source.pollsOnly = pollsOnly
        let loop = TestLoop(source)
        loop.start()
        loop.reach { loop.caughtUp }
        return loop
    }

    @Test func doesNotSleep() throws {
        let loop = loop(try folder.write(Receiver.log(0..<5), to: "log"))
        loop.start()
        #expect(!loop.setAsleep(true))
        loop.pass(.seconds(1))
        #expect(loop.seconds == [0, 1, 2, 3, 4])
    }

    @Test func readsTheWholeLogOnItsOwnClock() throws {
        let path = try folder.write("# receiver: none\n" + Receiver.log(0..<1000), to: "log")
        let loop = loop(path)
        loop.start()
        loop.reach { loop.states.last == .ended }
        #expect(loop.seconds == Array(0..<1000))
        #expect(loop.states == [.opening, .receiving, .ended])
        #expect(loop.clocks == loop.fixes.map { .log(EventTime(nanoseconds: $0.time!.milliseconds * 1_000_000)) })
        #expect(loop.fixes.map(\.at) == loop.clocks.map { if case .log(let at) = $0 { at } else { .zero } })
        #expect(loop.source.nextDeadline == nil)
        #expect(loop.source.counters.fixes == 1000)
    }

    @Test func restartBehindAnyEpochGivesExactlyTheRest() throws {
        let path = try folder.write(Receiver.log(0..<40), to: "log")
        let whole = loop(path)
        whole.start()
        whole.reach { whole.states.last == .ended }
        let (fixes, positions) = (whole.fixes, whole.positions)
        #expect(positions.count == 40 && whole.seconds == Array(0..<40))
        for (index, position) in positions.enumerated() {
            let source = FileSource(settings: FileSettings(path: path), startAt: position)
            let rest = TestLoop(source)
            rest.start()
            rest.reach { rest.states.last == .ended }
            let isTheRest = rest.fixes[...] == fixes[(index + 1)...] && rest.positions[...] == positions[(index + 1)...]
            #expect(isTheRest && rest.fixes.count == 39 - index, "behind epoch \(index)")
            #expect(source.startedAt == .resumed(offset: position.resume.offset))
        }
    }

    @Test func aPositionOfAnotherOrShorterFileIsRefused() throws {
        let path = try folder.write(Receiver.log(0..<10), to: "log")
        let whole = loop(path)
        whole.start()
        whole.reach { whole.states.last == .ended }
        var other = try #require(whole.positions.last)
        other.inode += 1
        var beyond = try #require(whole.positions.last)
        beyond.resume.offset += 1
        for position in [other, beyond] {
            let source = FileSource(settings: FileSettings(path: path), startAt: position)
            let loop = TestLoop(source)
            loop.start()
            loop.reach { loop.states.last == .ended }
            #expect(loop.seconds == Array(0..<10))
            guard case .positionRejected = source.startedAt else {
                Issue.record("\(String(describing: source.startedAt))")
                continue
            }
        }
    }

    @Test func pausedFromWithinItFinishesTheChunkAndReadsNoFurther() throws {
        let path = try folder.write(Receiver.log(0..<5000), to: "log")
        let loop = loop(path)
        loop.onEvent = { event in
            if case .epoch = event { loop.source.setPaused(true, at: loop.now) }
        }
        loop.start()
        loop.pass(.seconds(1))
        let before = loop.fixes.count
        #expect((1...1000).contains(before))
        #expect(loop.source.nextDeadline == nil)
        loop.pass(.seconds(100))
        #expect(loop.fixes.count == before)
        loop.onEvent = { _ in }
        loop.source.setPaused(false, at: loop.now)
        loop.reach { loop.states.last == .ended }
        #expect(loop.seconds == Array(0..<5000))
    }

    @Test func playsAtTheRecordedPace() throws {
        let path = try folder.write(Receiver.log(0..<5) + Receiver.log(65..<67), to: "log")
        let loop = loop(path, playback: .recorded(factor: 10))
        loop.start()
        let began = loop.now
        var arrivals: [Int64] = []
        loop.onEvent = { if case .epoch = $0 { arrivals.append(loop.now.duration(since: began).milliseconds) } }
        loop.pass(.milliseconds(250))
        #expect(arrivals == [0, 100, 200])
        loop.source.setPaused(true, at: loop.now)
        loop.now = loop.now + .seconds(3)
        loop.source.setPaused(false, at: loop.now)
        loop.pass(.seconds(60))
        #expect(arrivals == [0, 100, 200, 3300, 3400, 9500, 9600])
        #expect(loop.states == [.opening, .receiving, .ended])
    }

    @Test(arguments: ["", "\u{0}\u{1}binary\u{2}", String(repeating: "x", count: 300_000), "$GPRMC,0000"])
    func aLogWithoutSentencesJustEnds(text: String) throws {
        let path = try folder.write(text, to: "log")
        let loop = loop(path)
        loop.start()
        loop.reach { loop.states.last == .ended }
        #expect(loop.states == [.opening, .ended])
        #expect(loop.source.counters.bytes == text.utf8.count)
    }

    @Test func aMissingLogIsWaitedFor() throws {
        let loop = loop(folder.path("log"))
        loop.start()
        #expect(loop.lossReason?.contains("No such file") == true)
        try folder.write(Receiver.log(0..<2), to: "log")
        loop.pass(.seconds(1))
        #expect(loop.seconds == [0, 1])
        #expect(loop.states.last == .ended)
    }

    @Test func aFolderIsNoLog() throws {
        let loop = loop(folder.path)
        loop.start()
        #expect(loop.lossReason?.contains("folder") == true)
    }

    @Test func followedLogGoesOnByTheBootClock() throws {
        let path = try folder.write(Receiver.log(0..<3) + Receiver.rmc(3), to: "log")
        let loop = loop(path, follow: true)
        loop.start()
        loop.reach { loop.caughtUp }
        #expect(loop.seconds == [0, 1, 2])
        // The epoch that is open at the end is closed by silence, not by the end of the file.
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == [0, 1, 2, 3])
        loop.forget()
        for second in 4..<7 {
            loop.pass(.seconds(1))
            try folder.append(Receiver.epoch(second), to: "log")
            loop.takeInput()
        }
        loop.pass(.milliseconds(300))
        #expect(loop.seconds == [4, 5, 6])
        #expect(loop.clocks == loop.fixes.map { .arrival($0.at) })
        loop.pass(.seconds(5))
        #expect(loop.states == [.silent])
        loop.forget()
        loop.pass(.seconds(3600))
        #expect(loop.wakeUps == 0)
        // A place reached while following is one in the file.
        try folder.append(Receiver.epoch(8) + Receiver.epoch(9), to: "log")
        loop.takeInput()
        loop.pass(.milliseconds(300))
        let position = try #require(loop.positions.first)
        let rest = self.loop(path, startAt: position)
        rest.start()
        rest.reach { rest.states.last == .ended }
        #expect(rest.seconds == [9])
    }

    @Test(arguments: [false, true])
    func followsAcrossRotation(pollsOnly: Bool) throws {
        let path = try folder.write(Receiver.log(0..<2), to: "log")
        let loop = followed(path, pollsOnly)
        #expect(rename(path, folder.path("log.1")) == 0)
        // The writer goes on with the old file until it is told, while the new one exists but is empty.
        try folder.write("", to: "log")
        while loop.awaitInput(milliseconds: 100) {}
        loop.pass(.seconds(2))
        try folder.append(Receiver.epoch(2), to: "log.1")
        #expect(loop.awaitInput() != pollsOnly)
        loop.pass(.seconds(2))
        try folder.append(Receiver.epoch(3) + Receiver.rmc(4), to: "log.1")
        try folder.append(Receiver.log(10..<12), to: "log")
        loop.reach { loop.seconds.last == 11 }
        #expect(loop.seconds == [0, 1, 2, 3, 4, 10, 11])
        let inodes = Set(loop.positions.map(\.inode))
        #expect(inodes.count == 2)
        let last = try #require(loop.positions.last)
        #expect(last.resume.offset == Int64(Receiver.log(10..<12).utf8.count))
        try folder.append(Receiver.epoch(12), to: "log")
        loop.reach { loop.seconds.last == 12 }
    }

    @Test(arguments: [false, true])
    func beginsAnewInATruncatedLog(pollsOnly: Bool) throws {
        let path = try folder.write(Receiver.log(0..<3), to: "log")
        let loop = followed(path, pollsOnly)
        loop.pass(.seconds(1))
        try folder.write(Receiver.epoch(5), to: "log")
        loop.reach { loop.seconds.last == 5 }
        #expect(loop.seconds == [0, 1, 2, 5])
        #expect(loop.positions.last?.resume.offset == Int64(Receiver.epoch(5).utf8.count))
    }

    @Test func aPipeIsReadToItsEndAndAFIFOBeyond() throws {
        let path = folder.path("fifo")
        #expect(mkfifo(path, 0o600) == 0)
        let loop = loop(path)
        loop.start()
        loop.pass(.seconds(10))
        #expect(loop.wakeUps == 0)
        for writer in 0..<3 {
            let seconds = (writer * 10)..<(writer * 10 + 3)
            let fd = open(path, O_WRONLY | O_CLOEXEC)
            try writeAll(Receiver.log(seconds), to: fd)
            close(fd)
            loop.reach { loop.seconds.last == seconds.last }
        }
        #expect(loop.seconds == [0, 1, 2, 10, 11, 12, 20, 21, 22])
        #expect(loop.states.map(\.word) == ["opening"] + Array(repeating: ["receiving", "lost"], count: 3).joined())
        #expect(loop.positions.isEmpty)
        loop.forget()
        #expect(!loop.awaitInput(milliseconds: 20))
    }

    @Test func standardInputEnds() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        try writeAll(Receiver.log(0..<5), to: ends[1])
        let loop = TestLoop(FileSource(settings: FileSettings(path: "-"), standardInput: ends[0]))
        loop.start()
        #expect(loop.source.name == "standard input")
        loop.takeInput()
        #expect(loop.seconds == [0, 1, 2, 3])
        // Not made non-blocking: the descriptor is shared with whoever started us.
        #expect(fcntl(ends[0], F_GETFL) & O_NONBLOCK == 0)
        close(ends[1])
        loop.reach { loop.states.last == .ended }
        #expect(loop.seconds == [0, 1, 2, 3, 4])
        #expect(loop.clocks.allSatisfy { if case .log = $0 { true } else { false } })
        close(ends[0])
    }

    @Test func followedPipeIsLiveFromItsFirstByte() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let loop = TestLoop(FileSource(settings: FileSettings(path: "-", follow: true), standardInput: ends[0]))
        loop.start()
        #expect(loop.caughtUp)
        try writeAll(Receiver.epoch(0), to: ends[1])
        loop.takeInput()
        loop.pass(.milliseconds(300))
        #expect(loop.clocks == [.arrival(loop.now - .milliseconds(300))])
        close(ends[1])
        loop.reach { loop.states.last == .ended }
        close(ends[0])
    }
}

extension TestLoop {
    var caughtUp: Bool { events.contains { if case .caughtUp = $0 { true } else { false } } }
}
