import Protocols
import TestSupport
import Testing
import WaypostCore

@testable import Network

/// The connection to a broker that is kept, without a network.
@Suite struct BrokerLinkTests {
    /// Of the first request.
    private static func published(_ reasons: MQTTReason...) -> BrokerLink.Outcome {
        .init(number: 1, result: .published(BrokerReply(reasons)))
    }

    /// The connection ended with these answers.
    private static func cut(
        _ reasons: [MQTTReason?], _ unanswered: BrokerReply.Unanswered
    ) -> UplinkOutcome.Result {
        .published(BrokerReply(reasons, failure: .broken("cut"), unanswered: unanswered))
    }

    @Test func aRequestWithoutMessagesConnectsAndSaysThatTheDeviceIsThere() {
        let bench = BrokerBench(showsPresence: true)
        bench.send(0)
        #expect(bench.isConnecting)
        bench.open()
        #expect(bench.broker.publishes == [.init(id: 1, topic: "status", payload: [1], isRetained: true)])
        #expect(bench.outcomes == [Self.published()])
        // It comes back by itself, since others see that it is away.
        bench.lose()
        #expect(!bench.isConnecting)
        bench.pass(.seconds(61))
        #expect(bench.isConnecting)
        // And at once when our own link comes back.
        bench.open()
        bench.lose()
        bench.reconnect()
        #expect(bench.isConnecting)
    }

    /// It wanted the connection and nothing else: the doctor takes a request that succeeds for a broker that is there.
    @Test func aRequestWithoutMessagesFailsWithTheConnection() {
        let bench = BrokerBench()
        bench.send(0)
        bench.closeUnanswered()
        bench.closeUnanswered()
        #expect(bench.outcomes.map(\.result) == [.failed(.connect("cut"))])
    }

    /// Nobody waits for an answer then: whoever comes next hears it, and does not end the connection of the other in its turn.
    @Test func aTakeoverOfAnIdleConnectionIsToldWithTheNextRequest() {
        let bench = BrokerBench(showsPresence: true)
        bench.open(sending: 1)
        bench.answer(0)
        _ = bench.takeOutcomes()
        bench.dismiss(0x8E)
        bench.pass(.seconds(600))
        #expect(!bench.isConnecting)
        for (count, reasons) in [(2, [nil, nil]), (0, [])] as [(Int, [MQTTReason?])] {
            bench.send(count)
            guard count == 2 else { break }
            #expect(!bench.isConnecting)
            guard case .published(let reply)? = bench.takeOutcomes().last?.result else { return _ = Issue.record("-") }
            #expect(reply.reasons == reasons && reply.ending == .sessionTakenOver)
        }
        #expect(bench.isConnecting, "it was told, and wants to connect all the same")
    }

    /// As mosquitto does by its access rules. Rows go out all the same, and the next connection may say otherwise.
    @Test func topicsOfBirthsThatAreRefusedAreNamed() {
        let bench = BrokerBench(showsPresence: true)
        for (reason, refused) in [(0x87, ["status"]), (0, [])] as [(UInt8, [String])] {
            bench.open(sending: 1)
            bench.answerOne(reason)
            bench.answerAll()
            #expect(bench.takeNews() == [.birthsAnswered(refused: refused, owners: [""])])
            #expect(bench.takeOutcomes().map(\.result) == [.published(BrokerReply([.success]))])
            bench.lose(for: 61)
        }
    }

    /// Until the broker has answered; a refusal is no problem of the births.
    @Test(arguments: [0, 0x87] as [UInt8]) func clearsEachFormerTopicOnce(_ reason: UInt8) {
        let bench = BrokerBench(showsPresence: true, formerTopics: ["old/a", "old/b"])
        bench.open(sending: 1)
        bench.answerOne(reason)
        bench.lose(for: 61)
        bench.open(sending: 1)
        let second = bench.broker.publishes.filter { $0.topic.hasPrefix("old") }
        #expect(second.map(\.topic) == ["old/a", "old/b", "old/b"])
        #expect(second.allSatisfy { $0.payload.isEmpty && $0.isRetained })
        bench.answerAll()
        #expect(bench.takeNews() == [.birthsAnswered(refused: [], owners: [""])])
        bench.lose(for: 61)
        bench.open(sending: 1)
        #expect(bench.broker.publishes.filter { $0.topic.hasPrefix("old") }.count == 3)
    }

