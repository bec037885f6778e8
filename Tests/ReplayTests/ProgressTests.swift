import Positioning
import Testing

@testable import Replay

@Suite struct ProgressTests {
    @Test func progressIsShownFourTimesASecondAtMost() {
        var progress = Progress(.bytes, total: 40_000_000, at: .zero)
        #expect(progress.advanced(by: 1_000_000, at: .zero + .milliseconds(249)) == nil)
        #expect(
            progress.advanced(by: 9_000_000, at: .zero + .milliseconds(500))
                == "25 %, 10.0 MB of 40.0 MB, 20.0 MB/s, 2 s left")
        #expect(progress.advanced(by: 1, at: .zero + .milliseconds(749)) == nil)
        var pipe = Progress(.rows, total: nil, at: .zero)
        #expect(pipe.advanced(by: 1500, at: .zero + .seconds(1)) == "1500 rows, 1500 rows/s")
        var grown = Progress(.bytes, total: 10, at: .zero)
        #expect(grown.advanced(by: 999, at: .zero + .seconds(1)) == "100 %, 999 B of 10 B, 999 B/s, 0 s left")
    }
}
