import Configuration
import Foundation
import Profiles
import Protocols
import TestSupport
import Testing

@testable import WaypostCLI

/// What every status means to every profile of waypost, against the reviewed table in `fixtures/verdicts.tsv`.
/// `make expected` rewrites it; the commit says why.
@Suite struct VerdictTableTests {
    private static let file = BuiltProducts.repository.appendingPathComponent("fixtures/verdicts.tsv")
    /// Nothing, and what each of the profiles that read bodies would take.
    private static let bodies = [
        ("an empty reply", ""),
        ("a reply in order", #"{"status":"Ok","result":"ok","Errors":[],"offsets":[\#(offsets)]}"#),
    ]

    /// - Parameter body: of `bodies`.
    private static func body(_ body: String, of profile: ProfileFixture) -> String {
        profile.name == "home-assistant" && body.hasPrefix("{") ? "[]" : body
    }

    private static var offsets: String {
        ProfileSample.batch.rows.map { _ in #"{"error_code":null}"# }.joined(separator: ",")
    }

    private func word(_ verdict: Verdict) -> String {
        switch verdict {
        case .accepted: "accepted"
        case .partlyAccepted: "partly accepted"
        case .retry(.redirected, _): "retry, redirected"
        case .retry(.conflict, _): "retry, conflict"
        case .retry(.notConfirmed, _): "not confirmed"
        case .retry(.unclear, _): "unclear"
        case .retry(.page, _): "web page"
        case .retry(.transport, _): "retry, broken"
        case .retry: "retry"
        case .authStop: "auth_stop"
        case .goneStop(410, _): "gone_stop, for good"
        case .goneStop: "gone_stop"
        case .misconfigured: "misconfigured"
        case .encodingRefused: "misconfigured, without gzip"
        case .split: "split"
        case .tooLarge: "split, too large"
        case .collision: "collision"
        }
    }

    private func words(_ settings: EndpointSettings, _ body: String) -> [String] {
        let batch = Batch(
            endpoint: settings.name, id: "b", rows: ProfileSample.batch.rows, sentMs: nil, outbox: ProfileSample.outbox)
        return (100...599).map { status in
            let reply = UplinkReply(status: status, body: Array(body.utf8))
            return word(AnswerJudge(settings).verdict(for: UplinkOutcome(.reply(reply)), of: batch))
        }
    }

    /// A row per range of statuses: the rules of HTTP, then of each profile only where it differs from them, so that another
    /// profile adds rows and changes none.
    private func table() throws -> String {
        var lines = ["reply\tprofile\tstatus\tverdict"]
        let plain = EndpointSettings(name: "main", baseURL: "http://127.0.0.1", device: "van-7")
        for (reply, body) in Self.bodies {
            let usual = words(plain, body)
            lines += rows(usual) { _ in true }.map { "\(reply)\t(HTTP)\t\($0)" }
            for profile in ProfileFixture.ofHTTP {
                let own = words(try profile.settings(), Self.body(body, of: profile))
                let rows = rows(own) { own[$0] != usual[$0] }
                lines += (rows.isEmpty ? ["100-599\tas HTTP"] : rows).map { "\(reply)\t\(profile.name)\t\($0)" }
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// `STATUS[-STATUS] <tab> VERDICT` for the chosen places of a list that begins with status 100.
    private func rows(_ words: [String], where isShown: (Int) -> Bool) -> [String] {
        var rows: [String] = []
        var start = 0
        for index in 1...words.count {
            if index < words.count, words[index] == words[start], isShown(index) == isShown(start) { continue }
            let range = index - start == 1 ? "\(100 + start)" : "\(100 + start)-\(99 + index)"
            if isShown(start) { rows.append("\(range)\t\(words[start])") }
            start = index
        }
        return rows
    }

    @Test func eachStatusMeansWhatWasReviewed() throws {
        let table = try table()
        if ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write" {
            return try table.write(to: Self.file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: Self.file, encoding: .utf8) == table, "if it is meant: make expected")
    }

    /// What `waypost check --print` shows is what is done: each status stands in one row, with the verdict that it gets.
    @Test(arguments: ProfileFixture.ofHTTP)
    func theShownTableIsTheOneInForce(_ profile: ProfileFixture) throws {
        let settings = try profile.settings()
        let rows = AnswerTable(settings.profile.response).rows
        let names: [String: String] = [
            "retry, redirected": "redirected", "retry, conflict": "conflict", "gone_stop, for good": "gone",
            "misconfigured, without gzip": "without gzip", "split, too large": "too large",
        ]
        let taken = Set(rows.filter { $0.verdict == "collision" }.flatMap { $0.statuses.joined() })
        var shown: [Int: [String]] = [:]
        for row in rows where row.verdict != "collision" {
            for status in row.statuses.joined() { shown[status, default: []].append(row.verdict) }
        }
        var wrong: [Int] = []
        let body = Self.body(Self.bodies[1].1, of: profile)
        for (status, word) in zip(100...599, words(settings, body)) where status >= 200 {
            let found = shown[status] ?? []
            let isRight = word == "collision" ? taken.contains(status) : found == [names[word] ?? word]
            if !isRight || found.count != 1 { wrong.append(status) }
        }
        #expect(wrong == [])
    }

    @Test func theTableIsShownAsComments() throws {
        func shown(_ name: String) throws -> String { try "\(AnswerReport(ProfileFixture(name: name).config()))" }
        let shownForNextBillion = try shown("nextbillion")
        #expect(
            shownForNextBillion == """

                # What an answer means to endpoint nextbillion, profile nextbillion:
                #   collision      409: another device reports this asset: nothing is sent; before an acceptance the endpoint pauses
                #   collision      if message or msg has "not bound", whatever the status; another device reports this asset: nothing is sent; before an acceptance the endpoint pauses
                #   accepted       200-299: if status is "Ok", or not there
                #   not confirmed  another value there: sent again; after five times the batch is taken apart
                #   web page       a success with a page of HTML: the same batch again
                #   unclear        a success whose body is cut short or of another form: the same batch again
                #   retry          408, 421, 423-425, 429, 500, 502-504, 506-510, 512-599: sent again
                #   redirected     300-399, 511: never followed; sent again, after five times the endpoint pauses
                #   conflict       409: sent again; after five times the endpoint pauses
                #   split          400, 422: taken apart to find the row to blame
                #   too large      413-414: sent in halves
                #   auth_stop      401-403, 407: the credential is read again, then the endpoint pauses
                #   gone_stop      404: the endpoint pauses; after an acceptance only the fifth time
                #   gone           410: the endpoint pauses, and stops at the seventh time
                #   misconfigured  405-406, 411-412, 416-420, 426-428, 430-499, 501, 505: the endpoint pauses
                #   without gzip   415: sent without compression, then the endpoint pauses
                #   no answer      including a cut-off head or only a 1xx: sent again

                """)
        let aws = try shown("aws-location")
        #expect(
            aws.contains(#"200-299: without the rows that Errors refuses (sent again: "ThrottlingError", "#), "\(aws)")
        #expect(try shown("traccar").contains("#   gone_stop      400, 404: "))
        #expect(try shown("csv").contains("#   accepted       200-299\n"))
    }

    /// Bodies beside each other under labels that say something else: pages are answers to no profile, all others are judged as
    /// docs/profiles.md says.
    @Test(arguments: ProfileFixture.ofHTTP)
    func aPageIsNoAnswerWhateverItsLabel(_ profile: ProfileFixture) throws {
        let settings = try profile.settings()
        func word(_ body: String, _ type: String, cut: Bool = false) -> String {
            let batch = Batch(
                endpoint: settings.name, id: "b", rows: ProfileSample.batch.rows, sentMs: nil,
                outbox: ProfileSample.outbox)
            let reply = UplinkReply(
                status: 200, headers: [.init("content-type", type)], body: Array(body.utf8), bodyIncomplete: cut)
            return self.word(AnswerJudge(settings).verdict(for: UplinkOutcome(.reply(reply)), of: batch))
        }
        for type in ["text/html", "application/json", "text/plain"] {
            for cut in [false, true] {
                #expect(word("\u{FEFF}<!-- x --><!DOCTYPE html><title>Log in</title>", type, cut: cut) == "web page")
            }
            #expect(word("<!doc", type, cut: true) == "unclear")
        }
        let empty =
            switch profile.name {
            case "aws-location", "kafka-rest": "unclear"
            case "overland", "home-assistant": "not confirmed"
            default: "accepted"
            }
        let readsBodies = settings.profile.response.readsBodies && profile.name != "nextbillion"
        #expect(word("", "text/html") == empty)
        #expect(word("OK", "text/html") == (readsBodies ? "unclear" : "accepted"))
        #expect(word(Self.body(Self.bodies[1].1, of: profile), "text/html") == "accepted")
    }

    @Test func theReasonsOfABrokerAreShownAsComments() throws {
        let shown = try "\(AnswerReport(ProfileFixture(name: "waypost-mqtt").config()))"
        let held = "#   not confirmed  0x10: not stored: only the oldest is sent again\n"
        #expect(shown.contains(held), "\(shown)")
        #expect(
            shown.contains(
                "#   taken          0x8E: another client has this client id: nothing is sent (a pause before any acceptance)\n"
            ))
        let latest = try "\(AnswerReport(ProfileFixture(name: "home-assistant-mqtt").config()))"
        #expect(latest.contains("#   not confirmed  0x10: settled, since only the newest counts\n"))
    }

    /// Whatever a profile says, these hold.
    @Test(arguments: ProfileFixture.ofHTTP)
    func noProfileLosesRowsByAStatus(_ profile: ProfileFixture) throws {
        let settings = try profile.settings()
        // Only these say something about a record.
        let ofRecords: Set<Int> = [400, 413, 414, 422]
        let ofCredentials: Set<Int> = [401, 402, 403, 407]
        var wrong: [String] = []
        for (_, body) in Self.bodies {
            for (status, word) in zip(100...599, words(settings, body)) {
                let isRight =
                    switch status {
                    case 200...299: !word.hasPrefix("split") && word != "auth_stop"
                    case 300...399: word == "retry, redirected"
                    case 501, 505: word != "accepted" && !word.hasPrefix("split") && word != "auth_stop"
                    case 500...: word.hasPrefix("retry")
                    default:
                        word != "accepted" && (!word.hasPrefix("split") || ofRecords.contains(status))
                            && ofCredentials.contains(status) == (word == "auth_stop")
                    }
                if !isRight { wrong.append("\(status) \(word)") }
            }
        }
        #expect(wrong == [])
    }
}