    /// As nginx does after a minute. What was unanswered, or was lost sooner, shows nothing about silence.
    @Test func threeEqualSilencesShortenTheKeepalive() {
        let bench = BrokerBench()
        for (round, silence) in [20, 60, 63, 61].enumerated() {
            #expect(bench.takeNews() == [], "\(round)")
            bench.open(sending: 1)
            bench.answerAll()
            bench.pass(.seconds(silence))
            bench.lose(for: 61)
        }
        #expect(bench.takeNews() == [.keepAliveShortened(.seconds(48), owners: [""])])
        bench.open(sending: 1)
        bench.answerAll()
        #expect(bench.link.nextDeadline == bench.now + .seconds(48))
    }

    @Test func subscribesOnceTheRowsAreOut() {
        let bench = BrokerBench(subscribes: true)
        bench.open(sending: 1)
        #expect(bench.broker.subscriptions.isEmpty)
        bench.answer(0)
        #expect(bench.broker.subscriptions.map(\.filters) == [["van/desired", "van/cmd"]])
        bench.receive(bench.broker.suback([1, 0x87]))
        bench.receive(bench.broker.publish("van/cmd", [5], isRetained: true))
        let message = MQTTMessage(topic: "van/cmd", payload: [5], qos: .atMostOnce, isRetained: true)
        #expect(bench.takeNews() == [.subscribed(refused: ["van/cmd"]), .message(message)])
        bench.receive(bench.broker.publish("other/cmd", [5], isRetained: false))
        #expect(bench.takeNews() == [], "nobody asked for it")
        // The connection is for messages too: it comes back by itself, and asks again.
        bench.lose(for: 61)
        #expect(bench.isConnecting)
        bench.open()
        #expect(bench.broker.subscriptions.count == 1)
    }

    /// As AWS IoT does with a topic that its policy does not allow.
    @Test func aBrokerThatEndsTheConnectionForASubscriptionHasTheRows() {
        let bench = BrokerBench(subscribes: true)
        bench.open(sending: 2)
        bench.answerAll()
        #expect(bench.outcomes.map(\.result) == [.published(BrokerReply([.success, .success]))])
        bench.lose(for: 61)
        bench.open(sending: 1)
        #expect(bench.broker.subscriptions.isEmpty)
        bench.answerAll()
        #expect(bench.outcomes.last?.result == .published(BrokerReply([.success])))
    }

    /// Neither is it another client, nor does it say anything about the rows that were sent meanwhile.
    @Test func aConnectionThatEndsForASubscriptionSaysNothingElse() {
        let bench = BrokerBench(subscribes: true)
        for round in 1...6 {
            bench.send(1)
            if !bench.isOpen { bench.open() }
            bench.answerAll()
            guard !bench.broker.subscriptions.isEmpty else { continue }
            bench.send(1)
            if round % 2 == 0 { bench.dismiss(0x87) } else { bench.lose() }
            let failure: TransportFailure =
                round % 2 == 0 ? .broken("the broker ended the connection: not authorised") : .broken("cut")
            #expect(bench.lastReply == BrokerReply([nil], failure: failure, unanswered: .several))
            bench.pass(.seconds(61))
            #expect(bench.isConnecting, "the connection is wanted")
        }
        #expect(bench.takeNews().contains(.subscribed(refused: ["van/desired", "van/cmd"])))
        // Not at each connection.
        #expect(bench.broker.connects <= 6)
        bench.open()
        #expect(bench.broker.subscriptions.isEmpty)
        bench.pass(.seconds(3600))
        bench.open()
        #expect(bench.broker.subscriptions.count == 1)
    }

    @Test func aRequestEndsWhenAllMessagesAreAnswered() {
        let bench = BrokerBench()
        bench.open(sending: 3)
        #expect(bench.broker.publishes.map(\.payload) == [[0], [1], [2]])
        bench.answer(0)
        bench.answer(2, 0x99)
        #expect(bench.outcomes.isEmpty)
        bench.answer(1, 0x10)
        #expect(bench.outcomes == [Self.published(.success, .noMatchingSubscribers, .badPayload)])
        // Nobody needs the connection, and it stays.
        #expect(!bench.isConnecting)
        #expect(bench.link.nextDeadline == bench.now + .seconds(300))
    }

