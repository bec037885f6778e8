import ConfigurationTestSupport
import Sensors
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Daemon
@testable import WaypostControl

/// What the reply to `status` says of the receiver.
@Suite struct StatusReportTests {
    private let bench: DeliveryBench
    private let source = FixesOnDemand()
    private let pipeline: Pipeline

    init() throws {
        bench = try DeliveryBench(path: "/nonexistent/outbox.db", batchSize: 5)
        pipeline = bench.pipeline(reading: source)
        source.state = .receiving
    }

    private func report(at now: EventTime, _ deliveries: [EndpointDelivery] = []) -> StatusReport {
        bench.report(of: pipeline, at: now, deliveries)
    }

    private func fix(_ date: Int64?, at now: EventTime) {
        source.date = date.map(UTCTime.init(milliseconds:))
        pipeline.deviceChanged(nil, at: now)
    }

    /// Doctor compares both with the clock of the host: it said that a right clock was ten minutes ahead once.
    @Test(.bug(id: 13)) func theAgeOfTheLastFixIsThatOfTheSameFix() {
        let start = bench.loop.now
        #expect(report(at: start).status.motion.lastFixAge == nil)
        fix(1_700_000_000_000, at: start)
        for second in 1...600 { fix(nil, at: start + .seconds(second)) }
        let report = report(at: start + .seconds(600))
        #expect(report.status.motion.lastFix == "2023-11-14T22:13:20.000Z" && report.status.motion.lastFixAge == 600)
        #expect(report.line.contains("last fix 10 min"))
        pipeline.close()
    }

    @Test func howTheAssetTravelsIsShown() {
        let start = bench.loop.now
        #expect(report(at: start).status.motion.activity == nil)
        for second in 0..<90 { fix(1_700_000_000_000 + Int64(second) * 1000, at: start + .seconds(second)) }
        let motion = report(at: start + .seconds(90)).status.motion
        #expect(motion.state == "stationary" && motion.activity == "still" && motion.activityConfidence == 100)
        pipeline.close()
    }

    /// At ten fixes a second, a cold start passes; at one a minute, an hour is too long to wait.
    static let rows: [(Double, Int, Bool)] = [
        (0.1, 599, false), (0.1, 601, true), (60, 4, false), (60, 5, true), (10, 6, false), (10, 7, true),
    ]

    @Test(arguments: rows) func fixesThatAreNotBelievedCountAfterAMinute(interval: Double, fixes: Int, isProblem: Bool)
    {
        let start = bench.loop.now
        for number in 0..<fixes { fix(nil, at: start + .milliseconds(Int64(Double(number) * interval * 1000))) }
        let report = report(at: start + .seconds(3600))
        let words =
            "none of the last \(fixes) fixes was believed: the receiver gives no date: let it send RMC or ZDA sentences"
        #expect(report.status.source.unbelieved == (isProblem ? words : nil))
        #expect(report.problems.contains("receiver: \(words)") == isProblem)
        #expect(report.line.contains("no fix yet"))
        fix(1_700_000_000_000, at: start + .seconds(3600))
        #expect(self.report(at: start + .seconds(3600)).status.source.unbelieved == nil)
        pipeline.close()
    }

    @Test func theTokenOfAnEndpointHasATimeAndIsNotShown() throws {
        // {"iat":1699999000,"exp":1700002600}
        let token = "eyJhbGciOiJub25lIn0.eyJpYXQiOjE2OTk5OTkwMDAsImV4cCI6MTcwMDAwMjYwMH0.c2ln"
        let text =
            "\(smallest)[[endpoint]]\nbase_url = \"https://f.example\"\n"
            + "auth = { kind = \"bearer\", token = \"env:T\" }\n"
        let config = try loaded(text, testEnvironment(["T": token])).config.endpoints[0]
        let credentials = EndpointCredentials(
            config, environment: ["T": token], uplink: bench.uplink, log: .silent, loop: bench.loop,
            clock: .init(hostMs: { 1_700_000_000_000 }, isSynchronised: { true }, receiverMs: { _ in nil }))
        bench.delivery.reload([.init(settings: config.settings, credentials: credentials)], at: bench.loop.now)
        let status = report(at: bench.loop.now, [bench.delivery]).status
        #expect(status.endpoints.first?.tokenExpires == 2600 && status.endpoints.first?.tokenValidity == 3600)
        #expect(status.endpoints.first?.tokenProblem == nil)
        let reply = String(decoding: ControlFrame.reply(to: nil) { status }, as: UTF8.self)
        #expect(reply.contains("\"token_expires_s\":2600.0") && !reply.contains("eyJ"))
    }

    @Test func theSatellitesOfALineThatIsSilentAreNotShown() {
        let start = bench.loop.now
        fix(1_700_000_000_000, at: start)
        let before = report(at: start).status.source
        #expect(before.satellitesUsed == 12 && before.satellitesInView == 9 && before.satellitesStrong == 7)
        #expect(before.bestCN0 == 45 && before.medianCN0 == 35)
        source.state = .silent
        fix(1_700_000_000_000, at: start + .seconds(20))
        let after = report(at: start + .seconds(20)).status.source
        #expect(after.state == "silent" && after.satellitesUsed == nil && after.satellitesInView == nil)
        #expect(after.satellitesStrong == nil && after.bestCN0 == nil && after.medianCN0 == nil)
        pipeline.close()
    }
}
