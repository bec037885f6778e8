import Testing
import WaypostCore

@testable import Protocols

@Suite("Another client with our client id") struct TakeoverWatchTests {
    @Test func lossesRightAfterConnectingRaiseTheSuspicion() {
        var watch = TakeoverWatch()
        #expect([0, 100, 200].map { loss(&watch, at: $0) } == [false, false, true])
        let isStillSuspected = loss(&watch, at: 300, after: 11)
        #expect(!isStillSuspected, "a connection that lasts shows that it is over")
    }

    /// A node of NATS that is killed, and one that has just started and waits for the others, close as well.
    @Test func aBrokerThatOwesAnswersIsInTroubleItself() {
        var watch = TakeoverWatch()
        let suspected = [0, 100, 200, 300, 400].map { loss(&watch, at: $0, unanswered: $0 == 200 ? 2 : 1) }
        #expect(suspected == [false, false, false, false, false])
        let isSuspected = loss(&watch, at: 500)
        #expect(isSuspected)
    }

    @Test func soIsOneThatCannotBeReached() {
        var watch = TakeoverWatch()
        for start in [0.0, 100, 200, 300] {
            #expect([start, start + 20].map { loss(&watch, at: $0) } == [false, false])
            if start < 200 {
                watch.failed()
            } else {
                watch.ended(.noAnswer(to: .connect), unansweredSince: nil, at: seconds(start + 60))
                #expect(!watch.isSuspected)
            }
        }
    }

    @Test func otherEndsAreNoneOfIt() {
        var watch = TakeoverWatch()
        for start in 0..<10 {
            watch.connected(at: seconds(Double(start)))
            let ending: MQTTClient.Ending =
                start % 2 == 0 ? .noAnswer(to: .ping) : .dismissed(MQTTReason(rawValue: 0x8B), detail: nil)
            watch.ended(ending, unansweredSince: nil, at: seconds(Double(start) + 0.5))
            #expect(!watch.isSuspected)
        }
    }

    /// Whether a connection that is made then and is lost soon after raises it.
    private func loss(
        _ watch: inout TakeoverWatch, at start: Double, after duration: Double = 9, unanswered: Double? = nil
    ) -> Bool {
        watch.connected(at: seconds(start))
        let end = start + duration
        watch.ended(.lost, unansweredSince: unanswered.map { seconds(end - $0) }, at: seconds(end))
        return watch.isSuspected
    }
}
