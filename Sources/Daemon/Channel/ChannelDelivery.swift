import Channel
import Configuration
import Delivery
import Network
import Profiles
import Protocols
import WaypostCore
import WaypostHost
import WaypostTracking

/// Shows the locations of all trackables on a live channel as they are recorded, and brings what its viewers ask for to
/// tracking. It never holds back an endpoint or a row: what is not seen live is in the history.
final class ChannelDelivery {
    private(set) var config: ChannelConfig
    private var credentials: EndpointCredentials
    private let makeCredentials: (EndpointConfig) -> EndpointCredentials
    private let queue: String
    private var route: EgressRoute?
    private let log: AgentLog
    private let loop: EventLoop
    private var client: ChannelClient
    private var transport: (any ChannelCarrier)!
    private let requests: ChannelRequests
    private(set) var alarm: EventLoop.Alarm?
    /// By id.
    private var watched: [String: WatchedTrackable] = [:]
    /// For the trackables of the start; one that comes later, or again, begins with what is recorded then.
    private var earlier: Earlier
    private let share: Double
    private let openingSpread: Duration
    /// See `startedWithHost`.
    private var opensAt = EventTime.zero
    /// What is attached then.
    private var unopened: [TrackerSnapshot.TrackableResolution] = []
    private(set) var viewers = ChannelViewers()
    private(set) var error: ChannelError?
    /// What the journal said last is wrong, by what it is about.
    private var toldProblems: Set<String> = []
    private var stateLines = LineBudget()
    private var problemLines = LineBudget()
    /// Messages arrive by single requests, for want of a connection.
    private(set) var isByRequests = false
    /// What is to be done, in order, while something is being done.
    private var effects: [ChannelClient.Effect] = []
    private var isPerforming = false
    /// Messages that the service has.
    private(set) var published = 0
    /// For tracking.
    var subscriberChanged: (SubscriberChange, EventTime) -> Void = { _, _ in }
    /// The status line may be out of date.
    var changed: () -> Void = {}

    /// What an earlier process left.
    struct Earlier {
        /// What viewers saw last, by trackable.
        var seen: [String: ChannelFeature] = [:]
        /// The last rows of the queue, oldest first.
        var rows: [Location] = []
    }

    /// - Parameter outbox: the uuid of the queue, which names its messages.
    init(
        _ config: ChannelConfig, outbox: [UInt8], earlier: Earlier, uplink: any Uplink, log: AgentLog,
        loop: EventLoop, makeCarrier: Edges.MakeCarrier?,
        makeCredentials: @escaping (EndpointConfig) -> EndpointCredentials
    ) {
        self.config = config
        self.makeCredentials = makeCredentials
        credentials = makeCredentials(config.endpoint)
        self.earlier = earlier
        self.log = log
        self.loop = loop
        route = loop.host.egressRoute(to: nil)
        queue = String(hexOf: outbox.prefix(4))
        let address = BrokerAddress(config.endpoint.settings.baseURL)
        var settings =
            config.isUsualService
            ? ChannelClient.Settings.ofService(clientID: config.clientID)
            : ChannelClient.Settings(host: address?.authority ?? "", clientID: config.clientID)
        settings.remainPresent = config.remainPresent
        openingSpread = settings.firstReconnectSpread
        share = FleetShare.of(outbox: outbox, endpoint: config.endpoint.settings.name)
        client = ChannelClient(settings, credential: nil)
        let isEncrypted = address?.isEncrypted ?? true
        requests = ChannelRequests(isEncrypted: isEncrypted, uplink: uplink)
        let report = { [unowned self] (event: WebSocketConnection.Event, now: EventTime) in received(event, at: now) }
        transport =
            makeCarrier?(report)
            ?? ChannelTransport(isEncrypted: isEncrypted, tls: credentials.tls, loop: loop, report: report)
        alarm = loop.alarm { [unowned self] now in due(at: now) }
    }

    var state: ConnectionState { client.state }

    /// What is wrong, for people.
    var problems: [String] { client.problems.map(words) }

    private func words(_ problem: ChannelClient.Problem) -> String {
        problem.words(checking: credentials.refusal.cure ?? "look at auth of the channel")
    }

    /// Why there is no connection; nil = there is one, or none is missed.
    var reason: String? {
        if let error { return error.message }
        return client.problems.lazy.compactMap { if case .unreachable(let words, _) = $0 { words } else { nil } }.first
    }

    /// Frames of the service that could not be read, or were too large.
    var unreadFrames: Int { client.unreadFrames }

    /// Reports of members beyond those that are counted.
    var ignoredMembers: Int { client.ignoredMembers }

    /// In an order that is the same in each process.
    private var ids: [String] { watched.keys.sorted() }

