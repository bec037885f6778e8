import Positioning
import Testing

@testable import Live

@Suite("Another client with our client id") struct TakeoverWatchTests {
    @Test func theServerSaysIt() {
        var watch = TakeoverWatch()
        watch.connected(at: .zero)
        let isTaken = watch.ended(
            .dismissed(.sessionTakenOver, detail: nil), unansweredSince: nil, at: seconds(1000))
        #expect(isTaken)
    }

    @Test func lossesRightAfterConnectingShowIt() {
        var watch = TakeoverWatch()
        #expect([0, 100, 200].map { loss(&watch, at: $0) } == [false, false, true])
        let isStillTaken = loss(&watch, at: 300, after: 11)
        #expect(!isStillTaken, "a connection that lasts shows that it is over")
    }

    /// A node of NATS that is killed, and one that has just started and waits for the others, close as well.
    @Test func aBrokerThatOwesAnswersIsInTroubleItself() {
        var watch = TakeoverWatch()
        let taken = [0, 100, 200, 300, 400].map { loss(&watch, at: $0, unanswered: $0 == 200 ? 2 : 1) }
        #expect(taken == [false, false, false, false, false])
        let isTaken = loss(&watch, at: 500)
        #expect(isTaken)
    }

    @Test func soIsOneThatCannotBeReached() {
        var watch = TakeoverWatch()
        for start in [0.0, 100, 200, 300] {
            #expect([start, start + 20].map { loss(&watch, at: $0) } == [false, false])
            if start < 200 {
                watch.failed()
            } else {
                let isTaken = watch.ended(.noAnswer(to: .connect), unansweredSince: nil, at: seconds(start + 60))
                #expect(!isTaken)
            }
        }
    }

    @Test func otherEndsDoNot() {
        var watch = TakeoverWatch()
        for start in 0..<10 {
            watch.connected(at: seconds(Double(start)))
            let ending: MQTTClient.Ending =
                start % 2 == 0 ? .noAnswer(to: .ping) : .dismissed(MQTTReason(rawValue: 0x8B), detail: nil)
            let isTaken = watch.ended(ending, unansweredSince: nil, at: seconds(Double(start) + 0.5))
            #expect(!isTaken)
        }
    }

    /// Whether a connection that is made then and is lost soon after shows it.
    private func loss(
        _ watch: inout TakeoverWatch, at start: Double, after duration: Double = 9, unanswered: Double? = nil
    ) -> Bool {
        watch.connected(at: seconds(start))
        let end = start + duration
        return watch.ended(.lost, unansweredSince: unanswered.map { seconds(end - $0) }, at: seconds(end))
    }
}
