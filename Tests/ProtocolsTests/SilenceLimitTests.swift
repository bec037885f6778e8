import Testing

@testable import Protocols

@Suite struct SilenceLimitTests {
    /// Seconds of silences, below zero where the connection did not survive it.
    @Test(
        arguments: [
            ([20, 40], nil), ([-30], 24), ([20, -30], 20), ([5, -30], 24), ([-5], nil), ([60, -30], 24), ([-11], 10),
            ([20, -30, -15], 12),
        ] as [([Int], Int?)])
    func whatSurvivedLastIsTheLimit(_ silences: [Int], _ wanted: Int?) {
        var limit = SilenceLimit()
        for silence in silences {
            if silence < 0 { limit.lost(after: .seconds(-silence)) } else { limit.survived(.seconds(silence)) }
        }
        #expect(limit.limit == wanted.map { .seconds($0) })
    }
}
