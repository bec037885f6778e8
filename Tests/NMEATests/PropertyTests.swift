import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

@Suite("Properties") struct PropertyTests {
    /// A stream with everything that a line may carry, garbage and defects included.
    private static func stream(_ generator: inout SeededGenerator) -> [UInt8] {
        var bytes: [UInt8] = []
        var time = Int.random(in: 0..<86_400_000, using: &generator)
        for _ in 0..<40 {
            if Int.random(in: 0..<3, using: &generator) == 0 { time = (time + 1000) % 86_400_000 }
            let clock = UTCTime.clock(time).replacing(":", with: "")
            let choices = [
                rmc(clock), rmc(clock, "V"), rmc("", "V", ",,,", date: ""), gga(clock), gga(clock, quality: "6"),
                gga("", quality: "0", ",,,"), gll(clock), gsa(mode: "3"), gsa(mode: "1"),
                sentence("GPZDA,\(clock),23,03,2020,,"), sentence("GPGST,\(clock),,,,,1.0,2.0,3.0"),
                sentence("GPVTG,1.0,T,,M,2.0,N,3.0,K"), sentence("PGRME,3.0,M,4.0,M,5.0,M"),
                sentence("PUBX,00,\(clock),4807.0,N,01131.0,E,500,G3,2.1,3.0"), sentence("GPGSV,1,1,01,21,00,000,32"),
                sentence("GLGSV,2,1,05,66,40,100,35"), sentence("GPTXT,01,01,02,ANTSTATUS=OPEN"),
                sentence("AIVDM,1,1,,A,14eG;o@034o8sd<L9i:a;WF>062D,0", start: "!"), "$GPRMC,12", "$", "!",
                "$GPGGA,\(clock),4807*\r\n", sentence("P" + String(repeating: "x", count: 140)), "\\s:1*00\\", "\r\n",
            ]
            bytes += Array(choices[Int.random(in: 0..<choices.count, using: &generator)].utf8)
            if Int.random(in: 0..<6, using: &generator) == 0 {
                for _ in 0..<Int.random(in: 0..<9, using: &generator) {
                    bytes.append(UInt8.random(in: 0...255, using: &generator))
                }
            }
        }
        return bytes
    }

    @Test(arguments: testSeeds(1...30)) func anySplitGivesTheSame(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = Self.stream(&generator)
        let whole = decode(bytes)
        for _ in 0..<5 {
            let cuts: [Int] = (0..<Int.random(in: 1..<60, using: &generator)).map { _ in
                Int.random(in: 0...bytes.count, using: &generator)
            }
            #expect(decode(bytes, cuts: cuts.sorted()) == whole, "seed \(seed)")
        }
    }

    @Test(arguments: testSeeds(1...30)) func anyPlaceToGoOnFromGivesTheRest(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = Self.stream(&generator)
        let whole = decode(bytes)
        for (i, place) in whole.resumes.enumerated() {
            let rest = decode(bytes, resume: place)
            #expect(rest.epochs.map(\.place) == whole.epochs[(i + 1)...].map(\.place), "seed \(seed), epoch \(i)")
        }
    }

    @Test(arguments: testSeeds(1...20)) func anyByteSoupIsSurvived(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("$!*,.0123456789ABCDEFGPRMCNSEW\r\n".utf8)
        let soup: [UInt8] = (0..<10_000).map { _ in
            Int.random(in: 0..<8, using: &generator) == 0
                ? UInt8.random(in: 0...255, using: &generator) : alphabet.randomElement(using: &generator)!
        }
        let result = decode(soup)
        #expect(result.counters.bytes == soup.count, "seed \(seed)")
        #expect(result.counters.badBytes > 0)
    }

    /// Every bit of it, between the start and the checksum's digits.
    @Test func everyDamagedSentenceIsDroppedWhole() {
        let good = Array(rmc("101502", speed: "10.0", course: "90.0").utf8)
        for place in 1..<good.count - 4 {
            for bit in 0..<8 {
                var bytes = good
                bytes[place] ^= 1 << UInt8(bit)
                if !decode(bytes).epochs.isEmpty { Issue.record("bit \(bit) of byte \(place)") }
            }
        }
    }

    @Test(arguments: testSeeds(1...20)) func countsEverySentenceOnce(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = Self.stream(&generator)
        let result = decode(bytes)
        #expect(result.counters.fixes == result.fixes.count, "seed \(seed)")
        #expect(result.counters.voidEpochs == result.voids.count, "seed \(seed)")
        #expect(result.counters.dateless == result.fixes.count { $0.time == nil }, "seed \(seed)")
    }
}

extension Epoch {
    /// What does not depend on dead reckoning's start, which is not known behind a place to go on from.
    fileprivate var place: String {
        switch self {
        case .fix(let fix): "\(fix.time?.iso8601 ?? "") \(fix.timeOfDay) \(fix.coordinate) \(fix.mode) \(fix.quality)"
        case .void(let void): "\(void.time?.iso8601 ?? "") \(void.timeOfDay ?? -1) \(void.reason)"
        }
    }
}
