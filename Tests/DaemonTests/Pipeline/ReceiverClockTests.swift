import Testing
import WaypostCore

@testable import Daemon

@Suite struct ReceiverClockTests {
    private static let startMs: Int64 = 1_700_000_000_000

    /// A host that was set back by hours would let a command run twice.
    @Test(
        arguments: [(0, true), (-60_000, true), (60_000, true), (-61_000, false), (3_600_000, false)] as [(Int64, Bool)]
    )
    func aCommandNeedsHostAndReceiverWithinAMinute(off: Int64, isTime: Bool) {
        let clock = ReceiverClock()
        let later = EventTime.zero + .seconds(7200)
        let hostMs = Self.startMs + 7_200_000 + off
        // Without a date of the receiver the host is all there is.
        #expect(clock.uncontradictedTime(at: later, hostMs: hostMs)?.milliseconds == hostMs)
        #expect(clock.uncontradictedTime(at: later, hostMs: nil) == nil)
        clock.received(UTCTime(milliseconds: Self.startMs), at: .zero)
        #expect(clock.uncontradictedTime(at: later, hostMs: hostMs)?.milliseconds == (isTime ? hostMs : nil))
    }
}