    @Test func theWindowIsThatOfTheBroker() {
        let bench = BrokerBench()
        bench.send(5)
        bench.open(window: 2)
        #expect(bench.broker.publishes.count == 2)
        bench.answer(0)
        #expect(bench.broker.publishes.count == 3)
    }

    @Test func whatIsAnsweredBeforeALossCounts() {
        let bench = BrokerBench()
        bench.open(sending: 3)
        bench.answer(0)
        bench.lose()
        #expect(bench.outcomes.map(\.result) == [Self.cut([.success, nil, nil], .several)])
    }

    @Test func aLossBeforeAnyAnswerIsAFailure() {
        let bench = BrokerBench()
        bench.open(sending: 2)
        bench.lose()
        #expect(bench.outcomes.map(\.result) == [Self.cut([nil, nil], .several)])
        // Nobody is to be seen on it: it comes back with the next request, and not at once.
        #expect(bench.link.nextDeadline == nil)
        bench.send(1)
        #expect(!bench.isConnecting)
        bench.pass(.seconds(60))
        #expect(bench.isConnecting)
    }

    @Test func noMoreThanTheRateGoOutInASecond() {
        let bench = BrokerBench()
        bench.send(25, rate: 10)
        bench.open()
        #expect(bench.broker.publishes.count == 10)
        bench.answerAll()
        #expect(bench.broker.publishes.count == 10)
        #expect(bench.link.nextDeadline == bench.now + .seconds(1))
        bench.pass(.seconds(1))
        #expect(bench.broker.publishes.count == 20)
        bench.answerAll()
        bench.pass(.seconds(1))
        bench.answerAll()
        #expect(bench.outcomes.count == 1)
    }

    @Test func aBrokerOfTheOlderVersionIsAskedInIt() {
        let bench = BrokerBench()
        bench.send(1)
        bench.open(answering: 0x84)
        #expect(bench.isConnecting)
        bench.open()
        #expect(bench.broker.version == .v3)
        bench.answer(0)
        #expect(bench.outcomes == [Self.published(.success)])
    }

    /// RabbitMQ 3.10.
    @Test func aBrokerThatClosesWithoutAWordIsAskedInTheOlderVersion() {
        let bench = BrokerBench()
        bench.send(1)
        bench.closeUnanswered()
        #expect(bench.isConnecting && bench.outcomes.isEmpty)
        bench.open()
        #expect(bench.broker.version == .v3)
        bench.answer(0)
        #expect(bench.outcomes == [Self.published(.success)])
        // From now on it is known.
        bench.lose()
        bench.send(1)
        bench.pass(.seconds(60))
        bench.closeUnanswered()
        #expect(!bench.isConnecting && bench.broker.version == .v3)
    }

    @Test func whatClosesInBothVersionsIsAskedInTheNewerOneLater() {
        let bench = BrokerBench()
        bench.send(1)
        bench.closeUnanswered()
        bench.closeUnanswered()
        #expect(!bench.isConnecting && bench.broker.version == .v3)
        // Nothing of it was written, so that nothing of it is to blame.
        #expect(bench.outcomes.map(\.result) == [.failed(.connect("cut"))])
        bench.send(1)
        bench.pass(.seconds(60))
        bench.open()
        #expect(bench.broker.version == .v5)
        // It is away, which says nothing about the version that it has answered in.
        bench.lose()
        bench.send(1)
        bench.pass(.seconds(60))
        bench.closeUnanswered()
        #expect(!bench.isConnecting && bench.broker.version == .v5)
    }

    @Test func aRefusedClientIsNotTriedAgainByItself() throws {
        let bench = BrokerBench(showsPresence: true)
        bench.send(1)
        bench.open(answering: 0x87)
        let reply = try #require(bench.lastReply)
        #expect(reply.ending == .notAuthorised && reply.reasons == [nil])
        #expect(bench.link.nextDeadline == nil)
    }

