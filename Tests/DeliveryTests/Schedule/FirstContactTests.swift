import Delivery
import Testing
import WaypostCore

@Suite struct FirstContactTests {
    private let start = EventTime.zero + .seconds(100)
    private let backoff = Backoff()

    private func at(_ seconds: Int64) -> EventTime { start + .seconds(seconds) }

    @Test func isMadeOnceAfterTheStart() {
        var contact = FirstContact()
        #expect(contact.dueAt == nil && contact.progress == .never)
        contact.started(after: .seconds(20), at: start)
        #expect(contact.dueAt == at(20))
        contact.began(at: at(20))
        #expect(contact.dueAt == nil)
        contact.ended(.reached, backoff, jitter: 0.5, at: at(21))
        #expect(contact.dueAt == nil && contact.progress == .reached && contact.since == at(21))
        contact.heard(isAcceptance: true, at: at(30))
        contact.heard(isAcceptance: false, at: at(40))
        #expect(contact.progress == .accepted && contact.since == at(30))
    }

    @Test func comesAgainAnHourAfterTheServerRefusedIt() {
        var contact = FirstContact()
        contact.started(after: .zero, at: start)
        contact.began(at: start)
        contact.ended(.failed(isUnreached: false), backoff, jitter: 0, at: at(1))
        contact.linkChanged(backoff, at: at(5))
        #expect(contact.dueAt == at(3600))
    }

    @Test func comesSoonAgainWhereNothingReachedTheServer() throws {
        var contact = FirstContact()
        contact.started(after: .zero, at: start)
        var last = start
        var waits: [Double] = []
        for _ in 0..<12 {
            let due = try #require(contact.dueAt)
            waits.append(due.seconds(since: last))
            contact.began(at: due)
            contact.ended(.failed(isUnreached: true), backoff, jitter: 1, at: due)
            last = due
        }
        #expect(waits.dropFirst() == [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
        contact.linkChanged(backoff, at: last)
        #expect(contact.dueAt == last + backoff.base)
    }

    /// An earlier process of this boot has asked.
    @Test func remembersTheHour() {
        var contact = FirstContact(triedAt: at(-600))
        contact.started(after: .zero, at: start)
        #expect(contact.dueAt == at(3000))
        var reached = FirstContact(triedAt: at(-600), reachedAt: at(-599))
        reached.started(after: .zero, at: start)
        #expect(reached.dueAt == nil && reached.progress == .reached && reached.since == at(-599))
    }

    @Test(
        arguments: [
            (DeliverySchedule.Step.wait(until: nil), nil), (.wait(until: .zero + .seconds(400)), nil),
            (.wait(until: .zero + .seconds(130)), 190), (.send(batch: "b"), 160), (.form(limit: 5), 160),
        ] as [(DeliverySchedule.Step, Int64?)])
    func waitsForABatchThatComesSoon(next: DeliverySchedule.Step, until: Int64?) {
        #expect(FirstContact.postponed(for: next, at: start) == until.map { .zero + .seconds($0) })
    }
}
