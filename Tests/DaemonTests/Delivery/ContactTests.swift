import Protocols
import Testing
import WaypostCore
import WaypostHost

@testable import Daemon

extension EndpointDeliveryTests {
    /// A note file in memory.
    private final class Notes {
        var bytes: [UInt8]?
        var file: NoteFile { NoteFile(read: { self.bytes }, write: { self.bytes = $0 }) }
    }

    private func contacted(_ loop: EventLoop, _ delivery: EndpointDelivery, _ uplink: ScriptedUplink) throws {
        uplink.takesContacts = true
        delivery.linksChanged(at: loop.now)
        delivery.startContact(sinceBoot: false, at: loop.now)
        try loop.run(until: { uplink.requestsOpen > 0 })
    }

    @Test func contactsItsServerAndSettlesNothing() throws {
        let lines = LogLines()
        try bench(lines: lines) { loop, delivery, uplink in
            try contacted(loop, delivery, uplink)
            let request = try #require(uplink.requests.first)
            #expect(request.connectsAlone && request.body.isEmpty && delivery.contact.state.progress == .never)
            uplink.end(UplinkOutcome(.connected, newConnection: true, peerAddress: "127.0.0.1"))
            #expect(delivery.contact.state.progress == .reached && delivery.lastProblem == nil)
            #expect(delivery.counters.connections == 1 && delivery.counters.accepted == 0)
            #expect(delivery.schedule.state == .active && delivery.contact.state.dueAt == nil)
        }
    }

    @Test(arguments: [
        (
            TransportFailure.connect("127.0.0.1:9: Connection refused"),
            "127.0.0.1:9: Connection refused: does the server run, and does it listen there?"
        ),
        (
            .tls("127.0.0.1:9: SSL certificate problem: self-signed certificate"),
            "name its certificate: tls = { ca = \"PATH\" }"
        ),
        (.resolve("x: the name x cannot be resolved"), "x: the name x cannot be resolved"),
    ])
    func saysWhyItsServerCannotBeReached(_ failure: TransportFailure, words: String) throws {
        let lines = LogLines()
        try bench(lines: lines) { loop, delivery, uplink in
            try contacted(loop, delivery, uplink)
            uplink.fail(failure)
            #expect(delivery.lastProblem?.contains(words) == true, "\(delivery.lastProblem ?? "")")
            #expect(delivery.contact.state.progress == .never && delivery.schedule.state == .active)
            #expect(delivery.schedule.failures == 0)
            #expect(lines.text.filter { $0.contains(words) }.count == 1, "\(lines.text)")
            let isUnreached = if case .resolve = failure { true } else { false }
            let next = try #require(delivery.contact.state.dueAt)
            #expect(next > loop.now + .seconds(isUnreached ? 0 : 3500))
        }
    }

    /// A portal, a web page, a refusal: none of these is about rows.
    @Test(
        arguments: [
            (200, "ok", true, nil), (401, "", true, "status 401"), (302, "", false, "redirected"),
            (200, "<html><title>Sign in</title>", false, "Sign in"), (503, "", true, "503"),
        ] as [(Int, String, Bool, String?)])
    func readsTheAnswerToAProbe(status: Int, body: String, isReached: Bool, problem: String?) {
        var outcome = UplinkOutcome(.reply(UplinkReply(status: status, body: Array(body.utf8))))
        if status == 302 {
            outcome = UplinkOutcome(
                .reply(UplinkReply(status: 302, headers: [.init("location", "http://portal.example/")])))
        }
        let finding = ProbeFinding(outcome, settings, refusal: .init(words: "the credential is refused", cure: nil))
        #expect(finding.isReached == isReached)
        #expect(
            problem == nil ? finding.problem == nil : finding.problem?.contains(problem ?? "") == true, "\(finding)")
    }

    @Test func remembersAContactForTheNextProcessOfTheBoot() {
        let (notes, now) = (Notes(), EventTime.zero + .seconds(1000))
        ContactNotes(notes.file).set(
            .init(digest: 7, triedAt: .zero + .seconds(900), reachedAt: nil, problem: "refused:\tno\nreally"),
            of: "main")
        let next = ContactNotes(notes.file)
        let note = next.note(of: "main", digest: 7, at: now)
        #expect(note?.triedAt == .zero + .seconds(900) && note?.reachedAt == nil, "\(note as Any)")
        #expect(note?.problem?.hasPrefix("refused:") == true)
        // Another server, another endpoint, and a boot before this one.
        #expect(next.note(of: "main", digest: 8, at: now) == nil && next.note(of: "b", digest: 7, at: now) == nil)
        #expect(next.note(of: "main", digest: 7, at: .zero + .seconds(800)) == nil)
        for garbage in ["", "\n\n", "main\t7", "main\tx\ty\tz\tq\n", String(repeating: "a\t1\t1\t-\t\n", count: 3000)] {
            notes.bytes = Array(garbage.utf8)
            #expect(ContactNotes(notes.file).note(of: "main", digest: 7, at: now) == nil)
        }
    }
}