    /// A real takeover and a broker that is killed look the same: the possibility is named, and the waits grow.
    @Test func lossesAloneAreNoTakeover() throws {
        let bench = BrokerBench(showsPresence: true)
        bench.send(0)
        var waits: [Duration?] = []
        func lose() {
            bench.lose()
            waits.append(bench.link.nextDeadline?.duration(since: bench.now))
            bench.pass(.seconds(300))
        }
        for _ in 0..<6 {
            bench.open()
            lose()
        }
        #expect(waits == [30, 30, 30, 60, 120, 150].map { .seconds($0) })
        bench.open(sending: 1)
        lose()
        let reply = try #require(bench.lastReply)
        #expect(reply.ending == nil)
        #expect(reply.failure?.message.contains("perhaps another client has the client id van") == true)
        // One that lasts ends it.
        bench.open(sending: 1)
        bench.answerAll()
        bench.pass(.seconds(11))
        bench.send(1)
        lose()
        #expect(bench.lastReply?.failure == .broken("cut") && waits.last == .seconds(2))
    }

    @Test func theBrokersOwnWordIsATakeoverAndWhatItConfirmedBeforeCounts() {
        let bench = BrokerBench()
        bench.open(sending: 2)
        // In one piece with the end of the connection.
        let piece = bench.broker.puback(1) + ModelBroker.disconnect(0x8E)
        bench.receive(piece)
        let failure = TransportFailure.broken("the broker ended the connection: another client took over the client id")
        #expect(
            bench.lastReply
                == BrokerReply([.success, nil], ending: .sessionTakenOver, failure: failure, unanswered: .oneAlone))
        bench.send(1)
        bench.pass(.seconds(40))
        bench.open()
        bench.receive(bench.broker.puback(1) + ModelBroker.disconnect(0x8E))
        #expect(bench.lastReply == BrokerReply([.success], ending: .sessionTakenOver, failure: failure))
    }

    /// One of several that were unanswered may be what the broker cannot take.
    @Test func afterALossTheBatchGoesOutOneByOne() {
        let bench = BrokerBench()
        bench.open(sending: 5)
        bench.answer(0)
        bench.lose()
        #expect(bench.lastReply?.unanswered == .several)
        bench.send(4)
        bench.pass(.seconds(40))
        bench.open()
        for sent in 1...4 {
            #expect(bench.broker.publishes.count == 5 + sent)
            if sent == 2 {
                bench.lose()
                #expect(
                    bench.lastReply
                        == BrokerReply([.success, nil, nil, nil], failure: .broken("cut"), unanswered: .oneAlone))
                bench.send(3)
                bench.pass(.seconds(40))
                bench.open()
                #expect(bench.broker.publishes.count == 8)
                break
            }
            bench.answerOne(0)
        }
        bench.answerAll()
        bench.send(3)
        #expect(bench.broker.publishes.count == 13, "then as many as before")
    }

    @Test func noneWaitsForTheAnswersOfAnother() {
        let bench = BrokerBench()
        bench.send(1, by: "a")
        bench.open(window: 3)
        bench.answerAll()
        bench.send(1, by: "b")
        bench.answerAll()
        bench.send(9, by: "a")
        #expect(bench.broker.publishes.count == 4, "one place is left for the other")
        let number = bench.send(2, by: "b")
        #expect(bench.broker.publishes.last?.topic == "\(number)")
        // They take turns.
        bench.answerOne(0)
        bench.answerOne(0)
        bench.answerOne(0)
        #expect(bench.broker.publishes.filter { $0.topic == "\(number)" }.count == 2)
        bench.answerAll()
        #expect(bench.outcomes.count == 4)
    }

    @Test func whereNobodySubscribesTheRestIsNotPublished() {
        let bench = BrokerBench()
        bench.send(30, subscriber: .required, isRetained: true)
        bench.open()
        bench.answerOne(0x10)
        while bench.answerOne(0x10) {}
        #expect(bench.broker.publishes.count == 20)
        #expect(bench.lastReply?.reasons == (0..<30).map { $0 < 20 ? .noMatchingSubscribers : nil })
        bench.send(3, subscriber: .awaited, isRetained: true)
        bench.answerOne(0x10)
        #expect(bench.broker.publishes.count == 21 && bench.broker.publishes.last?.isRetained == false)
        #expect(bench.lastReply?.reasons == [.noMatchingSubscribers, nil, nil])
        #expect(bench.lastReply?.words == "the topic has no subscriber (2)", "by its name")
        bench.send(3, subscriber: .awaited, isRetained: true)
        #expect(bench.broker.publishes.count == 22)
        bench.answerOne(0)
        #expect(bench.broker.publishes.suffix(3).map(\.isRetained) == [false, true, true])
        bench.answerAll()
        #expect(bench.lastReply?.reasons == [.success, .success, .success])
    }

    /// What is decided without the broker is there before anything else happens.
    @Test func whatEndsInsideSendOrCancelIsReportedAtOnce() {
        let bench = BrokerBench()
        bench.open(sending: 0)
        var request = BrokerRequest(
            session: BrokerSession(clientID: "van"),
            messages: BrokerMessages(count: 1) { _ in MQTTMessage(topic: "a/#", payload: []) })
        request.sender = "a"
        bench.link.send(request, number: 9, limit: .seconds(60), at: bench.now)
        #expect(bench.link.hasReports)
        #expect(bench.link.takeOutcomes().map(\.number) == [9])
        // The pace of one does not outlive it for the others.
        let first = bench.send(20, rate: 10, by: "a")
        bench.answerAll()
        bench.send(1, by: "b")
        bench.cancel(first)
        bench.answerAll()
        #expect(bench.outcomes.last?.result == .published(BrokerReply([.success])))
    }

    @Test func onlyAPersonShortensAWaitThatTheBrokerIsTheCauseOf() {
        let bench = BrokerBench(showsPresence: true)
        bench.send(0)
        bench.open(answering: 0x88)
        bench.reconnect(.linkChanged)
        bench.reconnect(.event)
        #expect(!bench.isConnecting)
        bench.reconnect(.operatorFlush)
        #expect(bench.isConnecting)
        bench.open(answering: 0x88)
        bench.pass(.milliseconds(400))
        bench.reconnect(.operatorFlush)
        #expect(!bench.isConnecting, "once in ten seconds")
        // A wait because nothing could be reached ends with the cause.
        bench.pass(.seconds(600))
        bench.lose()
        bench.reconnect(.linkChanged)
        #expect(bench.isConnecting)
    }

    @Test func aConnectionThatGoesWithItsLinkIsMadeAgainAtOnce() {
        let bench = BrokerBench()
        for _ in 0..<5 {
            let begun = bench.send(2, by: "a")
            bench.open()
            bench.link.lost(.moved("gone"), at: bench.now)
            bench.obey()
            #expect(bench.takeOutcomes().map(\.number) == [begun])
            bench.send(1, by: "b")
            #expect(bench.isConnecting, "nobody else and no message is suspected")
            bench.open()
            bench.answerAll()
            #expect(bench.takeOutcomes().map(\.result) == [.published(BrokerReply([.success]))])
        }
    }

    /// Else the rows of a device would stop for ever when the nodes of a broker fail in turn.
    @Test func aBrokerInTroubleIsNoOtherClient() {
        let bench = BrokerBench()
        for _ in 0..<10 {
            bench.send(1)
            bench.pass(.seconds(40))
            bench.open()
            bench.pass(.seconds(4))
            bench.lose()
        }
        #expect(bench.outcomes.map(\.result) == Array(repeating: Self.cut([nil], .oneAlone), count: 10))
    }

    @Test func withoutAConnectionInTimeItFails() {
        let bench = BrokerBench()
        bench.send(1)
        bench.pass(.seconds(60))
        #expect(bench.outcomes == [.init(number: 1, result: .failed(.connect("no connection to the broker in time")))])
    }

    /// A request that waits for a connection longer than it may says why there is none.
    @Test func aRequestWithoutAConnectionTellsWhatEndedTheLastOne() {
        let causes: [(TransportFailure, TransportFailure)] = [
            (.tls("expired"), .tls("expired, and no connection since")),
            (.resolve("no name"), .resolve("no name, and no connection since")),
            (.timeout("no CONNACK"), .connect("no CONNACK, and no connection since")),
        ]
        for (cause, expected) in causes {
            let bench = BrokerBench()
            bench.send(1)
            bench.link.lost(cause, at: bench.now)
            bench.obey()
            bench.send(1)
            bench.pass(.seconds(61))
            #expect(bench.outcomes.last?.result == .failed(expected))
        }
        let bench = BrokerBench()
        bench.open(sending: 2)
        bench.lose()
        #expect(bench.link.restsUntil == bench.now + .seconds(30), "whoever sends something waits as well")
        bench.send(1)
        bench.pass(.seconds(31))
        bench.open()
        #expect(bench.link.restsUntil == nil)
    }

    /// The message is to blame, and not the broker or another client: the rest of the rows need not wait for long.
    @Test func aMessageThatEndsTheConnectionHoldsUpTheOthersForSeconds() {
        let bench = BrokerBench()
        let poison = MQTTMessage(topic: "1", payload: [0])
        func wait(_ end: () -> Void) -> Double? {
            bench.send([poison])
            if !bench.isConnecting { bench.pass(.seconds(31)) }
            bench.open()
            end()
            return bench.link.restsUntil?.seconds(since: bench.now)
        }
        for reason in [nil, 0x81, 0x95, nil] as [UInt8?] {
            #expect(wait { reason.map { bench.dismiss($0) } ?? bench.lose() } == 2)
        }
        #expect(bench.lastReply?.failure == .broken("cut"), "no other client is suspected")
        // A broker that says so, or has not answered for long, is in trouble itself.
        #expect(wait { bench.dismiss(0x8B) } == 30)
        let late = wait {
            bench.pass(.seconds(5))
            bench.lose()
        }
        #expect(late == 30)
    }

    /// It never confirms one topic, or closes over it: the other sender gets on all the same, and the cause is named.
    @Test(arguments: [1, 20] as [UInt8], [false, true])
    func oneTopicThatTheBrokerDoesNotTakeHoldsUpNoOther(window: UInt8, closes: Bool) {
        let bench = BrokerBench()
        var (bad, good, accepted, words) = (Int?.none, Int?.none, 0, "")
        for second in 0..<3600 {
            if good == nil, second % 10 == 0 { good = bench.send(1, by: "good") }
            if bad == nil, second % 20 == 0 { bad = bench.send([MQTTMessage(topic: "x", payload: [0])], by: "bad") }
            if bench.isConnecting { bench.open(window: window) }
            bench.answerAll(but: "x", closes: closes)
            bench.pass(.seconds(1))
            for outcome in bench.takeOutcomes() {
                guard case .published(let reply) = outcome.result else { continue }
                if outcome.number == bad { words = reply.failure?.message ?? "" }
                if reply.failure == nil { accepted += 1 }
            }
            if let number = good, !bench.isPending(number) { good = nil }
            if let number = bad, !bench.isPending(number) { bad = nil }
        }
        #expect(accepted > 270 && words.contains("messages on x: "), "\(accepted) \(words)")
    }

    @Test func leavingLetsTheBrokerPublishTheWill() {
        let bench = BrokerBench(showsPresence: true)
        bench.open(sending: 0)
        bench.link.end()
        bench.obey()
        #expect(bench.broker.isDisconnected && !bench.isOpen)
    }

    @Test func aMessageThatTheBrokerCannotTakeIsRefusedWithoutAsking() throws {
        let bench = BrokerBench()
        bench.send([MQTTMessage(topic: "a/#", payload: []), MQTTMessage(topic: "a", payload: [])])
        bench.open()
        bench.answer(0)
        let reply = try #require(bench.lastReply)
        #expect(reply.reasons == [.badTopic, .success])
    }

    /// Whatever happens in whatever order: each request ends once, with no more than the broker said, and nothing spins.
    @Test(arguments: testSeeds(1...150)) func anyOrderEndsEachRequestOnce(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bench = BrokerBench(showsPresence: Bool.random(using: &random))
        var wanted: Set<Int> = []
        for _ in 0..<120 {
            switch Int.random(in: 0..<12, using: &random) {
            case 0, 1:
                if wanted.count < 3 {
                    wanted.insert(
                        bench.send(
                            Int.random(in: 0...6, using: &random), rate: [nil, 1, 10].randomElement(using: &random)!,
                            by: ["a", "b"].randomElement(using: &random)!,
                            subscriber: [.optional, .required, .awaited].randomElement(using: &random)!))
                }
            case 2, 3:
                let answer: UInt8 = [0, 0, 0, 0, 0x84, 0x87, 0x88, 0x97].randomElement(using: &random)!
                bench.open(answering: answer, window: Bool.random(using: &random) ? nil : 1)
            case 4, 5, 6:
                bench.answerOne([0, 0, 0, 0x10, 0x80, 0x87, 0x97, 0x99].randomElement(using: &random)!)
            case 7: bench.lose()
            case 8: bench.reconnect([.linkChanged, .event, .operatorFlush].randomElement(using: &random)!)
            case 9:
                if let number = wanted.randomElement(using: &random), Bool.random(using: &random) {
                    bench.cancel(number)
                    wanted.remove(number)
                }
            case 10: bench.dismiss([0, 0x8B, 0x8E, 0x98].randomElement(using: &random)!)
            default: bench.pass(.milliseconds(Int64.random(in: 1...40_000, using: &random)))
            }
            for outcome in bench.takeOutcomes() {
                #expect(wanted.remove(outcome.number) != nil, "seed \(seed): \(outcome) ended twice, or was given up")
                guard case .published(let reply) = outcome.result else { continue }
                let acknowledged = bench.acknowledged[outcome.number, default: [:]]
                #expect(reply.reasons == reply.reasons.indices.map { acknowledged[$0] }, "seed \(seed): \(outcome)")
            }
        }
        #expect(bench.isCalm, "seed \(seed): it spins")
        // In the end time passes, and nothing stays behind.
        for _ in 0..<20 { bench.pass(.seconds(60)) }
        for outcome in bench.takeOutcomes() { wanted.remove(outcome.number) }
        #expect(wanted.isEmpty, "seed \(seed): never ended: \(wanted)")
    }
}

