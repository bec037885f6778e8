import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@Suite struct SkippedLocationsTests {
    private func times(_ added: [Int64], countMax: Int = 60) -> [Int64] {
        var skipped = SkippedLocations<Int64>(countMax: countMax)
        for (sequence, time) in added.enumerated() {
            skipped.add(time, time: UTCTime(milliseconds: time), sequence: Int64(sequence))
        }
        return skipped.elements
    }

    @Test func sortsByTimeOfTheFixAndDropsTheOldestWhateverTheOrderOfArrival() {
        let all = [Int64](0...100)
        #expect(times([4, 1, 3, 2]) == [1, 2, 3, 4])
        let newest = [Int64](41...100)
        #expect(times(all) == newest)
        #expect(times(all.reversed()) == newest)
        #expect(times([5, 1], countMax: 1) == [5])
        #expect(times([.max, .min, 0], countMax: 2) == [0, .max])
    }

    @Test func equalTimesKeepTheOrderOfTheQueue() {
        var skipped = SkippedLocations<String>(countMax: 3)
        let time = UTCTime(milliseconds: 7)
        for (name, sequence) in [("b", 2), ("a", 1), ("d", 4), ("c", 3)] as [(String, Int64)] {
            skipped.add(name, time: time, sequence: sequence)
        }
        #expect(skipped.elements == ["b", "c", "d"])
    }

    @Test func anAcknowledgementClearsWhatItsMessageCarried() {
        var skipped = SkippedLocations<Int64>()
        for number in Int64(1)...3 { skipped.add(number, time: UTCTime(milliseconds: number), sequence: number) }
        let sent = Set(skipped.entries.map(\.sequence))
        skipped.add(9, time: UTCTime(milliseconds: 2), sequence: 9)
        #expect(skipped.count == 4)
        skipped.acknowledged(sent)
        #expect(skipped.elements == [9])
        skipped.removeAll()
        #expect(skipped.isEmpty)
    }

    @Test func isTheSortedTailOfEverythingThatCame() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let added = (0..<Int.random(in: 0..<150, using: &random)).map { _ in
                Int64.random(in: 0..<80, using: &random)
            }
            #expect(times(added) == Array(added.sorted().suffix(60)), "seed \(seed)")
        }
    }
}
