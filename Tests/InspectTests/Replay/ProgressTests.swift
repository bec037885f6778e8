import Testing
import WaypostCore

@testable import Inspect

@Suite struct ProgressTests {
    @Test func progressIsShownFourTimesASecondAtMost() {
        func shown(_ progress: Progress, _ steps: (Int, Int64)...) -> [String?] {
            var progress = progress
            return steps.map { progress.advanced(by: $0.0, at: .zero + .milliseconds($0.1)) }
        }
        let file = shown(
            Progress(.bytes, total: 40_000_000, at: .zero), (1_000_000, 249), (9_000_000, 500), (1, 749))
        #expect(file == [nil, "25 %, 10.0 MB of 40.0 MB, 20.0 MB/s, 2 s left", nil])
        #expect(shown(Progress(.rows, total: nil, at: .zero), (1500, 1000)) == ["1500 rows, 1500 rows/s"])
        let grown = shown(Progress(.bytes, total: 10, at: .zero), (999, 1000))
        #expect(grown == ["100 %, 999 B of 10 B, 999 B/s, 0 s left"])
    }
}