    /// In the order of their ids.
    var trackables: [(id: String, state: TrackableState, error: ChannelError?)] {
        ids.compactMap { id in watched[id].map { (id, $0.state, $0.error) } }
    }

    /// Rows of a trackable that were too many to be seen live.
    func passed(_ trackable: String) -> Int { watched[trackable]?.enhanced.passed ?? 0 }

    /// Locations of a trackable that viewers could not read: without an accuracy, or too large even alone.
    func unfit(_ trackable: String) -> Int {
        watched[trackable].map { $0.enhanced.feed.withoutAccuracy + $0.enhanced.feed.dropped } ?? 0
    }

    /// What viewers saw last.
    var seen: [(trackable: String, feature: ChannelFeature)] {
        ids.compactMap { id in watched[id]?.enhanced.feed.last.map { (id, $0) } }
    }

    /// This host has just started, perhaps together with a fleet: each device connects at a time of its own.
    func startedWithHost(at now: EventTime) { opensAt = now + FleetShare.part(share, of: openingSpread) }

    /// The trackables that there are, and what is published of each.
    func follow(_ trackables: [TrackerSnapshot.TrackableResolution], at now: EventTime) {
        for gone in ids where !trackables.contains(where: { $0.id == gone }) {
            perform(client.leave(gone, at: now))
            watched[gone] = nil
        }
        for trackable in trackables {
            watched[trackable.id, default: added(trackable.id, at: now)].resolution = trackable.resolution
        }
        earlier = Earlier()
        guard opensAt <= now else {
            unopened = trackables
            return arm()
        }
        unopened = []
        for trackable in trackables {
            let presence = PublisherPresence(
                resolution: config.sendsResolution ? trackable.resolution : nil, hasRawLocations: config.sendsRaw)
            perform(client.attach(trackable.id, presence, at: now) ?? [])
        }
    }

    private func added(_ trackable: String, at now: EventTime) -> WatchedTrackable {
        let seen = earlier.seen[trackable]
        // By a clock that is not set it was in the future. Viewers of just now may have seen more than is known.
        let age = seen.map { max(0, loop.host.wallClockMs - $0.time.milliseconds) } ?? 0
        var added = WatchedTrackable(
            queue: queue, hasRaw: config.sendsRaw, seen: seen, at: now - .milliseconds(age))
        // Viewers of before get what they have not seen; whoever comes now sees the newest.
        guard let seen else { return added }
        for row in earlier.rows where row.trackable == trackable && row.time > seen.time { added.enhanced.add(row) }
        return added
    }

    func recorded(_ location: Location, at now: EventTime) {
        guard let trackable = location.trackable else { return }
        watched[trackable]?.enhanced.add(location)
        publish(trackable, at: now)
    }

    /// The receiver gave a fix.
    func received(_ fix: Fix, time: UTCTime, at now: EventTime) {
        guard config.sendsRaw else { return }
        for trackable in ids {
            watched[trackable]?.add(fix, time: time)
            publish(trackable, at: now)
        }
    }

    /// Continues with what may be another credential, and tries again what has failed.
    func reload(_ new: ChannelConfig?, at now: EventTime) {
        if let new, new.endpoint.credentials != config.endpoint.credentials {
            config = new
            credentials = makeCredentials(config.endpoint)
            transport.trust(credentials.tls)
            return obtainCredential(at: now)
        }
        if credentials.reread() { return obtainCredential(at: now) }
        perform(client.retry(at: now))
    }

    /// Links, addresses or routes of this host may have changed.
    func linksChanged(at now: EventTime) {
        transport.linksChanged()
        let found = loop.host.egressRoute(to: nil)
        guard found != route else { return }
        route = found
        if found != nil { perform(client.networkReturned(at: now)) }
    }

    /// Takes its leave of the viewers. What the connection does not take at once is lost.
    func close() {
        perform(client.close(at: loop.now))
        transport.close()
        requests.cancelAll()
        alarm?.deadline = nil
    }
}

// Locations.
extension ChannelDelivery {
    private func publish(_ trackable: String, at now: EventTime) {
        // A message is much work, and an event tells when they are taken again.
        guard client.takesMessages(of: trackable) else { return }
        for name in ChannelMessage.Name.allCases {
            if let message = watched[trackable]?[name]?.next(bytesMax: client.messageBytesMax, at: now) {
                send(message, of: trackable, at: now)
            }
        }
        arm()
    }

    private func publishAll(at now: EventTime) { for trackable in ids { publish(trackable, at: now) } }

    private func send(_ message: ChannelMessage, of trackable: String, at now: EventTime) {
        do throws(ChannelClient.Refusal) {
            perform(try client.publish(message, of: trackable, at: now))
        } catch {
            watched[trackable]?[message.name]?.feed.unsent(at: now)
        }
    }

