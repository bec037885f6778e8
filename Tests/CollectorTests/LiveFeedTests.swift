import Testing
import WaypostCore

@testable import waypost_collector

/// What pages are sent, each from where it was.
@Suite struct LiveFeedTests {
    private func feed(historyBytes: Int = 1 << 20) -> LiveFeed {
        LiveFeed(run: "a1", counters: "{}", historyBytes: historyBytes, now: { 1000 })
    }

    private func receive(_ feed: LiveFeed, _ count: Int) {
        for number in 0..<count { feed.received(LiveRequest(bodyBytes: number), counters: "{}") }
    }

    private func next(_ reader: LiveReader?) async -> String {
        String(decoding: await reader?.next() ?? [], as: UTF8.self)
    }

    /// The numbers of the events, and whether it is the whole state.
    private func ids(_ text: String) -> [String] {
        text.split(separator: "\n").filter { $0.hasPrefix("id: ") }.map { String($0.dropFirst(4)) }
    }

    @Test func aNewPageStartsWithTheWholeStateAndGoesOnFromThere() async {
        let feed = feed()
        receive(feed, 2)
        let reader = feed.reader(after: nil)
        let first = await next(reader)
        #expect(first.hasPrefix("retry: 1000\nevent: reset\nid: a1-0\ndata: {\"run\":\"a1\""))
        #expect(ids(await next(reader)) == ["a1-1", "a1-2"])
        receive(feed, 1)
        #expect(ids(await next(reader)) == ["a1-3"])
    }

    @Test func aPageThatComesBackGetsWhatItMissed() async {
        let feed = feed()
        receive(feed, 5)
        let text = await next(feed.reader(after: "a1-3"))
        #expect(ids(text) == ["a1-4", "a1-5"])
        #expect(!text.contains("event: reset"))
    }

    /// Of another life of the collector, of the future, or no id of ours.
    @Test(arguments: ["b2-3", "a1-6", "a1--1", "", "nonsense\r\nid: a1-1"])
    func anIdThatIsNotKnownStartsAgain(id: String) async {
        let feed = feed()
        receive(feed, 5)
        #expect(await next(feed.reader(after: id)).hasPrefix("retry: 1000\nevent: reset\nid: a1-0\n"))
    }

    /// The memory is bounded: who was away too long starts again with what there is.
    @Test func aPageThatWasAwayTooLongStartsAgain() async throws {
        let feed = feed(historyBytes: 1000)
        receive(feed, 100)
        let reader = feed.reader(after: "a1-3")
        let reset = await next(reader)
        #expect(reset.contains("event: reset"))
        let rest = await next(reader)
        let (known, numbers) = (ids(reset), ids(rest))
        let start = try #require(known.first.flatMap { Int($0.dropFirst(3)) })
        #expect(numbers.first == "a1-\(start + 1)" && numbers.last == "a1-100")
        #expect(rest.utf8.count <= 1000)
        #expect(ids(await next(feed.reader(after: "a1-99"))) == ["a1-100"])
    }

    @Test func aPageThatKnowsAllWaitsForTheNextEventOrBeat() async {
        let feed = feed()
        receive(feed, 1)
        let reader = feed.reader(after: "a1-1")
        async let waited = next(reader)
        // Whether it waits already or not, a request is what it gets.
        receive(feed, 1)
        #expect(ids(await waited) == ["a1-2"])
        let beats = Task { while !Task.isCancelled { feed.beat(); await Task.yield() } }
        let beat = await next(reader)
        beats.cancel()
        #expect(beat.hasPrefix("event: beat\ndata: ") && ids(beat).isEmpty)
        receive(feed, 1)
        #expect(ids(await next(reader)) == ["a1-3"])
    }

    @Test func pagesBeyondTheLimitAreRefusedUntilOneCloses() {
        let feed = feed()
        var readers = (0..<LiveFeed.readersMax).map { _ in feed.reader(after: nil) }
        #expect(readers.allSatisfy { $0 != nil })
        #expect(feed.reader(after: nil) == nil)
        readers.removeLast()
        #expect(feed.reader(after: nil) != nil)
    }

    /// A page that is opened later is told of settings and commands too.
    @Test func theWholeStateHasTheSettingsOfEachDevice() async throws {
        let feed = feed(historyBytes: 1)
        let reports = [
            #"{"version":16,"state":"applied","in_force":16}"#,
            #"{"version":17,"state":"trial","clamped":{"a":["1m","10m"]},"rejected":{"b":"not allowed"}}"#,
        ]
        for report in reports {
            let report = try #require(JSONReader.read(Array(report.utf8)))
            feed.changed(LiveRemote(device: "van-7", desired: 17, report: report, commands: []))
        }
        let reset = await next(feed.reader(after: nil))
        let remotes = #"""
            "remotes":[{"at":1000,"device":"van-7","desired":17,"reported":{"version":17,"state":"trial",\#
            "clamped":[["a","1m","10m"]],"rejected":[["b","not allowed"]],"is_cut":false},"commands":[]}]
            """#
        #expect(reset.contains(remotes), "\(reset)")
    }

    /// A device can say anything.
    @Test func aReportIsCutToWhatCanBeShown() throws {
        let members = (0..<20).map { #""k\#($0)":["\#(String(repeating: "x", count: 1000))",[1,{"a":2}],3]"# }
        let text = #"{"version":"x","state":null,"clamped":{\#(members.joined(separator: ","))},"rejected":[]}"#
        let report = try #require(JSONReader.read(Array(text.utf8)))
        let remote = LiveRemote(device: "van-7", desired: nil, report: report, commands: [])
        let shown = try #require(remote.report)
        #expect(shown.clamped.count == 8 && shown.isCut && shown.rejected.isEmpty)
        #expect(shown.clamped.allSatisfy { $0.count == 3 && $0[1].utf8.count <= 120 && $0[2] == #"[1,{"a":2}]"# })
        #expect(shown.version == 0 && shown.state == "unknown")
        #expect(LiveEvents.remote(remote, at: 0).count < 4000)
    }
}
