import Glibc
import Testing
import WaypostCore

@testable import Sensors

@Suite struct SerialSourceTests {
    private let s9600 = LineSpeed(baud: 9600)!
    private let s4800 = LineSpeed(baud: 4800)!

    private func loop(
        _ path: String, speed: SerialSettings.Speed = .fixed(LineSpeed(baud: 9600)!), remembered: LineSpeed? = nil
    ) -> TestLoop {
        TestLoop(SerialSource(settings: .alone(path, speed: speed, rememberedSpeed: remembered)))
    }

    private func started() throws -> (line: PseudoTerminal, loop: TestLoop) {
        let line = try PseudoTerminal()
        let loop = loop(line.path)
        loop.start()
        return (line, loop)
    }

    @Test func handsOverFixesStampedAtTheirFirstByte() throws {
        let (line, loop) = try started()
        #expect(loop.states == [.opening])
        let began = loop.now
        try loop.drive(line, 0..<3)
        let arrivals: [EventTime] = [began, began + .seconds(1), began + .seconds(2)]
        #expect(loop.seconds == [0, 1, 2] && loop.source.counters.fixes == 3)
        #expect(loop.fixes.map(\.at) == arrivals && loop.clocks == arrivals.map { .arrival($0) })
        #expect(loop.positions.isEmpty && loop.states == [.opening, .receiving])
        #expect(loop.source.name == "serial \(line.path)")
    }

    @Test func setsTheLineRawAndLeavesItsControlLinesAlone() throws {
        let line = try PseudoTerminal()
        line.change {
            $0.c_cflag |= tcflag_t(HUPCL | CSTOPB) | CRTSCTS
            $0.c_iflag |= tcflag_t(IXON | IXOFF | ICRNL)
        }
        #expect(line.settings.c_cflag & CRTSCTS != 0 && line.settings.c_cflag & tcflag_t(HUPCL | CSTOPB) != 0)
        let loop = loop(line.path, speed: .fixed(s4800))
        loop.start()
        let settings = line.settings
        let (local, input, control) = (settings.c_lflag, settings.c_iflag, settings.c_cflag)
        let wanted = tcflag_t(CLOCAL | CREAD | CS8)
        let unwanted: tcflag_t = tcflag_t(HUPCL | CSTOPB | PARENB) | CRTSCTS
        #expect(line.speed == s4800)
        #expect(local & tcflag_t(ICANON | ECHO | ISIG) == 0 && input & tcflag_t(ICRNL | IXON | IXOFF) == 0)
        #expect(control & unwanted == 0 && control & wanted == wanted)
    }

    @Test func asleepItLetsTheLineGoAndNothingIsDue() throws {
        let line = try PseudoTerminal()
        let loop = loop(line.path, speed: .auto)
        loop.start()
        try loop.drive(line, 0..<4)
        try line.send(Receiver.rmc(4))
        loop.takeInput()
        loop.forget()
        #expect(loop.setAsleep(true))
        // What had begun of an epoch is all of it.
        #expect(loop.seconds == [4] && loop.states.isEmpty)
        #expect(loop.source.descriptor == nil && loop.source.nextDeadline == nil)
        loop.pass(.seconds(3600))
        #expect(loop.wakeUps == 0 && loop.states.isEmpty)
        #expect(loop.setAsleep(false))
        #expect(loop.states == [.opening])
        // The speed is known: nothing is hunted for.
        try loop.drive(line, 3605..<3608)
        #expect(loop.seconds == [4, 3605, 3606, 3607])
        #expect(loop.states == [.opening, .receiving])
    }

    @Test func aReceiverThatIsMissingIsNotLookedForWhileAsleep() {
        let loop = loop("/nowhere/gps")
        loop.start()
        #expect(loop.setAsleep(true))
        #expect(loop.source.nextDeadline == nil)
        #expect(loop.setAsleep(false))
        #expect(loop.lossReason != nil && loop.source.nextDeadline != nil)
    }

    /// It would stay taken after a kill, for as long as its other end lives, and keep the next daemon out.
    @Test func doesNotTakeAPseudoTerminalForItself() throws {
        let line = try PseudoTerminal()
        #expect(chmod(line.path, 0o666) == 0)
        let loop = loop(line.path)
        loop.start()
        #expect(loop.source.descriptor != nil)
        #expect(try othersCanOpen(line.path))
    }