    private func settled(
        _ trackable: String, _ name: ChannelMessage.Name, _ outcome: ChannelClient.Outcome, at now: EventTime
    ) {
        switch outcome {
        case .taken:
            published += 1
            watched[trackable]?[name]?.feed.acknowledged(at: now)
        case .unanswered: watched[trackable]?[name]?.feed.unsent(at: now)
        case .refused(let error):
            if let again = watched[trackable]?[name]?.feed.refused(error, jitter: loop.host.jitter, at: now) {
                return send(again, of: trackable, at: now)
            }
        }
        publish(trackable, at: now)
    }
}

// The connection.
extension ChannelDelivery {
    private func received(_ event: WebSocketConnection.Event, at now: EventTime) {
        switch event {
        case .opened, .binary: break
        case .text(let text): perform(client.received(text, jitter: loop.host.jitter, at: now))
        case .oversized:
            client.skippedFrame(at: now)
            perform([])
        case .refused(let failure): lost(failure, isRefused: true, at: now)
        case .ended(let failure, let byServer):
            lost(failure, byServer: byServer, at: now)
            if case .moved = failure { perform(client.networkReturned(at: now)) }
        }
    }

    private func lost(_ failure: TransportFailure, byServer: Bool = false, isRefused: Bool = false, at now: EventTime) {
        perform(
            client.transportLost(
                byServer: byServer, because: failure.message, isRefused: isRefused, jitter: loop.host.jitter, at: now))
    }

    private func due(at now: EventTime) {
        if let deadline = client.nextDeadline, deadline <= now {
            perform(client.deadlineReached(jitter: loop.host.jitter, at: now))
        }
        if !unopened.isEmpty { follow(unopened, at: now) }
        for id in ids where watched[id]?.feedDeadlines.contains(where: { $0 <= now }) == true { publish(id, at: now) }
        arm()
    }

    private func arm() {
        let feeds = watched.flatMap { client.takesMessages(of: $0) ? $1.feedDeadlines : [] }
        let opening = unopened.isEmpty ? nil : opensAt
        alarm?.deadline = (feeds + [client.nextDeadline, opening].compactMap { $0 }).min()
    }

    private func perform(_ more: [ChannelClient.Effect]) {
        effects += more
        guard !isPerforming else { return }
        isPerforming = true
        while !effects.isEmpty { perform(effects.removeFirst(), at: loop.now) }
        isPerforming = false
        tellProblems(at: loop.now)
        arm()
    }

    /// The journal says what status says, when it begins and when it ends.
    private func tellProblems(at now: EventTime) {
        let found = client.problems
        guard !(found.isEmpty && toldProblems.isEmpty) else { return }
        let subjects = Set(found.map(\.subject))
        guard subjects != toldProblems else { return }
        let name = config.endpoint.settings.name
        for problem in found where !toldProblems.contains(problem.subject) {
            log.channelProblem(name, words(problem), lines: &problemLines, at: now)
        }
        for subject in toldProblems.subtracting(subjects).sorted() {
            log.channelProblemEnded(name, subject, lines: &problemLines, at: now)
        }
        toldProblems = subjects
        changed()
    }

    private func perform(_ effect: ChannelClient.Effect, at now: EventTime) {
        switch effect {
        case .openTransport(let request): transport.open(request)
        case .closeTransport: transport.close()
        case .send(let frame): transport.send(frame)
        case .request(let request):
            requests.send(request, credentials.tls) { [unowned self] status, body in
                perform(
                    client.answered(
                        request.number, status: status, body: body, jitter: loop.host.jitter, at: loop.now))
            }
        case .renewCredential(let error): renewCredential(isFirst: error == nil, at: now)
        case .settled(let trackable, let name, _, let outcome): settled(trackable, name, outcome, at: now)
        case .subscriberChanged(let change): viewersChanged(change, at: now)
        case .connectionChanged(let state, let error):
            self.error = error
            log.channelChanged(
                config.endpoint.settings.name, state.rawValue, error?.message, lines: &stateLines, at: now)
            changed()
            if state == .connected { publishAll(at: now) }
        case .requestsArrive(let arrive):
            isByRequests = arrive
            log.channelByRequests(config.endpoint.settings.name, arrive, lines: &stateLines, at: now)
            changed()
            if arrive { publishAll(at: now) }
        case .channelChanged(let trackable, _, _): publish(trackable, at: now)
        case .trackableChanged(let trackable, let state, let error):
            watched[trackable]?.state = state
            watched[trackable]?.error = error
            changed()
        case .warned(let trackable, let warning):
            log.warning("channel \(config.endpoint.settings.name), trackable \(trackable): \(warning.words)")
        }
    }

