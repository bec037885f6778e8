import ProfilesTestSupport
import Testing
import WaypostCore

@testable import Profiles
@testable import Protocols

/// What the reason codes of a broker mean for the rows of a batch.
@Suite struct BrokerVerdictTests {
    private static let broker = TransportFailure.broken("cut")

    struct Case: Sendable, CustomTestStringConvertible {
        var reasons: [MQTTReason?]
        var ending: MQTTReason?
        var failure: TransportFailure?
        var unanswered = BrokerReply.Unanswered.nothing
        var verdict: Verdict
        var testDescription: String { "\(reasons.map { $0?.code ?? "-" }) \(ending?.code ?? "")" }

        init(
            _ reasons: [MQTTReason?], ending: MQTTReason? = nil, failure: TransportFailure? = nil,
            leaving unanswered: BrokerReply.Unanswered = .nothing, _ verdict: Verdict
        ) {
            (self.reasons, self.ending, self.failure, self.verdict) = (reasons, ending, failure, verdict)
            self.unanswered = unanswered
        }
    }

    private static func partly(
        refused: [Int64: String] = [:], again: Set<Int64> = [], needsCredential: Bool = false,
        isMisconfigured: Bool = false, isRefused: Bool = false, lacksSubscriber: Bool = false, isTaken: Bool = false,
        after: Duration? = nil
    ) -> Verdict {
        var items = ItemVerdicts()
        (items.refused, items.again) = (refused, again)
        (items.needsCredential, items.after) = (needsCredential, after)
        (items.lacksSubscriber, items.isTaken) = (lacksSubscriber, isTaken)
        (items.isMisconfigured, items.isRefused) = (isMisconfigured, isRefused)
        return .partlyAccepted(items)
    }

    private static let cases: [Case] = [
        Case([.success, .success], .accepted),
        Case([], .accepted),
        // Nobody stored it.
        Case([.noMatchingSubscribers], .retry(.noSubscriber, after: nil)),
        Case([.success, .noMatchingSubscribers], partly(again: [2], lacksSubscriber: true)),
        Case([.success, .badPayload, .success], partly(again: [2], isRefused: true)),
        Case([.badPayload, .badPayload], .split(status: 0x99)),
        Case([.packetTooLarge], .tooLarge(status: 0x95, after: nil)),
        Case([.notAuthorised, .notAuthorised], .authStop(status: 0x87)),
        Case([.success, .notAuthorised], partly(again: [2], needsCredential: true)),
        Case([.badTopic], .misconfigured(status: 0x90)),
        Case([.success, .badTopic], partly(again: [2], isMisconfigured: true)),
        Case([.quotaExceeded], .retry(.reason(0x97), after: nil)),
        Case([.success, .quotaExceeded], partly(again: [2], after: .seconds(10))),
        Case([.unspecified], .retry(.reason(0x80), after: nil)),
        Case([MQTTReason(rawValue: 0xFE)], .retry(.reason(0xFE), after: nil)),
        // A code below 0x80 that no standard has is no success.
        Case([MQTTReason(rawValue: 0x42)], .retry(.reason(0x42), after: nil)),
        // Nor is one of SUBACK or UNSUBACK.
        Case([MQTTReason(rawValue: 0x01)], .retry(.reason(0x01), after: nil)),
        Case([.success, MQTTReason(rawValue: 0x11)], partly(again: [2])),
        Case([.success, nil, nil], failure: broker, partly(again: [2, 3])),
        Case([nil], failure: broker, .retry(.transport(broker), after: nil)),
        Case([nil], ending: .badCredential, failure: broker, .authStop(status: 0x86)),
        Case([], ending: .badCredential, .authStop(status: 0x86)),
        Case([nil], ending: .badClientID, .misconfigured(status: 0x85)),
        Case([nil], ending: .unsupportedVersion, .misconfigured(status: 0x84)),
        // Of several nobody knows which is to blame, and of a connection that had nothing to answer none is.
        Case([nil, nil], failure: broker, leaving: .several, .retry(.lost(broker, isAlone: false), after: nil)),
        Case([nil, nil], failure: broker, leaving: .oneAlone, .retry(.lost(broker, isAlone: true), after: nil)),
        Case(
            [nil, nil], ending: .packetTooLarge, failure: broker, leaving: .several,
            .retry(.lost(broker, isAlone: false), after: nil)),
        Case(
            [nil, nil], ending: .packetTooLarge, failure: broker, leaving: .oneAlone,
            .retry(.lost(broker, isAlone: true), after: nil)),
        Case([nil], ending: .malformedPacket, failure: broker, .retry(.transport(broker), after: nil)),
        // What was acknowledged before counts.
        Case([nil], ending: .sessionTakenOver, failure: broker, leaving: .several, .collision),
        Case(
            [.success, nil], ending: .sessionTakenOver, failure: broker, leaving: .oneAlone,
            partly(again: [2], isTaken: true)),
        Case([.success], ending: .sessionTakenOver, failure: broker, partly(isTaken: true)),
        // No client can take over a message.
        Case([.sessionTakenOver], .retry(.reason(0x8E), after: nil)),
        Case([nil], ending: .serverUnavailable, failure: broker, .retry(.transport(broker), after: nil)),
    ]

