import Delivery
import Foundation
import TestSupport
import Testing

@testable import Agent

/// What every status means to every profile of waypost, against the reviewed table in `fixtures/verdicts.tsv`.
/// `make expected` writes it anew; the commit says why.
@Suite struct VerdictTableTests {
    private static let file = BuiltProducts.repository.appendingPathComponent("fixtures/verdicts.tsv")
    /// Nothing, and what each of the profiles that read bodies would take.
    private static let bodies = [
        ("an empty reply", ""),
        ("a reply in order", #"{"status":"Ok","result":"ok","Errors":[],"offsets":[\#(offsets)]}"#),
    ]

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
        case .retry(.transport, _): "retry, broken"
        case .retry: "retry"
        case .authStop: "auth_stop"
        case .goneStop(410): "gone_stop, for good"
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
            return word(settings.verdict(for: UplinkOutcome(.reply(reply)), of: batch))
        }
    }

    private func table() throws -> String {
        var lines: [String] = []
        for (name, body) in Self.bodies {
            var groups: [(profiles: [String], words: [String])] = []
            for profile in ProfileFixture.all {
                let words = words(try profile.settings(), body)
                if let place = groups.firstIndex(where: { $0.words == words }) {
                    groups[place].profiles.append(profile.name)
                } else {
                    groups.append(([profile.name], words))
                }
            }
            lines.append("\(name)\t" + groups.map { $0.profiles.joined(separator: ", ") }.joined(separator: "\t"))
            var start = 0
            for index in 1...500 {
                let row = groups.map { $0.words[start] }
                if index < 500, groups.map({ $0.words[index] }) == row { continue }
                let range = index - start == 1 ? "\(100 + start)" : "\(100 + start)-\(99 + index)"
                lines.append("\(range)\t" + row.joined(separator: "\t"))
                start = index
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    @Test func eachStatusMeansWhatWasReviewed() throws {
        let table = try table()
        if ProcessInfo.processInfo.environment["WAYPOST_EXPECTED"] == "write" {
            return try table.write(to: Self.file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: Self.file, encoding: .utf8) == table, "if it is meant: make expected")
    }

    /// Whatever a profile says, these hold.
    @Test(arguments: ProfileFixture.all)
    func noProfileLosesRowsByAStatus(_ profile: ProfileFixture) throws {
        let settings = try profile.settings()
        for (_, body) in Self.bodies {
            for (status, word) in zip(100...599, words(settings, body)) {
                #expect(word != "accepted" || (200...299).contains(status), "\(status) \(word)")
                // Only these say something about a record.
                #expect(!word.hasPrefix("split") || [400, 413, 414, 422].contains(status), "\(status) \(word)")
                #expect(status < 500 || word.hasPrefix("retry") || [501, 505].contains(status), "\(status) \(word)")
                #expect([401, 402, 403, 407].contains(status) == (word == "auth_stop"), "\(status) \(word)")
                #expect(!(300...399).contains(status) || word == "retry, redirected", "\(status) \(word)")
            }
        }
    }
}