    /// As a user without privileges, for whom alone an exclusive line is closed.
    private func othersCanOpen(_ path: String) throws -> Bool {
        let shell = ["sh", "-c", ": <>'\(path)'"]
        let words = getuid() == 0 ? ["setpriv", "--reuid=65534", "--clear-groups"] + shell : shell
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var process: pid_t = 0
        try #require(posix_spawnp(&process, words[0], nil, nil, &arguments, environ) == 0)
        var status: Int32 = 0
        try #require(waitpid(process, &status, 0) == process)
        return status == 0
    }

    @Test func unpluggedLineIsClosedAtOnceAndOpenedAgain() throws {
        let folder = try TemporaryFolder()
        let name = folder.path("gps")
        let first = try PseudoTerminal()
        #expect(symlink(first.path, name) == 0)
        let loop = loop(name)
        loop.start()
        try loop.drive(first, 0..<2)
        // Half an epoch and half a sentence: the first is all there will be of it, the second must not run into the next.
        try first.send(Receiver.rmc(2) + "$GPGGA,000002.00,48")
        loop.takeInput()
        first.unplug()
        loop.reach { loop.lossReason != nil }
        #expect(loop.source.descriptor == nil)
        #expect(loop.lossReason?.contains("unplugged") == true)
        #expect(loop.seconds == [0, 1, 2])
        #expect(loop.source.nextDeadline == loop.now + .seconds(1))

        let second = try PseudoTerminal()
        unlink(name)
        #expect(symlink(second.path, name) == 0)
        loop.pass(.seconds(1))
        #expect(loop.source.descriptor != nil)
        try loop.drive(second, 10..<12)
        #expect(loop.seconds == [0, 1, 2, 10, 11])
        #expect(loop.states.map(\.word) == ["opening", "receiving", "lost", "opening", "receiving"])
    }

    @Test func missingDeviceIsTriedAgainEverMoreRarely() throws {
        let folder = try TemporaryFolder()
        let loop = loop(folder.path("gps"))
        loop.start()
        #expect(loop.lossReason?.contains("plugged in") == true)
        var pauses: [Duration] = []
        for _ in 0..<6 {
            let next = try #require(loop.source.nextDeadline)
            pauses.append(next.duration(since: loop.now))
            loop.pass(pauses.last!)
        }
        #expect(pauses == [1, 2, 4, 8, 10, 10].map { .seconds($0) })
        #expect(loop.states.map(\.word) == ["opening", "lost"])
    }

    @Test func hotplugShortensTheWait() throws {
        let folder = try TemporaryFolder()
        let source = SerialSource(settings: .alone(folder.path("gps"), speed: .fixed(s9600)))
        let loop = TestLoop(source)
        loop.start()
        loop.pass(.seconds(7))
        let line = try PseudoTerminal()
        #expect(symlink(line.path, folder.path("gps")) == 0)
        source.retryNow(at: loop.now)
        loop.pass(.zero)
        #expect(source.descriptor != nil)
    }

    @Test func refusesWhatIsNoLineAndSaysWhatItIs() throws {
        let folder = try TemporaryFolder()
        let cases = [
            (try folder.write("", to: "log"), "a regular file"), (folder.path("fifo"), "a named pipe"),
            (folder.path, "folder"), ("/dev/null", "not a terminal"),
        ]
        #expect(mkfifo(folder.path("fifo"), 0o600) == 0)
        for (path, kind) in cases {
            let loop = loop(path)
            loop.start()
            #expect(loop.lossReason?.contains(kind) == true, "\(path): \(loop.lossReason ?? "no reason")")
            #expect(loop.source.descriptor == nil)
        }
    }

    @Test func silentLineIsReportedOnceAndCostsNothing() throws {
        let (line, loop) = try started()
        try loop.drive(line, 0..<2)
        loop.pass(.milliseconds(3999))
        #expect(loop.states.last == .receiving)
        loop.pass(.milliseconds(1))
        #expect(loop.states.last == .silent)
        #expect(loop.source.nextDeadline == nil)
        loop.forget()
        loop.pass(.seconds(3600))
        #expect(loop.wakeUps == 0)
        try loop.drive(line, 3700..<3701)
        #expect(loop.states == [.receiving])
    }

    @Test func slowReceiverIsGivenThreeOfItsIntervals() throws {
        let (line, loop) = try started()
        for second in stride(from: 0, to: 50, by: 10) {
            try line.send(Receiver.epoch(second))
            loop.takeInput()
            loop.pass(.seconds(10))
        }
        loop.forget()
        loop.pass(.seconds(19))
        #expect(loop.states.isEmpty)
        loop.pass(.seconds(1))
        #expect(loop.states == [.silent])
    }

