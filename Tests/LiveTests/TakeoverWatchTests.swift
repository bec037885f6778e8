import Positioning
import Testing

@testable import Live

@Suite("Another client with our client id") struct TakeoverWatchTests {
    @Test func theServerSaysIt() {
        var watch = TakeoverWatch()
        watch.connected(at: .zero)
        let isTaken = watch.ended(.dismissed(.sessionTakenOver, detail: nil), at: seconds(1000))
        #expect(isTaken)
    }

    @Test func lossesRightAfterConnectingShowIt() {
        var watch = TakeoverWatch()
        var taken: [Bool] = []
        for start in [0.0, 100, 200] {
            watch.connected(at: seconds(start))
            taken.append(watch.ended(.lost, at: seconds(start + 9)))
            // No route, in between.
            taken.append(watch.ended(.noAnswer(to: .connect), at: seconds(start + 20)))
        }
        #expect(taken == [false, false, false, false, true, true])
        watch.connected(at: seconds(300))
        let isStillTaken = watch.ended(.lost, at: seconds(311))
        #expect(!isStillTaken, "a connection that lasts shows that it is over")
    }

    @Test func otherEndsDoNot() {
        var watch = TakeoverWatch()
        for start in 0..<10 {
            watch.connected(at: seconds(Double(start)))
            let ending: MQTTClient.Ending =
                start % 2 == 0 ? .noAnswer(to: .ping) : .dismissed(MQTTReason(rawValue: 0x8B), detail: nil)
            let isTaken = watch.ended(ending, at: seconds(Double(start) + 0.5))
            #expect(!isTaken)
        }
    }
}
