import Testing

@testable import WaypostCLI

@Suite struct ViewerCostTests {
    @Test func whatAViewerMayCostFollowsFromTheFloor() {
        let rows: [(floor: Double, words: String)] = [
            (0.2, "up to 18000 locations an hour recorded and sent, about 7.4 MB on the channel, 0.5 MB to"),
            (1, "up to 3600 locations an hour recorded and sent, about 1.5 MB on the channel, 0.1 MB to"),
            (0, "every fix of the receiver"),
        ]
        for (floor, words) in rows {
            let said = ViewerCost(channel: "live", floor: floor).words
            #expect(said.hasPrefix("channel live: one viewer may have \(words)"), "\(said)")
            #expect(said.hasSuffix("subscriber_interval_floor in [resolution] for less"))
        }
    }
}
