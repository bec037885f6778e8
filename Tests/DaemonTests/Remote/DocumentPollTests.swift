import Protocols
import Testing
import WaypostCore

@testable import Daemon

@Suite struct DocumentPollTests {
    private var poll = DocumentPoll(every: .seconds(3600))
    private var reports = ReportPace()

    private func at(_ seconds: Int64) -> EventTime { EventTime(nanoseconds: seconds * 1_000_000_000) }

    private mutating func asks(_ seconds: Int64) -> Bool { poll.begin(at: at(seconds)) }

    private mutating func follows(_ version: Int64?, known: Int64, _ seconds: Int64) -> Bool {
        poll.heard(version, at: at(seconds)) { $0 > known }
    }

    private mutating func reports(_ seconds: Int64) -> Bool { reports.begin(at: at(seconds)) }

    @Test mutating func asksNothingWhereDocumentsComeByThemselves() {
        #expect(!asks(0))
        poll.hurry(by: at(0))
        #expect(poll.next == nil)
    }

    @Test func aWebPageIsNoDocument() {
        let page = UplinkReply(status: 200, body: Array("<html><title>Sign in</title>".utf8))
        guard case .failed(let words) = HTTPWay.fetched(.reply(page)) else {
            Issue.record("it was taken for a document")
            return
        }
        #expect(words.hasPrefix("status 200 with a web page (\"Sign in\") instead of an answer"), "\(words)")
    }

    @Test mutating func followsAnAnnouncementOnce() {
        poll.schedule(at: at(5000))
        #expect(follows(17, known: 16, 10))
        #expect(asks(10))
        #expect(!asks(10), "one is under way")
        poll.ended(isAnswered: true)
        #expect(!follows(17, known: 16, 1000), "it was asked for, whatever came of it")
        #expect(!follows(nil, known: 16, 1000))
        #expect(follows(18, known: 16, 1000))
        #expect(!follows(19, known: 19, 1000), "it is known")
        #expect(asks(1000))
        poll.ended(isAnswered: true)
        #expect(follows(17, known: 16, 2000), "the server has gone back to it")
    }

    @Test mutating func announcementsDoNotHurryItTwiceAMinute() {
        poll.schedule(at: at(5000))
        #expect(asks(10))
        poll.ended(isAnswered: true)
        #expect(!follows(17, known: 0, 20))
        #expect(poll.next == at(70))
    }

    @Test mutating func aServerThatDoesNotGiveIsAskedEverMoreRarely() {
        poll.schedule(at: at(1_000_000))
        var now: Int64 = 0
        var pauses: [Int64] = []
        for _ in 0..<9 {
            #expect(asks(now))
            poll.ended(isAnswered: false)
            var next = now
            while !follows(17, known: 0, next) { next += 1 }
            pauses.append(next - now)
            now = next
        }
        #expect(pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600])
    }

    @Test mutating func aReportThatIsNotTakenComesAgainEverMoreRarely() {
        #expect(!reports(0), "nobody wants one")
        reports.wanted()
        #expect(reports(0))
        #expect(!reports(0))
        reports.ended(.failed, at: at(0))
        #expect(!reports(119))
        #expect(reports(120))
        reports.ended(.failed, at: at(120))
        #expect(!reports(359))
        #expect(reports(360))
        reports.ended(.settled, at: at(360))
        reports.wanted()
        #expect(reports(361))
    }

    @Test mutating func fewReportsLeaveInAMinute() {
        var sent = 0
        for second in 0..<60 as Range<Int64> {
            reports.wanted()
            if reports(second) { sent += 1 }
            reports.ended(.settled, at: at(second))
        }
        #expect(sent == 4)
    }
}