    @Test func bytesWithoutSentencesAreToldApartFromSilence() throws {
        let (line, loop) = try started()
        for _ in 0..<6 {
            try line.send("\u{1}\u{2}junk")
            loop.takeInput()
            loop.pass(.seconds(1))
        }
        #expect(loop.states == [.opening, .unreadable])
        loop.pass(.seconds(10))
        #expect(loop.states == [.opening, .unreadable, .silent])
        #expect(loop.source.nextDeadline == nil)
        try line.send("junk")
        loop.takeInput()
        loop.pass(.seconds(5))
        #expect(loop.states.last == .silent)
        try loop.drive(line, 100..<101)
        #expect(loop.states.last == .receiving)
    }

    @Test func restsWithinAnEpochOnceItsRhythmIsKnown() throws {
        let (line, loop) = try started()
        try loop.drive(line, 0..<8)
        loop.forget()
        for second in 8..<18 {
            let began = loop.now
            try line.send(Receiver.rmc(second))
            loop.takeInput()
            #expect(loop.source.descriptor == nil)
            #expect(loop.source.nextDeadline == began + .milliseconds(150))
            try line.send(Receiver.gga(second))
            loop.pass(.milliseconds(150))
            // The last sentence of the cycle is known: nothing to wait for.
            #expect(loop.seconds.last == second)
            #expect(loop.source.descriptor != nil)
            loop.now = began + .seconds(1)
        }
        #expect(loop.seconds == Array(8..<18))
        #expect(loop.wakeUps == 20)
    }

    static let rests: [(Int, Int, Int64)] = [
        (9600, 200, 100), (460_800, 1000, 44), (115_200, 1000, 150), (115_200, 5000, 150),
    ]