    private func viewersChanged(_ change: SubscriberChange, at now: EventTime) {
        viewers.changed(change)
        if case .add = change.action { watched[change.trackable]?.viewerArrived(at: now) }
        subscriberChanged(change, now)
        publish(change.trackable, at: now)
    }
}

// Credentials.
extension ChannelDelivery {
    private func renewCredential(isFirst: Bool, at now: EventTime) {
        guard !isFirst else { return obtainCredential(at: now) }
        credentials.refresh(at: now) { [unowned self] renewal in
            switch renewal {
            case .new: obtainCredential(at: loop.now)
            case .later: lacksCredential("no other credential is available now", isTransient: true)
            case .none where client.state == .connected:
                lacksCredential("the credential is refused, and there is no other", isTransient: false)
            // The same one may be taken later: the clock of this host or of the service may have been wrong.
            case .none: obtainCredential(at: loop.now)
            }
        }
    }

    private func obtainCredential(at now: EventTime) {
        credentials.obtain(at: now) { [unowned self] result in
            switch result {
            case .failure(let problem): lacksCredential(problem.message, isTransient: problem.isTransient)
            case .success(let secrets):
                guard let credential = credential(secrets) else {
                    return lacksCredential("there is no credential", isTransient: false)
                }
                perform(client.credentialRenewed(credential, at: loop.now))
            }
        }
    }

    private func credential(_ secrets: RequestSecrets) -> ChannelCredential? {
        switch config.endpoint.auth {
        case .basic(let user, let password):
            secrets.values[password].map { .key(ChannelSecret("\(user):\($0)")) }
        case .bearer(let name): secrets.values[name].map { .token(ChannelSecret($0)) }
        case .tokenCommand, .oauth2: secrets.token.map { .token(ChannelSecret($0)) }
        case .header, nil: nil
        }
    }

    private func lacksCredential(_ words: String, isTransient: Bool) {
        perform(
            client.credentialUnavailable(words, isTransient: isTransient, jitter: loop.host.jitter, at: loop.now))
    }
}

extension ChannelClient.Warning {
    fileprivate var words: String {
        switch self {
        case .secondPublisher(let clientID): "\(clientID.visible(bytesMax: 64)) publishes it as well"
        case .malformedRequest(let member):
            "viewer \(member.visible(bytesMax: 64)) asks for something that is no resolution"
        case .presenceRefused(let error): "viewers cannot see that it is there: \(error.message)"
        }
    }
}

extension ChannelClient.Problem {
    /// What it is about: the same for as long as it lasts.
    fileprivate var subject: String {
        switch self {
        case .credentialRefused, .credentialMissing: "its credential"
        case .unreachable, .failed: "its connection"
        case .shortLived: "how long its connections last"
        case .unanswered(let trackable): "answers about \(trackable)"
        case .tooManyMembers(let trackable, _): "the number of viewers of \(trackable)"
        case .frameSkipped: "the size of its frames"
        }
    }

    /// - Parameter credential: which one to look at, and where it is.
    fileprivate func words(checking credential: String) -> String {
        switch self {
        case .credentialRefused(let error, let times):
            "the service refuses the credential (\(error.message), \(times) times in a row), which is fetched again in growing "
                + "pauses of up to 15 minutes: \(credential), and the clock of this host"
        case .credentialMissing(let error, let times):
            "there is no credential (\(error.message), \(times) times in a row), and it is fetched again in growing pauses of up "
                + "to 15 minutes: \(credential)"
        case .unreachable(let why, let times):
            "there is no connection (\(why)\(times > 1 ? ", \(times) times in a row" : "")), and it is tried again: look at url "
                + "and auth of the channel, and at what is between"
        case .shortLived(let why, let times):
            "the connection ended within a minute (\(why)), \(times) times in a row, and is made again in growing pauses: look at url "
                + "of the channel and at what is between; if it is right, the service has to be mended"
        case .failed(let error):
            "the service refuses the connection (\(error.message)), and it is not tried again: mend that, then `waypost reload`"
        case .unanswered(let trackable):
            "the service has not acknowledged what was sent of \(trackable) for a minute: viewers may see nothing new; "
                + "another connection sends it again"
        case .tooManyMembers(let trackable, let ignored):
            "\(trackable) has more than \(PresenceMap.membersMax) viewers: \(ignored) reports of others were ignored, and what they "
                + "ask for does not count: give tokens with presence to fewer"
        case .frameSkipped:
            "a frame of the service was too large and was skipped, so that not all viewers may be known: let viewers say less "
                + "of themselves in their presence"
        }
    }
}
