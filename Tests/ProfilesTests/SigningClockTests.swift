import Delivery
import Profiles
import Testing
import WaypostCore

@Suite struct SigningClockTests {
    private static let host: Int64 = 1_700_000_000_000

    @Test(
        arguments: [
            // synchronised, receiver, with "host", with "receiver"
            (true, nil, host, host),
            (true, 0, host, host),
            (false, nil, nil, nil),
            (false, host + 60_000, host, host),
            (false, host - 60_000, host, host),
            (false, host + 60_001, nil, host + 60_001),
            (false, Int64.min, nil, Int64.min),
        ] as [(Bool, Int64?, Int64?, Int64?)])
    func trustsOnlyAConfirmedClock(synchronised: Bool, receiver: Int64?, host: Int64?, other: Int64?) {
        for (clock, time) in [(SigningClock.host, host), (.receiver, other)] {
            #expect(clock.time(hostMs: Self.host, isSynchronised: synchronised, receiverMs: receiver) == time)
        }
    }

    @Test func tokenIsDueAtFourFifthsAndUsableToItsEnd() {
        var lifetime = TokenLifetime()
        let start = EventTime.zero + .seconds(100)
        #expect(lifetime.isDue(at: start) && !lifetime.isUsable(at: start) && lifetime.mayFetch(at: start))
        lifetime.fetchStarted(at: start)
        #expect(!lifetime.mayFetch(at: start + .seconds(59)) && lifetime.mayFetch(at: start + .seconds(60)))
        // An operator ends the pause.
        lifetime.resumed()
        #expect(lifetime.mayFetch(at: start + .seconds(1)))
        lifetime.fetched(lifetime: .seconds(1000), at: start)
        #expect(!lifetime.isDue(at: start + .seconds(799)) && lifetime.isDue(at: start + .seconds(800)))
        #expect(lifetime.isUsable(at: start + .seconds(999)) && !lifetime.isUsable(at: start + .seconds(1000)))
        // It is used until the next may be fetched, however short its life.
        lifetime.fetched(lifetime: .seconds(1), at: start)
        #expect(lifetime.isUsable(at: start + .seconds(59)) && !lifetime.isUsable(at: start + .seconds(60)))
        lifetime.fetched(lifetime: nil, at: start)
        let years = start + .seconds(1_000_000_000)
        #expect(!lifetime.isDue(at: years) && lifetime.isUsable(at: years))
    }
}