    @Test(arguments: rests)
    func restIsNeverLongerThanTheReceiverOrTheBufferAllows(baud: Int, intervalMs: Int, restMs: Int64) throws {
        let line = try PseudoTerminal()
        let loop = loop(line.path, speed: .fixed(try #require(LineSpeed(baud: baud))))
        loop.start()
        for index in 0..<8 {
            try line.send(Receiver.epoch(milliseconds: index * intervalMs))
            loop.takeInput()
            loop.pass(.milliseconds(intervalMs))
        }
        try line.send(Receiver.rmc(milliseconds: 8 * intervalMs))
        loop.takeInput()
        let rest = try #require(loop.source.nextDeadline).duration(since: loop.now)
        #expect(rest.milliseconds == restMs)
    }

    @Test func mayBeAskedAndClosedFromWithinADelivery() throws {
        let (line, loop) = try started()
        var fixes: [Int] = []
        loop.onEvent = { event in
            guard case .epoch = event else { return }
            fixes.append(loop.source.counters.fixes)
            _ = (loop.source.nextDeadline, loop.source.descriptor)
            loop.source.close()
        }
        try line.send(Receiver.log(0..<3))
        loop.takeInput()
        #expect(fixes == [2, 2])
        #expect(loop.source.descriptor == nil)
        #expect(loop.source.nextDeadline == nil)
    }

    @Test func burstThatEndsItsEpochCostsOneWakeUp() throws {
        let (line, loop) = try started()
        try loop.drive(line, 0..<8)
        loop.forget()
        try loop.drive(line, 8..<18)
        #expect(loop.seconds == Array(8..<18))
        #expect(loop.wakeUps == 10)
    }
}

@Suite struct BaudHuntTests {
    private let speeds = [9600, 115_200, 38_400, 4800, 57_600, 19_200, 230_400, 460_800].compactMap {
        LineSpeed(baud: $0)
    }

    @Test func triesRememberedThenCurrentThenTheUsualOnes() {
        var now = EventTime.zero
        var hunt = BaudHunt(remembered: LineSpeed(baud: 4800), current: LineSpeed(baud: 38_400), at: now)
        var order = [hunt.speed.baud]
        for _ in 0..<7 {
            now = now + .seconds(3)
            order.append(hunt.deadlineReached(at: now)?.baud ?? 0)
        }
        #expect(order == [4800, 38_400, 9600, 115_200, 57_600, 19_200, 230_400, 460_800])
    }

    @Test func silentReceiverIsNotHuntedForEver() {
        var now = EventTime.zero
        var hunt = BaudHunt(remembered: nil, current: nil, at: now)
        for _ in speeds {
            now = now + .seconds(3)
            _ = hunt.deadlineReached(at: now)
        }
        #expect(hunt.speed == speeds[0])
        #expect(hunt.nextDeadline == nil)
        now = now + .seconds(100)
        let accepted = hunt.received(sentences: 0, at: now)
        #expect(!accepted)
        #expect(hunt.nextDeadline == now + .seconds(3))
        let next = hunt.deadlineReached(at: now + .seconds(3))
        #expect(next == speeds[1])
    }

    @Test func goesRoundAgainWhileBytesCome() {
        var now = EventTime.zero
        var hunt = BaudHunt(remembered: nil, current: nil, at: now)
        for _ in speeds {
            let accepted = hunt.received(sentences: 0, at: now)
            #expect(!accepted)
            now = now + .seconds(3)
            _ = hunt.deadlineReached(at: now)
        }
        #expect(hunt.speed == speeds[0])
        #expect(hunt.nextDeadline == now + .seconds(3))
    }

    @Test func acceptsAfterThreeGoodSentencesAtOneSpeed() {
        var hunt = BaudHunt(remembered: nil, current: nil, at: .zero)
        var verdicts = [hunt.received(sentences: 2, at: .zero)]
        _ = hunt.deadlineReached(at: .zero + .seconds(3))
        verdicts.append(hunt.received(sentences: 2, at: .zero + .seconds(3)))
        verdicts.append(hunt.received(sentences: 1, at: .zero + .seconds(4)))
        #expect(verdicts == [false, false, true])
    }

    /// A receiver at 38 400 baud: at every other speed of the line its bytes are noise.
    @Test func findsTheSpeedOfTheReceiverOnTheLine() throws {
        let line = try PseudoTerminal()
        line.set(LineSpeed(baud: 4800)!)
        let source = SerialSource(settings: .alone(line.path))
        let loop = TestLoop(source)
        loop.start()
        var tried: [Int] = []
        for second in 0..<60 where source.foundSpeed == nil {
            let speed = try #require(line.speed).baud
            if tried.last != speed { tried.append(speed) }
            try line.send(speed == 38_400 ? Receiver.epoch(second) : "\u{3}\u{7F}x")
            loop.awaitInput()
            loop.pass(.seconds(1))
        }
        #expect(tried == [4800, 9600, 115_200, 38_400])
        #expect(source.foundSpeed?.baud == 38_400)
        #expect(loop.states.map(\.word) == ["opening", "unreadable", "receiving"])
        loop.forget()
        // Found is found: no more timers of the hunt.
        try loop.drive(line, 60..<70)
        #expect(line.speed?.baud == 38_400)
    }

    @Test func huntsAgainWhenTheReceiverChangesItsSpeed() throws {
        let line = try PseudoTerminal()
        let source = SerialSource(settings: .alone(line.path, rememberedSpeed: LineSpeed(baud: 9600)))
        let loop = TestLoop(source)
        loop.start()
        try loop.drive(line, 0..<3)
        #expect(source.foundSpeed?.baud == 9600)
        for second in 3..<20 where source.foundSpeed?.baud == 9600 {
            try line.send(line.speed?.baud == 115_200 ? Receiver.epoch(second) : "\u{3}\u{7F}x")
            loop.awaitInput()
            loop.pass(.seconds(1))
        }
        #expect(source.foundSpeed?.baud == 115_200)
        #expect(loop.states.last == .receiving)
    }

    @Test func unknownSpeedsAreNoSpeeds() {
        #expect(LineSpeed(baud: 12_345) == nil)
        for baud in LineSpeed.supported { #expect(LineSpeed(baud: baud)?.baud == baud) }
    }
}

extension TestLoop {
    /// Sends the epochs of a stretch, each in one piece, one second apart.
    func drive(_ line: PseudoTerminal, _ seconds: Range<Int>) throws {
        for second in seconds {
            try line.send(Receiver.epoch(second))
            takeInput()
            pass(.seconds(1))
        }
    }
}

extension SerialSettings {
    /// On a host where gpsd is never asked.
    static func alone(_ path: String, speed: Speed = .auto, rememberedSpeed: LineSpeed? = nil) -> SerialSettings {
        var settings = SerialSettings(device: .path(path), speed: speed, rememberedSpeed: rememberedSpeed)
        settings.gpsd.socket = "/"
        settings.gpsd.services = []
        return settings
    }
}

extension SourceState {
    /// Without the reason.
    var word: String {
        switch self {
        case .opening: "opening"
        case .receiving: "receiving"
        case .silent: "silent"
        case .unreadable: "unreadable"
        case .lost: "lost"
        case .ended: "ended"
        }
    }
}
