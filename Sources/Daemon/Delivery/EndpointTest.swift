import Configuration
import Logging
import Network
import Profiles
import Protocols
import WaypostControl
import WaypostCore
import WaypostHost

/// One request to a server for a person who waits, and what its answer means in plain words.
package struct EndpointTest {
    /// What a test location says of itself in the records of profiles that send a reason.
    private static let reason = "test"
    private static let shownBytesMax = 1500

    /// The place that a test location has; nil = that of the newest fix.
    package var place: Coordinate?
    /// The newest fix: what else a test location says, so that a server which shows the last one shows nothing wrong. nil = it is not
    /// known.
    var newest: Location?
    /// Whether the server is to store a test location.
    package var stores = false

    package init() {}

    /// The endpoint that is meant.
    ///
    /// - Parameter name: nil = the only one.
    /// - Throws: `ControlError` that says which there are.
    package static func chosen(_ name: String?, of endpoints: [EndpointSettings]) throws(ControlError)
        -> EndpointSettings
    {
        try OperatorOrders.configured(name, endpoints)
    }

    /// - Parameters:
    ///   - isOwnProcess: not the daemon sends it: a broker sees another client than that of the daemon, which announces nothing.
    ///   - done: called once.
    func run(
        over route: EndpointDelivery.Route, isOwnProcess: Bool, uplink: any Uplink, loop: EventLoop,
        _ done: @escaping (EndpointTestReply, UplinkOutcome?) -> Void
    ) {
        let settings = route.settings
        var reply = EndpointTestReply()
        reply.endpoint = settings.name
        reply.address = BaseURL.masked(settings.baseURL)
        reply.digest = route.credentials.configured
        let batch = batch(for: settings, host: loop.host)
        if !stores, !settings.profile.hasProbe {
            reply.wouldStore = batch.map { Self.shown($0, settings) }
            reply.profile = settings.profile.name
        }
        guard !stores || batch != nil else {
            reply.words = "no position is known yet for a test location: name one with --at LAT,LON"
            return done(reply, nil)
        }
        reply.sent =
            stores ? "location" : settings.profile.isForBroker || !settings.profile.hasProbe ? "connection" : "request"
        let began = loop.now
        let sent = { (result: Result<UplinkRequest, CredentialProblem>) in
            do throws(CredentialProblem) {
                var request = try result.get()
                if isOwnProcess { request.broker?.session.becomeGuest() }
                uplink.send(request) { outcome in
                    reply.milliseconds = Double(loop.now.duration(since: began).nanoseconds / 1000) / 1000
                    (reply.bytesSent, reply.bytesReceived) = (outcome.bytesSent, outcome.bytesReceived)
                    Self.explain(outcome, route, stored: stores ? batch : nil, &reply)
                    done(reply, outcome)
                }
            } catch {
                reply.words = error.message
                done(reply, nil)
            }
        }
        guard stores, let batch else { return ProbeRequest.make(over: route, loop: loop, sent) }
        route.credentials.obtain(at: loop.now) { result in
            sent(
                Result { () throws(CredentialProblem) in
                    let context = RenderContext(identify: RecordID.make, secrets: try result.get(), gzip: false)
                    var request = RequestRenderer(settings, in: context).request(for: batch)
                    try route.credentials.complete(&request, batchID: batch.id, at: loop.now)
                    return request
                })
        }
    }

    /// One location of a queue that does not exist, so that neither its id nor that of the batch is ever that of a row; nil without a place.
    private func batch(for settings: EndpointSettings, host: any Host) -> Batch? {
        guard let place = place ?? newest?.coordinate, let outbox = try? host.randomBytes(16) else { return nil }
        let now = host.wallClockMs
        var location =
            newest
            ?? Location(
                trackable: nil, time: UTCTime(milliseconds: now), at: host.bootTime, coordinate: place,
                horizontalAccuracy: 100, moving: false)
        (location.trackable, location.time) = (settings.device, UTCTime(milliseconds: now))
        (location.coordinate, location.reason) = (place, Self.reason)
        return Batch(
            endpoint: settings.name, id: "\(String(hexOf: outbox.prefix(4)))-\(settings.name)-test",
            rows: [QueuedLocation(seq: 1, bootID: nil, receivedMs: now, location: location)], sentMs: now,
            outbox: outbox)
    }

    /// The request without secrets.
    private static func shown(_ batch: Batch, _ settings: EndpointSettings) -> String {
        let context = RenderContext(identify: RecordID.make, isMasked: true, gzip: false)
        let request = RequestRenderer(settings, in: context).request(for: batch)
        let body = request.body.isEmpty ? "" : " \(String(decoding: request.body, as: UTF8.self))"
        return "\(request.method) \(BaseURL.masked(request.url))\(body)".cut(toBytes: shownBytesMax)
    }

    private static func explain(
        _ outcome: UplinkOutcome, _ route: EndpointDelivery.Route, stored: Batch?, _ reply: inout EndpointTestReply
    ) {
        let (settings, refusal) = (route.settings, route.credentials.refusal)
        let problem: String?
        if let stored {
            let judge = AnswerJudge(settings, in: RenderContext(identify: RecordID.make))
            let verdict = judge.verdict(for: outcome, of: stored)
            problem = verdict == .accepted ? nil : words(verdict, outcome, settings, refusal)
        } else {
            problem = ProbeFinding(outcome, settings, refusal: refusal).problem
        }
        reply.isWell = problem == nil
        guard problem == nil else { return reply.words = problem ?? "" }
        let peer =
            Peer(url: BrokerAddress(settings.baseURL)?.connectURL ?? settings.baseURL).map { "\($0)" } ?? "the server"
        let isEncrypted = (try? BaseURL.parse(settings.baseURL).get())?.isEncrypted == true
        let way = "\(peer)\(isEncrypted ? ", with TLS" : "")"
        switch outcome.result {
        case .reply(let answer) where stored != nil:
            reply.words = "the server took the test location (status \(answer.status)): \(way)"
        case .reply(let answer): reply.words = "the server answers with status \(answer.status): \(way)"
        case .published where stored != nil: reply.words = "the broker took the test location: \(way)"
        case .published: reply.words = "the broker accepts this device: \(way)"
        case .connected, .failed: reply.words = "the server accepts connections: \(way)"
        }
    }

    private static func words(
        _ verdict: Verdict, _ outcome: UplinkOutcome, _ settings: EndpointSettings, _ refusal: CredentialRefusal
    ) -> String {
        if verdict.lacksSubscriber, case .published(let reply) = outcome.result {
            return
                "the broker took the test location, and nobody subscribes to its topic\(reply.detail.map { " (\($0))" } ?? ""), so that "
                + "nothing stores it: start the program that does, or set no_subscriber = \"accept\""
        }
        return ProbeFinding.words(verdict, outcome, settings, refusal: refusal)
    }
}

