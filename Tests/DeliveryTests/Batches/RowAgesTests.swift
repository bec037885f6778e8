import Delivery
import TestSupport
import Testing
import WaypostCore

@Suite struct RowAgesTests {
    private static let newest: Int64 = 1_700_000_000_000
    private static let hour: Int64 = 3_600_000

    private func instant(_ seconds: Int64) -> EventTime { EventTime(nanoseconds: seconds * 1_000_000_000) }

    private func ages(
        now: Int64, trusted: Int64? = newest, _ recorded: RecordingTimes = RecordingTimes(earlierThrough: 10)
    ) -> RowAges {
        RowAges(
            AgeReference(
                now: instant(now), started: instant(0), trusted: trusted.map { UTCTime(milliseconds: $0) }), recorded)
    }

    /// Hours before the trusted time that a row of an earlier process was dated and received; nil = unknown.
    @Test(
        arguments: [
            (2, 2, true), (2, nil, true), (0, nil, false),
            // One of both was wrong.
            (2, 0, false), (0, 2, false), (500_000, 0, false), (0, 500_000, false), (2, 500_000, true),
            // What lies ahead is no date of receipt.
            (2, -23, false), (2, -25, true), (-25, 2, false),
        ] as [(Int64, Int64?, Bool)])
    func judgesEarlierRowsByTheYoungerOfTheirDates(time: Int64, received: Int64?, isOlder: Bool) {
        let (time, received) = (Self.newest - time * Self.hour, received.map { Self.newest - $0 * Self.hour })
        #expect(ages(now: 60).isOlder(seq: 5, time: time, receivedMs: received, than: .seconds(3600)) == isOlder)
        #expect(!ages(now: 60, trusted: nil).isOlder(seq: 5, time: time, receivedMs: received, than: .seconds(3600)))
    }

    @Test func anEarlierRowIsAtLeastAsOldAsTheProcess() {
        func isOlder(_ now: Int64) -> Bool {
            ages(now: now, trusted: nil).isOlder(seq: 10, time: .max, receivedMs: .max, than: .seconds(60))
        }
        #expect(!isOlder(60) && isOlder(61))
    }

    @Test(arguments: [Int64.min, 0, newest, .max])
    func judgesItsOwnRowsByTheBootClock(trusted: Int64) {
        var recorded = RecordingTimes(earlierThrough: 10)
        for seq in Int64(11)...20 { recorded.append(seq, at: instant(seq * 10), first: 1) }
        for seq in Int64(11)...20 {
            for time in [Int64.min, 0, Self.newest, .max] {
                let isOlder = [0, 60, 61].map { (later: Int64) -> Bool in
                    ages(now: seq * 10 + later, trusted: trusted, recorded)
                        .isOlder(seq: seq, time: time, receivedMs: time, than: .seconds(60))
                }
                #expect(isOlder == [false, false, true], "row \(seq), \(time)")
            }
        }
    }

    @Test func aRowThatIsNotKnownIsAsYoungAsCanBe() {
        var recorded = RecordingTimes(earlierThrough: 10)
        recorded.append(20, at: instant(5), first: 1)
        for seq: Int64 in [0, 15, 21, .max] {
            #expect(!ages(now: 1_000_000, recorded).isOlder(seq: seq, time: 0, receivedMs: 0, than: .seconds(1)))
        }
    }

    /// In bounded memory no row is ever older than it is, and not much younger.
    @Test(arguments: testSeeds(1...3))
    func remembersLongBacklogsRoughly(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var recorded = RecordingTimes(earlierThrough: 10)
        var times: [Int64: EventTime] = [:]
        var (seq, now) = (Int64(10), Int64(0))
        for _ in 0..<20_000 {
            seq += Int.random(in: 0..<100, using: &random) == 0 ? 5 : 1
            now += Int64.random(in: 0...3_000_000_000, using: &random)
            times[seq] = EventTime(nanoseconds: now)
            recorded.append(seq, at: EventTime(nanoseconds: now), first: 1)
        }
        let reference = AgeReference(now: EventTime(nanoseconds: now), started: .zero)
        let ages = RowAges(reference, recorded)
        let margin = Duration.nanoseconds(now / 100)
        let wrong = times.filter { seq, at in
            let age = reference.now.duration(since: at)
            return ages.isOlder(seq: seq, time: 0, receivedMs: nil, than: age)
                || !ages.isOlder(seq: seq, time: 0, receivedMs: nil, than: age - margin)
        }
        #expect(wrong.isEmpty, "seed \(seed)")
        #expect(ages.dated(than: .seconds(1)) == nil)
        #expect(recorded.earlierThrough == 10)
    }

    @Test func survivesAbsurdTimes() {
        for extreme in [Int64.min, 0, .max] {
            var recorded = RecordingTimes(earlierThrough: extreme)
            recorded.append(extreme, at: EventTime(nanoseconds: extreme), first: extreme)
            for other in [Int64.min, 0, .max] {
                let ages = RowAges(
                    AgeReference(
                        now: EventTime(nanoseconds: extreme), started: EventTime(nanoseconds: other),
                        trusted: UTCTime(milliseconds: other)), recorded)
                for age in [Int64.min, 0, .max].map({ Duration.nanoseconds($0) }) {
                    _ = ages.isOlder(seq: 5, time: extreme, receivedMs: other, than: age)
                    _ = ages.isAnyOlder(from: other, than: age)
                    _ = ages.dated(than: age)
                }
            }
        }
    }
}
