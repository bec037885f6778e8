import Testing
import WaypostCore

@testable import Sensors

/// The bytes that receivers are told with, against the protocol descriptions of their makers.
@Suite struct ReceiverCommandTests {
    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return digits.count < 2 ? "0\(digits)" : digits
        }.joined(separator: " ")
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func ubloxIsToldInTheWordsOfBothGenerations() {
        #expect(
            ReceiverProfile.ublox.rateCommands(1000).map(hex) == [
                "B5 62 06 08 06 00 E8 03 01 00 00 00 00 37",
                "B5 62 06 8A 0A 00 00 01 00 00 01 00 21 30 E8 03 D8 C4",
            ])
        // As gpsd 3.22 writes it, and as u-blox spells out the value set.
        #expect(
            ReceiverProfile.ublox.rateCommands(5000).map(hex) == [
                "B5 62 06 08 06 00 88 13 01 00 00 00 B0 47",
                "B5 62 06 8A 0A 00 00 01 00 00 01 00 21 30 88 13 88 14",
            ])
    }

    @Test func ubloxSleepsForATimeOrUntilItIsWoken() {
        #expect(
            ReceiverProfile.ublox.standbyCommands(60_000).map(hex) == [
                "B5 62 02 41 08 00 60 EA 00 00 02 00 00 00 97 A1"
            ])
        #expect(
            ReceiverProfile.ublox.standbyCommands(nil).map(hex) == [
                "B5 62 02 41 08 00 00 00 00 00 02 00 00 00 4D 3B"
            ])
        #expect(ReceiverProfile.ublox.standbyCommands(.max).first?[6..<10] == [0xFF, 0xFF, 0xFF, 0xFF])
        #expect(!ReceiverProfile.ublox.wakeCommands.isEmpty)
    }

    static let sentences: [(ReceiverProfile, Int64, String)] = [
        (ReceiverProfile.mtk, 1000, "$PMTK220,1000*1F\r\n"), (.mtk, 5000, "$PMTK220,5000*1B\r\n"),
        (.casic, 1000, "$PCAS02,1000*2E\r\n"), (.quectel, 1000, "$PAIR050,1000*12\r\n"),
    ]

    @Test(arguments: sentences)
    func sentencesAreExact(profile: ReceiverProfile, interval: Int64, expected: String) {
        #expect(profile.rateCommands(interval).map(text) == [expected])
    }

    @Test func mtkStandsBy() {
        #expect(ReceiverProfile.mtk.standbyCommands(60_000).map(text) == ["$PMTK161,0*28\r\n"])
        #expect(ReceiverProfile.mtk.wakeCommands.map(text) == ["\r\n"])
    }

    static let bounds: [(ReceiverProfile, Int64, Int64)] = [
        (ReceiverProfile.ublox, 100_000, 65_535), (.mtk, 60_000, 10_000), (.mtk, 10, 100), (.casic, 60_000, 1000),
        (.quectel, 60_000, 1000),
    ]

    @Test(arguments: bounds)
    func nothingIsAskedThatItCannotDo(profile: ReceiverProfile, asked: Int64, possible: Int64) {
        #expect(profile.rateCommands(asked) == profile.rateCommands(possible))
        #expect(profile.intervals?.contains(possible) == true)
    }

    @Test func noProfileSaysNothing() {
        for profile in [ReceiverProfile.none, .gpsdCycle] {
            #expect(profile.rateCommands(1000).isEmpty && profile.standbyCommands(1000).isEmpty)
            #expect(profile.wakeCommands.isEmpty && !profile.writesToLine)
        }
    }

    @Test func ownCommandsGetTheirNumbersAndChecksum() throws {
        let sentence = try #require(ReceiverCommand("$PMTK220,{ms}"))
        #expect(text(sentence.bytes(milliseconds: 5000)) == "$PMTK220,5000*1B\r\n")
        let seconds = try #require(ReceiverCommand("$PXY,{s},{ms},{s}"))
        #expect(text(seconds.bytes(milliseconds: 1600)).hasPrefix("$PXY,2,1600,2*"))
        #expect(text(seconds.bytes(milliseconds: 100)).hasPrefix("$PXY,1,100,1*"))
        let frame = try #require(ReceiverCommand("B5 62 06 04 04 00 ff FF 02 00 0E 61"))
        #expect(hex(frame.bytes(milliseconds: 1)) == "B5 62 06 04 04 00 FF FF 02 00 0E 61")
    }

    @Test(arguments: [
        "", "$", "PMTK220,{ms}", "$PMTK220,{ms}*1F", "$PMTK220,{hz}", "$PMTK220,{ms", "$PÄ", "$A$B", "B5 6", "B562",
        "+5",
        "B5\t62", "$" + String(repeating: "A", count: 300), String(repeating: "00 ", count: 300),
    ])
    func whatIsNoCommandIsRefused(text: String) {
        #expect(ReceiverCommand(text) == nil)
    }
}

@Suite struct RateJudgeTests {
    /// The verdict at each epoch of a receiver that keeps an interval.
    private func verdicts(_ judge: inout RateJudge, _ times: [Int]) -> [Bool?] {
        times.map { judge.epochReceived(timeOfDay: $0) }
    }

    @Test func believesTheMedianOfThreeIntervalsAfterTheCommand() {
        var judge = RateJudge()
        #expect(verdicts(&judge, [0, 1000, 2000, 3000]) == [nil, nil, nil, nil])
        #expect(judge.measured == 1000)
        judge.commanded(5000)
        // One interval that is odd proves nothing.
        #expect(verdicts(&judge, [5000, 10_000, 10_400, 15_000]) == [nil, nil, nil, true])
        judge.commanded(5000)
        #expect(verdicts(&judge, [16_000, 17_000, 18_000, 19_000, 20_000]) == [nil, nil, nil, false, nil])
        #expect(judge.measured == 1000)
    }

    static let intervals: [(Int, Bool)] = [(4000, true), (3999, false), (6000, true), (6001, false)]

    @Test(arguments: intervals)
    func aFifthIsClose(interval: Int, kept: Bool) {
        var judge = RateJudge()
        judge.commanded(5000)
        #expect(verdicts(&judge, (0...3).map { $0 * interval }).last == .some(kept))
    }

    @Test func midnightRepeatsAndGapsAreNoIntervals() {
        var judge = RateJudge()
        judge.commanded(1000)
        // The same epoch twice, as after a reconnect.
        let times = [86_398_000, 86_399_000, 86_399_000, 0, 1000]
        #expect(verdicts(&judge, times).last == .some(true))
        judge.commanded(1000)
        #expect(verdicts(&judge, [2000, 3000, 9_000_000, 9_001_000, 9_002_000]) == [nil, nil, nil, nil, nil])
        #expect(judge.epochReceived(timeOfDay: 9_003_000) == true)
    }

    @Test func noTimeOfDayTrapsIt() {
        var judge = RateJudge()
        for time in [Int.max / 2, -5, 0, Int.min / 2, 86_400_000, 7] { _ = judge.epochReceived(timeOfDay: time) }
    }
}