/// A link with a model of a broker at the other end of a connection.
private final class BrokerBench {
    var link: BrokerLink

    /// But for connections, which each test makes.
    func takeNews() -> [BrokerNews] {
        link.takeNews().filter { if case .connected = $0 { false } else { true } }
    }
    var broker = ModelBroker()
    private(set) var now = EventTime(nanoseconds: 1_000_000_000_000)
    /// The connection is to be made.
    private(set) var isConnecting = false
    private(set) var outcomes: [BrokerLink.Outcome] = []
    /// What the broker answered, by request and place.
    private(set) var acknowledged: [Int: [Int: MQTTReason]] = [:]
    private(set) var isCalm = true
    private let session: BrokerSession
    private(set) var isOpen = false
    private var lastNumber = 0
    private var answered = 0

    var lastReply: BrokerReply? {
        if case .published(let reply)? = outcomes.last?.result { reply } else { nil }
    }

    init(showsPresence: Bool = false, subscribes: Bool = false, formerTopics: [String] = []) {
        var session = BrokerSession(clientID: "van")
        session.formerTopics = formerTopics
        if showsPresence {
            session.will = MQTTMessage(topic: "status", payload: [0], isRetained: true)
            session.births = [MQTTMessage(topic: "status", payload: [1], isRetained: true)]
        }
        if subscribes { session.subscriptions = [MQTTSubscription("van/desired"), MQTTSubscription("van/cmd")] }
        self.session = session
        link = BrokerLink(session, jitter: { 0.5 })
    }

