import Profiles
import Testing
import WaypostCore

@testable import Channel

@Suite("When locations become messages") struct LocationFeedTests {
    private var feed = LocationFeed(queue: "q7", name: .enhanced, cursor: 0)

    private mutating func next(_ rows: [QueuedLocation], at now: EventTime = .zero) -> ChannelMessage? {
        feed.next(rows, bytesMax: 65_536, at: now)
    }

    private mutating func refused(_ status: Int, _ code: Int = 0, at now: EventTime = .zero) -> ChannelMessage? {
        feed.refused(ChannelError(code: code, statusCode: status), jitter: 0, at: now)
    }

    @Test mutating func oneIsInFlight() {
        let first = next([row(1)])
        #expect(first?.id == "q7-1" && feed.inFlight == "q7-1")
        let second = next([row(1), row(2)])
        #expect(second == nil)
        feed.acknowledged(at: .zero)
        #expect(feed.cursor == 1)
        let third = next([row(1), row(2, selected: false), row(3)])
        #expect(third?.id == "q7-3" && third?.skippedCount == 1)
        feed.acknowledged(at: .zero)
        let fourth = next([row(3), row(4, selected: false)])
        #expect(fourth == nil && feed.cursor == 3)
    }

    @Test func rawHasIdsOfItsOwn() {
        var raw = LocationFeed(queue: "q7", name: .raw, cursor: 0)
        #expect(raw.next([row(1)], bytesMax: 65_536, at: .zero)?.id == "q7-1-raw")
    }

    /// The outcomes of the attempts to send one location, how many there are, and whether it rides along afterwards.
    static let outcomes: [([Int], Int, Bool)] = [
        ([200], 1, false), ([500, 200], 2, false), ([500, 500], 2, true), ([400], 1, true), ([429], 1, true),
        ([0, 200], 2, false),
    ]

    @Test(arguments: outcomes) func aFailureIsRepeatedOnce(outcomes: [Int], attempts: Int, ridesAlong: Bool) {
        var feed = LocationFeed(queue: "q", name: .enhanced, cursor: 0)
        var message = feed.next([row(1)], bytesMax: 65_536, at: .zero)
        var sent = 0
        for outcome in outcomes {
            guard message?.id == "q-1" else { break }
            sent += 1
            if outcome == 200 {
                feed.acknowledged(at: .zero)
            } else {
                message = feed.refused(ChannelError(statusCode: outcome), jitter: 0.5, at: .zero)
            }
        }
        #expect(sent == attempts && feed.inFlight == nil)
        #expect((feed.cursor == 0) == ridesAlong && (feed.nextDeadline != nil) == ridesAlong)
        // It is not a location of its own any more.
        let later = seconds(3600)
        #expect(feed.next([row(1)], bytesMax: 65_536, at: later) == nil)
        #expect(feed.next([row(1), row(2)], bytesMax: 65_536, at: later)?.skippedCount == (ridesAlong ? 1 : 0))
    }

    @Test mutating func waitsAfterAFailure() {
        _ = next([row(1)])
        _ = refused(400)
        #expect(feed.nextDeadline == seconds(1))
        let early = next([row(1), row(2)], at: seconds(0.9))
        let later = next([row(1), row(2)], at: seconds(1))
        #expect(early == nil && later?.id == "q7-2" && later?.skippedCount == 1)
    }

    @Test mutating func whatIsTooLargeIsHalvedOnce() {
        let message = next((1...61).map { row($0) })
        #expect(message?.skippedCount == 60)
        let halved = refused(413, 40_009)
        #expect(halved?.id == "q7-61" && halved?.skippedCount == 30)
        let again = refused(413, 40_009)
        #expect(again == nil)
        // The next one is small enough at once.
        let next = next((1...62).map { row($0) }, at: seconds(60))
        #expect(next?.skippedCount == 15)
        feed.acknowledged(at: seconds(60))
        #expect(feed.cursor == 62 && feed.passed == 46)
    }

    @Test mutating func aLocationThatAloneIsTooLargeIsDropped() {
        _ = next([row(1)])
        let again = refused(413, 40_009)
        #expect(again == nil && feed.dropped == 1 && feed.cursor == 1 && feed.nextDeadline == nil)
        let small = feed.next([row(2), row(3)], bytesMax: 10, at: .zero)
        #expect(small == nil && feed.dropped == 2 && feed.cursor == 3 && feed.passed == 1)
    }

    @Test mutating func rowsThatCannotBeSentAreDoneWith() {
        let none = next([row(1, accuracy: nil), row(2, accuracy: nil), row(3, selected: false)])
        #expect(none == nil && feed.cursor == 2 && feed.withoutAccuracy == 2)
    }

    @Test mutating func aRefusedOneWaitsForARowThatCanBeSent() {
        _ = next([row(1)])
        _ = refused(400)
        let none = next([row(1), row(2, accuracy: nil)], at: seconds(9))
        let next = next([row(1), row(2, accuracy: nil), row(3)], at: seconds(9))
        #expect(none == nil && next?.skippedCount == 1)
    }

    @Test mutating func whatWasNotSentIsFormedAnew() {
        _ = next([row(1)])
        feed.unsent(at: .zero)
        #expect(feed.nextDeadline == seconds(1))
        let message = next([row(1), row(2)], at: seconds(1))
        #expect(message?.id == "q7-2" && message?.skippedCount == 1)
    }

    /// The service keeps the last message for two minutes.
    @Test mutating func aViewerOfAParkedAssetSeesItAtOnce() {
        _ = next([row(1)])
        feed.acknowledged(at: .zero)
        feed.viewerArrived(at: seconds(119))
        let early = next([row(1)], at: seconds(119))
        #expect(early == nil)
        feed.viewerArrived(at: seconds(180))
        let late = next([row(1)], at: seconds(180))
        #expect(late?.id == "q7-1-again-1" && late?.skippedCount == 0)
        feed.acknowledged(at: seconds(180))
        let once = next([row(1)], at: seconds(180))
        #expect(once == nil && feed.cursor == 1)
        // With a row of its own there is no need.
        feed.viewerArrived(at: seconds(900))
        let row2 = next([row(2)], at: seconds(900))
        feed.acknowledged(at: seconds(900))
        let nothing = next([], at: seconds(900))
        #expect(row2?.id == "q7-2" && nothing == nil)
    }

    @Test func theLastLocationBeforeTheStartIsKnown() {
        var feed = LocationFeed(queue: "q", name: .enhanced, cursor: 9, lastKnown: ChannelFeature(row(9).location))
        feed.viewerArrived(at: .zero)
        #expect(feed.next([], bytesMax: 65_536, at: .zero)?.id == "q-9-again-1")
        feed.unsent(at: .zero)
        #expect(feed.next([], bytesMax: 65_536, at: seconds(1))?.id == "q-9-again-2")
    }
}
