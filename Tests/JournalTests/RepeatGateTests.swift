import Testing

@testable import Journal

@Suite struct RepeatGateTests {
    private let second: Int64 = 1_000_000_000

    @Test func logsTheFirstThenEveryTenthMinuteThenTheEnd() {
        var gate = RepeatGate()
        let first = gate.occurred(at: 0)
        #expect(first == .first)
        var logged: [Int64: RepeatGate.Verdict] = [:]
        for at in stride(from: 60, through: 1500, by: 60) {
            let verdict = gate.occurred(at: Int64(at) * second)
            if verdict != .suppressed { logged[Int64(at)] = verdict }
        }
        #expect(logged == [600: .again(count: 10), 1200: .again(count: 10)])
        let isEndLogged = gate.ended(at: 1510 * second)
        #expect(isEndLogged)
    }

    @Test func anEndWithoutAProblemIsNotLogged() {
        var gate = RepeatGate()
        let isEndLogged = gate.ended(at: 5)
        #expect(!isEndLogged)
    }

    @Test func aProblemThatStayedAwayForTenMinutesIsNewAgain() {
        var gate = RepeatGate()
        _ = gate.occurred(at: 0)
        _ = gate.ended(at: second)
        let early = gate.occurred(at: 2 * second)
        #expect(early == .suppressed)
        let isEndLogged = gate.ended(at: 3 * second)
        #expect(!isEndLogged)
        // What was suppressed is counted then.
        let late = gate.occurred(at: 603 * second)
        #expect(late == .again(count: 2) && late.words == "; 2 times since the last message")
        _ = gate.ended(at: 604 * second)
        let new = gate.occurred(at: 1204 * second)
        #expect(new == .first && new.words.isEmpty)
    }

    @Test func aProblemThatComesAndGoesIsLoggedLessAndLess() {
        var gate = RepeatGate()
        var begins: [Int64] = []
        var (logged, ends) = (0, 0)
        for at in stride(from: Int64(0), to: 3600, by: 2) {
            switch gate.occurred(at: at * second) {
            case .first:
                begins.append(at)
                logged += 1
            case .again(let count):
                begins.append(at)
                logged += count
            case .suppressed: break
            }
            if gate.ended(at: (at + 1) * second) { ends += 1 }
        }
        #expect(begins == [0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030])
        #expect(ends == begins.count)
        #expect(logged == 3030 / 2 + 1)
    }

    /// Otherwise it would not be logged as long as it lasts.
    @Test func aProblemThatCameBackTooSoonIsLoggedOnceItStays() {
        var gate = RepeatGate()
        _ = gate.occurred(at: 0)
        _ = gate.ended(at: second)
        var logged: [Int64: RepeatGate.Verdict] = [:]
        for at in Int64(2)...620 {
            let verdict = gate.occurred(at: at * second)
            if verdict != .suppressed { logged[at] = verdict }
        }
        #expect(logged == [10: .again(count: 9), 610: .again(count: 600)])
        let isEndLogged = gate.ended(at: 622 * second)
        #expect(isEndLogged)
    }

    @Test func newsIsLoggedInAnyCaseAndSoIsItsEnd() {
        var gate = RepeatGate()
        _ = gate.occurred(at: 0)
        _ = gate.ended(at: second)
        let news = gate.occurred(at: 2 * second, isNews: true)
        #expect(news == .again(count: 1) && news.words.isEmpty)
        let isEndLogged = gate.ended(at: 3 * second)
        #expect(isEndLogged)
    }
}