    /// Topics name the request, payloads the place.
    @discardableResult
    func send(
        _ count: Int, rate: Int? = nil, by sender: String = "", subscriber: BrokerRequest.Subscriber = .optional,
        isRetained: Bool = false
    ) -> Int {
        let topic = "\(lastNumber + 1)"
        let messages = (0..<count).map { MQTTMessage(topic: topic, payload: [UInt8($0)], isRetained: isRetained) }
        return send(messages, rate: rate, by: sender, subscriber: subscriber)
    }

    @discardableResult
    func send(
        _ messages: [MQTTMessage], rate: Int? = nil, by sender: String = "",
        subscriber: BrokerRequest.Subscriber = .optional
    ) -> Int {
        lastNumber += 1
        var request = BrokerRequest(
            session: session, messages: BrokerMessages(count: messages.count) { messages[$0] }, rate: rate)
        request.sender = sender
        request.subscriber = subscriber
        link.send(request, number: lastNumber, limit: .seconds(60), at: now)
        obey()
        return lastNumber
    }

    func open(sending count: Int) {
        send(count)
        open()
    }

    /// The connection that was asked for is there, and the broker answers CONNECT.
    func open(answering reason: UInt8 = 0, window: UInt8? = nil) {
        guard isConnecting else { return }
        isConnecting = false
        isOpen = true
        broker.reset()
        answered = broker.publishes.count
        link.opened(at: now)
        obey()
        link.received(
            broker.connack(broker.version == .v3 && reason == 0x84 ? 1 : reason, window: window)[...], at: now)
        obey()
    }