extension EndpointTest {
    /// The same from a process that is not the daemon, with credentials as the daemon would have them.
    package func runAlone(_ config: EndpointConfig, environment: [String: String], stateDirectory: String)
        -> EndpointTestReply
    {
        var answer = EndpointTestReply()
        answer.endpoint = config.settings.name
        guard let loop = try? EventLoop() else { return answer }
        do throws(HTTPUplink.SetupError) {
            let uplink = try LoopedUplink(settings: .init(version: AgentVersion.current), loop: loop)
            let log = AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false)
            let route = EndpointDelivery.Route(
                settings: config.settings,
                credentials: EndpointCredentials(
                    config, environment: environment, stateDirectory: stateDirectory, uplink: uplink, log: log,
                    loop: loop))
            var isDone = false
            run(over: route, isOwnProcess: true, uplink: uplink, loop: loop) { reply, _ in
                (answer, isDone) = (reply, true)
                loop.stop()
            }
            if !isDone { try? loop.run() }
            uplink.close()
        } catch {
            answer.words = error.description
        }
        return answer
    }
}

extension BrokerSession {
    /// Another client than the daemon, which says nothing about this device to others.
    fileprivate mutating func becomeGuest() {
        clientID = "waypost-test-\(UInt32.random(in: 0...UInt32.max))"
        (will, births, formerTopics, subscriptions) = (nil, [], [], [])
    }
}
