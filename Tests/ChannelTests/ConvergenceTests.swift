import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Channel

/// Publisher, feed and service together in virtual time: whatever is lost, refused or reordered, when the trouble is over
/// viewers have the newest location, the service knows us once, and we know who watches.
@Suite("After any trouble") struct ConvergenceTests {
    @Test(arguments: testSeeds(1...12)) func allIsAsItShouldBe(seed: UInt64) {
        let run = ConvergenceRun(seed: seed)
        for _ in 0..<400 { run.step() }
        run.service.isCalm = true
        run.recover()
        let service = run.service
        #expect(service.complaints == [])
        #expect(run.client.state == .connected && run.state == .online)
        let watching = service.members.filter { !$0.key.hasSuffix(":van") }.mapValues(\.data)
        #expect(run.viewers.keys.sorted() == watching.keys.sorted())
        for (key, request) in run.viewers {
            let asked = request.map { #""desiredInterval":\#($0.intervalMs),"# } ?? "a resolution"
            #expect(watching[key]?.contains(asked) == true)
        }
        let ours: [String] = service.members.values.filter { $0.client == "van" }.map(\.data)
        #expect(ours == [run.presence.data])
        let newest: Int64? = run.rows.last { $0.location.published }?.seq
        #expect(run.feed.cursor == newest && run.unsettled.isEmpty)
        // Nothing is left out but what was too much.
        let done: [QueuedLocation] = run.rows.filter { $0.seq <= run.feed.cursor }
        let leftOut: Int = done.count { !service.shownTimes.contains(Double($0.seq)) }
        #expect(leftOut <= run.feed.passed + run.feed.dropped)
        // Heads never go back.
        let heads: [Int] = service.storedIDs.filter { !$0.contains("again") }.compactMap { Int($0.dropFirst(2)) }
        #expect(heads == heads.sorted() && heads.last == Int(run.feed.cursor))
    }

    @Test func someOfItGoesByRequests() {
        let hasMany = testSeeds(1...20).contains { seed in
            let run = ConvergenceRun(seed: seed)
            for _ in 0..<400 where run.service.requests <= 20 { run.step() }
            return run.service.requests > 20
        }
        #expect(hasMany)
    }
}

private final class ConvergenceRun {
    private(set) var client: ChannelClient
    private(set) var feed = LocationFeed(queue: "q", name: .enhanced, cursor: 0)
    let service: ServiceModel
    private(set) var rows: [QueuedLocation] = []
    private(set) var viewers: [String: Resolution?] = [:]
    private(set) var unsettled: Set<String> = []
    private(set) var state = TrackableState.offline
    private var channel = ChannelState.initialized
    private(set) var presence = Rig.presence
    private var now = EventTime.zero
    private var pending: [ChannelClient.Effect] = []
    private var isPerforming = false
    private var asked: [ServiceRequest] = []
    /// No WebSocket comes through.
    private var isBlocked = false

    init(seed: UInt64) {
        service = ServiceModel(seed: seed)
        client = ChannelClient(.init(host: "h", clientID: "van"), credential: .token(ChannelSecret("1")))
        perform(client.attach("a", presence, at: now) ?? [])
    }

    private var jitter: Double { Double(service.number(0..<100)) / 100 }

    func step() {
        switch service.number(0..<16) {
        case 0, 1: record()
        case 2: service.changeViewers()
        case 3: if service.chance(4) { lose() }
        case 4: if service.chance(6) { service.detach() }
        case 5: if service.chance(20) { service.token += 1 }
        case 6: service.forget()
        case 9: if service.chance(8) { block() }
        case 7:
            presence.resolution?.intervalMs = Int64(service.number(1..<1000))
            perform(client.attach("a", presence, at: now) ?? [])
        case 8: pass(.seconds(service.chance(8) ? service.number(0..<200) : service.number(0..<15)))
        default: deliver(service.number(1..<4))
        }
        if client.state == .failed || channel == .failed, service.number(0..<5) == 0 { mend() }
        if service.number(0..<3) == 0 { pass(.milliseconds(service.number(0..<2000))) }
    }