    /// The connection that was asked for is there, and ends before CONNACK.
    func closeUnanswered() {
        guard isConnecting else { return }
        isConnecting = false
        isOpen = true
        broker.reset()
        link.opened(at: now)
        obey()
        lose()
    }

    func answer(_ place: Int, _ reason: UInt8 = 0) {
        guard let publish = broker.publishes.filter({ $0.topic != "status" })[place...].first else { return }
        acknowledge(publish, reason)
    }

    func answerAll() { while answerOne(0) {} }

    /// But messages on one topic.
    /// - Parameter closes: it closes the connection over those.
    func answerAll(but topic: String, closes: Bool) {
        while isOpen, answered < broker.publishes.count {
            answered += 1
            let publish = broker.publishes[answered - 1]
            if publish.topic != topic { acknowledge(publish, 0) } else if closes { lose() }
        }
    }

    /// The oldest that is not answered.
    @discardableResult
    func answerOne(_ reason: UInt8) -> Bool {
        guard isOpen, answered < broker.publishes.count else { return false }
        answered += 1
        acknowledge(broker.publishes[answered - 1], reason)
        return true
    }

    private func acknowledge(_ publish: ModelBroker.Publish, _ reason: UInt8) {
        guard let id = publish.id else { return }
        if let number = Int(publish.topic), let place = publish.payload.first {
            // 3.1.1 only knows success.
            acknowledged[number, default: [:]][Int(place)] = MQTTReason(rawValue: broker.version == .v5 ? reason : 0)
        }
        link.received(broker.puback(id, reason)[...], at: now)
        obey()
    }