    @Test(arguments: cases) func meansForHistory(_ item: Case) {
        let reply = BrokerReply(
            item.reasons, ending: item.ending, failure: item.failure, unanswered: item.unanswered)
        let rows = item.reasons.indices.map { Sample.bare(seq: Int64($0) + 1) }
        #expect(reply.verdict(of: Sample.batch(rows), rowsPerMessage: 1, needsSubscriber: true) == item.verdict)
    }

    @Test func nobodyHasToListenForTheNewestAlone() {
        let reply = BrokerReply([.noMatchingSubscribers])
        #expect(reply.verdict(of: Sample.batch([Sample.row]), rowsPerMessage: 1, needsSubscriber: false) == .accepted)
    }

    @Test func aLossCountsOnlyAgainstASoleMessage() {
        let outcome = UplinkOutcome(.failed(Self.broker))
        let verdicts = [true, false].map { Verdict.retry(.lost(Self.broker, isAlone: $0), after: nil) }
        #expect(verdicts.map { $0.blame(in: outcome) } == [.oneRow, .noRow])
        #expect(Verdict.retry(.noSubscriber, after: nil).blame(in: outcome) == .noRow)
    }

    /// A refused connection says nothing about rows; a refused message may be about its topic.
    @Test func anAnswerCountsAgainstRowsOnlyIfItIsToAMessage() {
        func blame(_ reply: BrokerReply) -> Blame {
            Verdict.authStop(status: 0x87).blame(in: UplinkOutcome(.published(reply)))
        }
        #expect(blame(BrokerReply([nil], ending: .notAuthorised, failure: Self.broker)) == .noRow)
        let several = BrokerReply([nil, nil], ending: .notAuthorised, failure: Self.broker, unanswered: .several)
        #expect(blame(several) == .noRow)
        #expect(
            blame(BrokerReply([nil], ending: .notAuthorised, failure: Self.broker, unanswered: .oneAlone)) == .oneRow)
        #expect(blame(BrokerReply([.notAuthorised])) == .rowOrSender)
        let withheld = UplinkOutcome(.failed(.credential("")), written: .nothing)
        #expect(Verdict.authStop(status: 401).blame(in: withheld) == .noRow)
    }

    /// Which of several rows in one message is to blame is found when it is alone.
    @Test func aRefusedMessageOfSeveralRowsComesAgain() {
        let rows = (1...5).map { Sample.bare(seq: $0) }
        let reply = BrokerReply([.success, .badPayload, .badPayload])
        #expect(
            reply.verdict(of: Sample.batch(rows), rowsPerMessage: 2, needsSubscriber: true)
                == Self.partly(again: [3, 4, 5], isRefused: true))
    }

    /// Whatever the codes are: rows are only removed that the broker has, or has refused one by one.
    @Test func noCodeLosesRows() {
        var wrong: [String] = []
        for code in UInt8.min...UInt8.max {
            let reason = MQTTReason(rawValue: code)
            for reasons: [MQTTReason?] in [[reason], [.success, reason], [reason, nil], [nil, reason]] {
                let rows = reasons.indices.map { Sample.bare(seq: Int64($0) + 1) }
                let reply = BrokerReply(reasons, failure: Self.broker)
                let notTaken = reasons.indices.filter { reasons[$0]?.meaning != .accepted }
                switch reply.verdict(of: Sample.batch(rows), rowsPerMessage: 1, needsSubscriber: true) {
                case .accepted: if !notTaken.isEmpty { wrong.append("\(code) is accepted") }
                case .partlyAccepted(let items):
                    for index in notTaken {
                        let (seq, isRefused) = (Int64(index) + 1, items.refused[Int64(index) + 1] != nil)
                        let mayBeRefused = reasons[index]?.meaning == .bisect
                        if items.again.contains(seq) == isRefused || (isRefused && !mayBeRefused) {
                            wrong.append("\(code) of row \(seq)")
                        }
                    }
                default: break
                }
            }
        }
        #expect(wrong.isEmpty)
    }
}