    /// Some minutes in a network that lets only requests through.
    private func block() {
        isBlocked = true
        for _ in 0..<service.number(1..<40) {
            lose()
            if service.chance(3) { service.changeViewers() }
            record()
            pass(.seconds(10))
        }
        isBlocked = false
    }

    /// What was refused for ever is mended by a person.
    private func mend() {
        perform(client.credentialRenewed(.token(ChannelSecret("\(service.token)")), at: now))
        perform(client.retry(at: now))
    }

    /// Some minutes without trouble.
    func recover() {
        for _ in 0..<20 {
            deliver(.max)
            if client.state == .failed || channel == .failed { mend() }
            pass(.seconds(20))
        }
        // One that was refused rides along with the next.
        record()
        deliver(.max)
    }

    private func record() {
        let seq = Int64(rows.count + 1)
        rows.append(row(seq, selected: service.isCalm || service.number(0..<2) == 0))
        offer()
    }

    private func offer() {
        publish(feed.next(Array(rows.suffix(100)), bytesMax: client.messageBytesMax, at: now))
    }

    private func publish(_ message: ChannelMessage?) {
        guard let message else { return }
        do throws(ChannelClient.Refusal) {
            let effects = try client.publish(message, of: "a", at: now)
            unsettled.insert(message.id)
            perform(effects)
        } catch {
            feed.unsent(at: now)
        }
    }

    /// Frames of the service arrive, one after the other.
    private func deliver(_ count: Int) {
        var left = count
        while left > 0, let text = service.takeOutgoing() {
            left -= 1
            perform(client.received(text, jitter: jitter, at: now))
            if service.chance(100) { return lose() }
        }
    }

    private func lose() {
        guard service.hasTransport else { return }
        service.lost()
        perform(client.transportLost(byServer: service.number(0..<2) == 0, jitter: jitter, at: now))
    }

    private func pass(_ duration: Duration) {
        let end = now + duration
        if service.isCalm || !service.chance(3) { service.say(#"{"action":0}"#) }
        while let next = [client.nextDeadline, feed.nextDeadline].compactMap({ $0 }).min(), next <= end {
            now = max(now, next)
            perform(client.deadlineReached(jitter: jitter, at: now))
            if isBlocked { lose() }
            if service.isCalm { deliver(.max) }
            offer()
            if let next = [client.nextDeadline, feed.nextDeadline].compactMap({ $0 }).min(), next <= now { break }
        }
        now = max(now, end)
    }

    /// In the order in which they were given; requests are answered when nothing else is to be done.
    private func perform(_ effects: [ChannelClient.Effect]) {
        pending += effects
        guard !isPerforming else { return }
        isPerforming = true
        defer { isPerforming = false }
        while true {
            while !pending.isEmpty { perform(pending.removeFirst()) }
            guard !asked.isEmpty else { return }
            let request = asked.removeFirst()
            let (status, body) = service.answer(request)
            perform(client.answered(request.number, status: status, body: Array(body.utf8), jitter: jitter, at: now))
        }
    }

    private func perform(_ effect: ChannelClient.Effect) {
        switch effect {
        case .openTransport(let request): service.opened(request)
        case .closeTransport: service.lost()
        case .send(let frame): if service.hasTransport { service.received(frame.text) }
        case .renewCredential:
            perform(client.credentialRenewed(.token(ChannelSecret("\(service.token)")), at: now))
        case .settled(_, _, let id, let outcome):
            #expect(unsettled.remove(id) != nil, "\(id) is settled twice")
            switch outcome {
            case .taken: feed.acknowledged(at: now)
            case .refused(let error): publish(feed.refused(error, jitter: jitter, at: now))
            case .unanswered: feed.unsent(at: now)
            }
        case .subscriberChanged(let change):
            switch change.action {
            case .add(let request), .update(let request): viewers.updateValue(request, forKey: change.member)
            case .remove: viewers.removeValue(forKey: change.member)
            }
            if case .add = change.action { feed.viewerArrived(at: now) }
        case .trackableChanged(_, let new, _): state = new
        case .channelChanged(_, let new, _):
            channel = new
            offer()
        case .connectionChanged, .requestsArrive: offer()
        case .request(let request): asked.append(request)
        case .warned: break
        }
    }
}