    func receive(_ bytes: [UInt8]) {
        link.received(bytes[...], at: now)
        obey()
    }

    func dismiss(_ reason: UInt8) {
        guard isOpen, broker.version == .v5 else { return }
        link.received(ModelBroker.disconnect(reason)[...], at: now)
        obey()
    }

    func lose() {
        guard isConnecting || isOpen else { return }
        (isConnecting, isOpen) = (false, false)
        link.lost(.broken("cut"), at: now)
        obey()
    }

    /// For that long.
    func lose(for seconds: Int) {
        lose()
        pass(.seconds(seconds))
    }

    func reconnect(_ cause: ReconnectCause = .linkChanged) {
        link.reconnect(cause, at: now)
        obey()
    }

    func cancel(_ number: Int) {
        link.cancel(number, at: now)
        obey()
    }

    func pass(_ time: Duration) {
        let end = now + time
        var rounds = 0
        while let deadline = link.nextDeadline, deadline <= end, rounds < 200 {
            now = max(now, deadline)
            rounds += 1
            link.deadlineReached(at: now)
            obey()
        }
        if rounds == 200 { isCalm = false }
        now = end
    }

    private var ended: Set<Int> = []

    func isPending(_ number: Int) -> Bool { !ended.contains(number) }

    func takeOutcomes() -> [BrokerLink.Outcome] {
        defer { outcomes = [] }
        ended.formUnion(outcomes.map(\.number))
        return outcomes
    }

    func obey() {
        for command in link.takeCommands() {
            switch command {
            case .write(let bytes): broker.take(bytes)
            case .connect: isConnecting = true
            case .close: (isConnecting, isOpen) = (false, false)
            }
        }
        outcomes += link.takeOutcomes()
    }
}
