import Foundation
import Protocols
import Testing

@testable import Network

/// Against the server of the openssl command, which ca-certificates brings along.
@Suite struct TLSTests {
    @Test func trustsTheGivenAuthorityAlone() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let loop = try PollLoop(.init(version: "1", caFile: server.certificate))
        let outcome = try loop.outcome(server.request)
        #expect(outcome.reply?.status == 200, "\(outcome)")
        let again = try loop.reply(server.request)
        #expect(again.status == 200 && String(decoding: again.body, as: UTF8.self).contains("Reused, TLSv1.3"))
        let failure = try PollLoop().failure(server.request)
        #expect(failure.word == "tls" && failure.message.contains("certificate"), "\(failure)")
    }

    @Test(.bug(id: 13)) func tellsHowLongEachLayerTookAndWhenTheCertificateEnds() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let measuring = HTTPUplink.Settings(version: "1", caFile: server.certificate, measuresStages: true)
        let stages = try #require(try PollLoop(measuring).outcome(server.request).stages)
        #expect(stages.connect != nil && stages.handshake != nil && stages.firstByte != nil, "\(stages)")
        #expect(stages.certificate == CertificateDates(from: 1_577_836_800, until: 2_524_521_600))
        let unmeasured = try PollLoop(.init(version: "1", caFile: server.certificate)).outcome(server.request)
        #expect(unmeasured.stages == nil)
        // What is refused, or does not come so far, has no time.
        let stranger = try #require(
            try PollLoop(.init(version: "1", measuresStages: true)).outcome(server.request).stages)
        #expect(stranger.handshake == nil && stranger.firstByte == nil && stranger.certificate == nil, "\(stranger)")
    }

    @Test func refusesACertificateOfAnotherName() throws {
        let server = try TLSServer(name: "DNS:elsewhere.example")
        let failure = try PollLoop(.init(version: "1", caFile: server.certificate)).failure(server.request)
        #expect(failure.word == "tls" && failure.message.contains("127.0.0.1"), "\(failure)")
    }

    /// Where nobody vouches for the clock, it is to blame.
    @Test func pointsToTheClockWhenTheCertificateIsOutOfDate() throws {
        let server = try TLSServer(name: "IP:127.0.0.1", until: "20210101000000Z")
        for isClockTrusted in [true, false] {
            let loop = try PollLoop(.init(version: "1", caFile: server.certificate), isClockTrusted: isClockTrusted)
            let failure = try loop.failure(server.request)
            #expect(failure.word == (isClockTrusted ? "tls" : "clock"))
            #expect(failure.message.hasSuffix("is the clock of this device right?"), "\(failure)")
        }
    }

    @Test func refusesAVersionBelow12() throws {
        let server = try TLSServer(name: "IP:127.0.0.1", options: ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
        let failure = try PollLoop(.init(version: "1", caFile: server.certificate)).failure(server.request)
        #expect(failure.word == "tls")
    }
}
