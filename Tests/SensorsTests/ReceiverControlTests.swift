import Testing
import WaypostCore

@testable import Sensors

/// A receiver at the far end of a pseudo-terminal that is told which rate is wanted.
@Suite struct ReceiverControlTests {
    /// What a receiver makes of a command.
    enum Character: CaseIterable {
        case obeys
        case ignores
        /// Confirms and goes on as before.
        case lies
    }

    /// Speaks PMTK.
    private final class Receiver {
        let line: PseudoTerminal
        let loop: TestLoop
        let character: Character
        var interval = 1000
        private(set) var heard: [String] = []
        private var time = 0

        init(_ character: Character, _ profile: ReceiverProfile = .mtk) throws {
            line = try PseudoTerminal()
            self.character = character
            let speed = try #require(LineSpeed(baud: 9600))
            var settings = SerialSettings.alone(line.path, speed: .fixed(speed))
            settings.receiver = profile
            loop = TestLoop(SerialSource(settings: settings))
            loop.start()
        }

        /// So many epochs, each with the pause before it.
        func tell(_ epochs: Int) throws {
            for _ in 0..<epochs {
                loop.pass(.milliseconds(Int64(interval)))
                time += interval
                listen()
                try line.send(SensorsTests.Receiver.epoch(milliseconds: time))
                loop.takeInput()
                listen()
            }
        }

        private func listen() {
            let text = String(decoding: line.written(), as: UTF8.self)
            for command in text.split(separator: "\r\n") {
                heard.append(String(command))
                guard command.hasPrefix("$PMTK220,"), let digits = command.dropFirst(9).split(separator: "*").first,
                    let asked = Int(digits)
                else { continue }
                if character == .obeys { interval = asked }
                if character == .lies {
                    _ = try? writeAll(SensorsTests.Receiver.sentence("PMTK001,220,3"), to: line.master)
                }
            }
        }
    }

    @Test(arguments: Character.allCases)
    func onlyWhatIsMeasuredCounts(character: Character) throws {
        let receiver = try Receiver(character)
        receiver.loop.setInterval(.seconds(5))
        try receiver.tell(6)
        #expect(receiver.heard == ["$PMTK220,5000*1B"])
        try receiver.tell(5)
        let source = receiver.loop.source
        if character == .obeys {
            #expect(source.rate == ReceiverRate(wanted: 5000, measured: 5000, isHonoured: true))
            #expect(receiver.loop.notices.isEmpty)
        } else {
            #expect(source.rate == ReceiverRate(wanted: 5000, measured: 1000, isHonoured: false))
            #expect(receiver.loop.notices.count == 1)
            #expect(receiver.loop.notices.first?.contains("rate not honoured") == true)
        }
        // Once is enough, also when something else is asked next.
        receiver.loop.setInterval(.seconds(8))
        try receiver.tell(10)
        #expect(receiver.heard.count == 2)
        #expect(receiver.loop.notices.count == (character == .obeys ? 0 : 1))
        // Every fix arrives; tracking thins them.
        #expect(receiver.loop.source.counters.fixes >= 19)
        // A slower receiver is not a silent one.
        #expect(receiver.loop.states == [.opening, .receiving])
    }

    @Test func aReceiverThatKeepsTheRateByItselfIsToldNothing() throws {
        let receiver = try Receiver(.obeys)
        receiver.loop.setInterval(.seconds(1))
        try receiver.tell(10)
        #expect(receiver.heard.isEmpty)
        #expect(receiver.loop.source.rate?.isHonoured == true)
        // Zero is every fix, of which there is one a second.
        receiver.loop.setInterval(.zero)
        try receiver.tell(5)
        #expect(receiver.heard.isEmpty)
        receiver.loop.setInterval(.seconds(2))
        try receiver.tell(1)
        #expect(receiver.heard == ["$PMTK220,2000*1C"])
    }

    @Test func withoutAProfileNothingIsWritten() throws {
        let receiver = try Receiver(.obeys, .none)
        receiver.loop.setInterval(.seconds(5))
        try receiver.tell(10)
        #expect(receiver.heard.isEmpty && receiver.loop.source.rate == nil)
    }

    @Test func wishesThatFollowEachOtherAtOnceEndWithTheLast() throws {
        let receiver = try Receiver(.obeys)
        receiver.loop.setInterval(.seconds(5))
        try receiver.tell(5)
        for seconds in [2, 9, 3] as [Int64] { receiver.loop.setInterval(.seconds(seconds)) }
        receiver.loop.pass(.seconds(3))
        try receiver.tell(4)
        #expect(receiver.heard == ["$PMTK220,5000*1B", "$PMTK220,3000*1D"])
    }

    @Test func commandsOfUbloxAreSpaced() throws {
        let receiver = try Receiver(.ignores, .ublox)
        _ = receiver.line.written()
        receiver.loop.setInterval(.seconds(5))
        try receiver.tell(4)
        // The fourth epoch ends by silence, and with it the third interval.
        receiver.loop.pass(.milliseconds(300))
        #expect(receiver.line.written() == ReceiverProfile.ublox.rateCommands(5000)[0])
        receiver.loop.pass(.milliseconds(199))
        #expect(receiver.line.written().isEmpty)
        receiver.loop.pass(.milliseconds(1))
        #expect(receiver.line.written() == ReceiverProfile.ublox.rateCommands(5000)[1])
    }

    @Test func asleepItIsSilentByOrderAndWokenByAByte() throws {
        let receiver = try Receiver(.ignores, .ublox)
        _ = receiver.line.written()
        try receiver.tell(3)
        receiver.loop.forget()
        #expect(receiver.loop.setAsleep(true, for: .seconds(60)))
        #expect(receiver.line.written() == ReceiverProfile.ublox.standbyCommands(60_000)[0])
        #expect(receiver.loop.source.descriptor == nil && receiver.loop.source.nextDeadline == nil)
        receiver.loop.pass(.seconds(60))
        #expect(receiver.loop.states.isEmpty && receiver.loop.wakeUps == 0)
        #expect(receiver.loop.setAsleep(false))
        #expect(receiver.line.written() == [0xFF, 0xFF])
        try receiver.tell(2)
        #expect(receiver.loop.states == [.opening, .receiving])
    }

    @Test func gpsdIsOrderedAndJudgedLikeALine() {
        var control = ReceiverControl(profile: .gpsdCycle)
        var now = EventTime.zero
        var orders = control.intervalWanted(.seconds(5), at: now)
        func tell(_ seconds: [Int]) {
            for second in seconds {
                now = max(now, .zero + .seconds(Int64(second)))
                orders += control.epochReceived(timeOfDay: second * 1000, at: now)
            }
        }
        tell([0, 1, 2, 3])
        #expect(orders == [.cycle(5000)])
        #expect(control.expectedInterval == .seconds(5))
        // It answers with the cycle asked for, and nothing happens.
        tell([4, 5, 6, 7, 8])
        let rate = ReceiverRate(wanted: 5000, measured: 1000, isHonoured: false)
        #expect(orders == [.cycle(5000), .rateNotHonoured(rate)])
        #expect(control.rate == rate && control.expectedInterval == nil)
        // Another receiver may do better.
        control.disconnected()
        tell([20, 21, 22, 23])
        #expect(orders.last == .cycle(5000))
        tell([28, 33, 38, 43])
        #expect(control.rate?.isHonoured == true)
    }
}
