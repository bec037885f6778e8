import Configuration
import Sensors
import Testing
import WaypostCore
import WaypostNMEA

@testable import Daemon

@Suite struct ReceiverTroubleTests {
    private func fix(_ second: Int, east: Int32 = 0) -> Fix {
        let time = UTCTime(milliseconds: 1_800_000_000_000 + Int64(second) * 1000)
        return Fix(
            time: time, timeOfDay: time.timeOfDay, at: at(second),
            coordinate: Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000 + east), speed: 0)
    }

    private func at(_ second: Int) -> EventTime { EventTime(nanoseconds: Int64(second) * 1_000_000_000) }

    @Test func aFixThatComesForEverIsAProblemUntilTheTimeGoesOn() {
        var trouble = ReceiverTrouble()
        var news: [String] = []
        func receive(_ fix: Fix, _ second: Int) {
            let found = trouble.received(
                fix, at: at(second), dates: ReceiverDates(), counters: { NMEACounters() }, now: at(second))
            news += found?.lines ?? []
        }
        for second in 0..<40 { receive(fix(min(second, 9)), second) }
        let words = "the receiver repeats the fix of 08:00:09: restart the receiver, or what passes its sentences on"
        #expect(news == [words] && trouble.problems(at: at(40)) == [words])
        receive(fix(41), 41)
        #expect(news == [words] && trouble.problems(at: at(41)) == [])
    }

    @Test func aCountThatRisesIsAProblem() {
        var trouble = ReceiverTrouble()
        var counters = NMEACounters()
        var news: [String] = []
        for second in 0..<30 {
            counters.straySentences += 1
            let found = trouble.received(
                fix(second), at: at(second), dates: ReceiverDates(), counters: { counters }, now: at(second))
            news += found?.lines ?? []
        }
        #expect(news.count == 1 && news[0].contains("set talker in [source]"))
        #expect(trouble.problems(at: at(30)) == news && trouble.problems(at: at(700)) == [])
    }

    /// What one process learnt of the dates of a receiver, the next knows, for the same receiver.
    @Test func whatIsKnownOfDatesOutlivesTheProcess() throws {
        var memory = SourceMemory()
        memory.trusted = UTCTime(milliseconds: 1_800_000_000_000)
        (memory.receiver, memory.repaired) = ("serial /dev/ttyUSB0", UTCTime(milliseconds: 1_900_000_000_000))
        let stored = try #require(SourceMemory(bytes: memory.bytes))
        #expect(stored == memory)
        let build = CivilDate(year: 2026, month: 11, day: 1)!
        let decoder = NMEADecoder.Settings(live: true, rollover: .repair(buildDate: build))
        // 1024 weeks before 2032: within three years after the repair, not after the trusted time.
        let sentence = "GPRMC,100000,A,4807.0380,N,01131.0000,E,,,170512,,,A"
        let checksum = String(sentence.utf8.reduce(0, ^), radix: 16, uppercase: true)
        for (path, year) in [("/dev/ttyUSB0", "2032"), ("/dev/ttyUSB1", nil)] {
            let config = SourceConfig.serial(SerialSettings(device: .path(path), decoder: decoder))
            guard case .serial(let settings) = config.remembering(stored) else { return }
            var decoder = NMEADecoder(settings: settings.decoder)
            var time: UTCTime?
            let bytes = Array("$\(sentence)*\(checksum)\r\n".utf8)
            decoder.decode(bytes.span, at: .zero) { _, _ in }
            decoder.endOfInput { epoch, _ in if case .fix(let fix) = epoch { time = fix.time } }
            #expect((time?.iso8601.prefix(4)).map(String.init) == year)
        }
    }
}
