import Testing
import WaypostCore

@testable import Delivery
@testable import Profiles

@Suite struct SendGateTests {
    private let start = EventTime(nanoseconds: 1_000_000_000_000)

    @Test(arguments: EndpointSettings.Metered.allCases)
    func isOpenOnALinkThatCostsNothing(_ metered: EndpointSettings.Metered) {
        var gate = SendGate(metered: metered)
        #expect(gate.opening(at: start) == .open)
        gate.linkChanged(isMetered: true)
        gate.linkChanged(isMetered: false)
        #expect(gate.opening(at: start) == .open && !gate.isHeldByLink)
    }

    @Test func holdLetsNothingOverAMeteredLink() {
        var gate = SendGate(metered: .hold)
        gate.linkChanged(isMetered: true)
        gate.flushRequested(waiting: 5)
        #expect(gate.opening(at: start) == .shut(until: nil) && gate.isHeldByLink)
    }

    @Test func sendDoesNotAskForThePrice() {
        var gate = SendGate(metered: .send)
        gate.linkChanged(isMetered: true)
        #expect(gate.opening(at: start) == .open)
    }

    @Test func eventsTakeAlongWhatWaitsBeforeThemAndNoMore() {
        var gate = SendGate(metered: .eventsOnly)
        gate.linkChanged(isMetered: true)
        #expect(gate.isHeldByLink)
        gate.flushRequested(waiting: 150)
        #expect(gate.opening(at: start) == .open)
        gate.settled(100)
        #expect(gate.opening(at: start) == .open)
        gate.settled(50)
        #expect(gate.isHeldByLink)
    }

    @Test func rowsThatRetentionRemovedDoNotKeepTheGateOpen() {
        var gate = SendGate(metered: .eventsOnly)
        gate.linkChanged(isMetered: true)
        gate.flushRequested(waiting: 150)
        gate.waitingCorrected(to: 0)
        #expect(gate.isHeldByLink)
        gate.flushRequested(waiting: 3)
        gate.settled(.max)
        gate.settled(-5)
        #expect(gate.isHeldByLink)
    }

    @Test(
        arguments: [
            (0.0, 60, 0.0), (0.5, 60, 30), (0.999, 60, 59.94), (-3, 60, 0), (.nan, 60, 0), (7, 60, 60), (0.5, 10, 5),
            (0.5, 86_400, 150),
        ] as [(Double, Int, Double)])
    func aBacklogAtTheStartOfTheHostWaitsUpToAWindow(_ share: Double, _ window: Int, _ seconds: Double) {
        var gate = SendGate(metered: .send)
        gate.startedWithBacklog(window: .seconds(window), share: share, at: start)
        let opens = start + .nanoseconds(Int64((seconds * 1e9).rounded()))
        if seconds > 0 {
            #expect(gate.opening(at: start) == .shut(until: opens))
            #expect(gate.opening(at: opens - .nanoseconds(1)) == .shut(until: opens))
        }
        #expect(gate.opening(at: opens) == .open)
    }

    @Test func eventsDoNotWaitForTheStart() {
        var gate = SendGate(metered: .send)
        gate.startedWithBacklog(window: .seconds(60), share: 0.5, at: start)
        gate.sharedFlushRequested(waiting: 1)
        #expect(gate.opening(at: start) == .shut(until: start + .seconds(30)))
        gate.flushRequested(waiting: 1)
        #expect(gate.opening(at: start) == .open)
    }
}

@Suite struct SendAlignmentTests {
    private let start = EventTime(nanoseconds: 1_000_000_000_000)

    @Test(arguments: [(60, true), (31, true), (30, true), (29, false), (0, false)] as [(Int, Bool)])
    func joinsInTheSecondHalfOfItsWindow(_ secondsGone: Int, _ joins: Bool) {
        let now = start + .seconds(secondsGone)
        let ends: EventTime? = start + .seconds(60)
        // At its very end it forms a batch by itself.
        #expect(SendAlignment.joins(windowEnds: ends, window: .seconds(60), at: now) == (joins && secondsGone < 60))
    }

    @Test(arguments: [(nil, 60, 0), (0, 0, 0), (.max, 86_400, .min), (.min, 60, .max)] as [(Int64?, Int, Int64)])
    func thereIsNothingToJoinWithoutAWindow(_ ends: Int64?, _ window: Int, _ now: Int64) {
        let joins = SendAlignment.joins(
            windowEnds: ends.map(EventTime.init(nanoseconds:)), window: .seconds(window),
            at: EventTime(nanoseconds: now))
        #expect(joins == false)
    }
}

@Suite struct ShellPatternTests {
    static let pairs: [(String, String, Bool)] = [
        ("wwan0", "wwan*", true), ("wwan", "wwan*", true), ("wwan0", "wwan0", true), ("wlan0", "*", true),
        ("", "*", true), ("", "", true), ("a", "**a**", true), ("usb0mbim1", "usb*mbim*", true), ("aab", "*ab", true),
        ("ppp0.100", "*.100", true), ("mobile-mobil", "*mobil", true), ("eth0", "wwan*", false),
        ("wwan0", "wwan", false), ("wwan", "wwan0", false), ("xwwan0", "wwan*", false), ("", "a", false),
        ("a", "", false), ("wwan0", "?wan0", false), ("wwan0", "[w]wan0", false), ("aba", "*ab", false),
        ("WWAN0", "wwan*", false),
    ]

    @Test(arguments: pairs) func knowsWhatFits(_ name: String, _ pattern: String, _ fits: Bool) {
        #expect(ShellPattern.matches(name, pattern) == fits)
    }

    @Test func manyStarsTakeNoTime() {
        let name = String(repeating: "a", count: 5000) + "b"
        #expect(!ShellPattern.matches(name, String(repeating: "*a", count: 16) + "c"))
    }
}
