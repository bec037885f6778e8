import TestSupport
import Testing

/// The built daemon on hours of real driving and sailing.
@Suite struct MainJobOnRecordedDrivesTests {
    private static let logs = ["drive_z205_switzerland_sirf.nmea", "sail_kernevel_latrinite_9h.nmea"]

    @Test(arguments: logs)
    func everyKeptLocationArrivesOnceAndInOrder(_ name: String) throws {
        let (received, expected) = try MainJob.run(try Corpus.path(name))
        #expect(expected.count > 5000)
        #expect(received.map(\.seq) == Array(1...expected.count))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.latitude) == expected.map(\.latitude))
        #expect(received.map(\.longitude) == expected.map(\.longitude))
    }

    @Test(arguments: logs)
    func arrivesOnceAndInOrderWhenTheCollectorRefusesForAWhile(_ name: String) throws {
        let (received, expected) = try MainJob.run(
            try Corpus.path(name), collector: ["--answer", "503", "--for", "3s"])
        #expect(received.map(\.seq) == Array(1...expected.count))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
    }

    @Test(arguments: logs)
    func losesNothingStoredInTwentyKills(_ name: String) throws {
        let seed = testSeed(1)
        let survival = try MainJob.runKilling(try Corpus.path(name), times: 20, seed: seed)
        #expect(survival.kills == 20)
        #expect(survival.lost.isEmpty, "seed \(seed)")
        let received = survival.received
        #expect(isRising(received.map(\.seq)), "seed \(seed)")
        // Motion, too, is judged anew after each start: a halt may be noticed later, never a fix be lost for good.
        #expect(MainJob.firstHole(received, survival.expected, milliseconds: 31_000) == nil, "seed \(seed)")
    }
}
