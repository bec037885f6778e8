import Positioning
import Testing

@testable import Delivery

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

    @Test(arguments: [(0.0, 0.0), (0.5, 30), (0.999, 59.94), (-3, 0), (.nan, 0), (7, 60)])
    func aBacklogAtTheStartOfTheHostWaitsUpToAWindow(_ share: Double, _ seconds: Double) {
        var gate = SendGate(metered: .send)
        gate.startedWithBacklog(window: .seconds(60), share: share, at: start)
        let opens = start + .nanoseconds(Int64((seconds * 1e9).rounded()))
        if seconds > 0 {
            #expect(gate.opening(at: start) == .shut(until: opens))
            #expect(gate.opening(at: opens - .nanoseconds(1)) == .shut(until: opens))
        }
        #expect(gate.opening(at: opens) == .open)
    }

    @Test func theWindowBoundsTheWaitAtTheStart() {
        var gate = SendGate(metered: .send)
        gate.startedWithBacklog(window: .seconds(10), share: 0.5, at: start)
        #expect(gate.opening(at: start) == .shut(until: start + .seconds(5)))
        gate.startedWithBacklog(window: .seconds(86_400), share: 0.5, at: start)
        #expect(gate.opening(at: start) == .shut(until: start + .seconds(150)))
    }

    @Test func eventsDoNotWaitForTheStart() {
        var gate = SendGate(metered: .send)
        gate.startedWithBacklog(window: .seconds(60), share: 0.5, at: start)
        gate.sharedFlushRequested(waiting: 1)
        #expect(gate.opening(at: start) == .shut(until: start + .seconds(30)))
        gate.flushRequested(waiting: 1)
        #expect(gate.opening(at: start) == .open)
    }

    /// A hundred boxes that boot in the same second arrive over one window.
    @Test func aFleetSpreadsOut() {
        var places = Set<Int64>()
        for box in 0..<100 {
            var gate = SendGate(metered: .send)
            gate.startedWithBacklog(window: .seconds(60), share: Double(box) / 100, at: start)
            guard case .shut(let until?) = gate.opening(at: start) else { continue }
            places.insert((until.nanoseconds - start.nanoseconds) / 1_000_000_000)
        }
        #expect(places.count == 60)
    }
}

@Suite struct SendAlignmentTests {
    private let start = EventTime(nanoseconds: 1_000_000_000_000)

    @Test(arguments: [(60, true), (31, true), (30, true), (29, false), (0, false)])
    func joinsInTheSecondHalfOfItsWindow(_ secondsGone: Int, _ joins: Bool) {
        let now = start + .seconds(secondsGone)
        let ends: EventTime? = start + .seconds(60)
        // At its very end it forms a batch by itself.
        #expect(SendAlignment.joins(windowEnds: ends, window: .seconds(60), at: now) == (joins && secondsGone < 60))
    }

    @Test(arguments: [(nil, 60, 0), (0, 0, 0), (Int64.max, 86_400, Int64.min), (Int64.min, 60, Int64.max)])
    func thereIsNothingToJoinWithoutAWindow(_ ends: Int64?, _ window: Int, _ now: Int64) {
        let joins = SendAlignment.joins(
            windowEnds: ends.map(EventTime.init(nanoseconds:)), window: .seconds(window),
            at: EventTime(nanoseconds: now))
        #expect(joins == false)
    }
}

@Suite struct ShellPatternTests {
    @Test(arguments: [
        ("wwan0", "wwan*"), ("wwan", "wwan*"), ("wwan0", "wwan0"), ("wlan0", "*"), ("", "*"), ("", ""), ("a", "**a**"),
        ("usb0mbim1", "usb*mbim*"), ("aab", "*ab"), ("ppp0.100", "*.100"), ("mobile-mobil", "*mobil"),
    ])
    func fits(_ name: String, _ pattern: String) { #expect(ShellPattern.matches(name, pattern)) }

    @Test(arguments: [
        ("eth0", "wwan*"), ("wwan0", "wwan"), ("wwan", "wwan0"), ("xwwan0", "wwan*"), ("", "a"), ("a", ""),
        ("wwan0", "?wan0"), ("wwan0", "[w]wan0"), ("aba", "*ab"), ("WWAN0", "wwan*"),
    ])
    func doesNotFit(_ name: String, _ pattern: String) { #expect(!ShellPattern.matches(name, pattern)) }

    @Test func manyStarsTakeNoTime() {
        let name = String(repeating: "a", count: 5000) + "b"
        #expect(!ShellPattern.matches(name, String(repeating: "*a", count: 16) + "c"))
    }
}
