import Delivery
import Network
import Profiles
import Protocols
import WaypostCore
import WaypostHost

/// Contacts the server of an endpoint after the start, before there is anything to send, and remembers how far that came.
final class EndpointContact {
    private(set) var state: FirstContact
    /// What kept the server from being reached or from answering well, and what helps; nil = nothing.
    private(set) var problem: String?
    private let endpoint: String
    private let digest: UInt64
    private let notes: ContactNotes
    private let uplink: any Uplink
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var transfer: UplinkTransfer?
    /// Attempts that have begun: a token that comes late is for none.
    private var attempts = 0
    /// The last attempt was the first that reached the server.
    private(set) var isFirstReach = false
    /// An attempt is due.
    var due: (EventTime) -> Void = { _ in }

    init(of route: EndpointDelivery.Route, notes: ContactNotes, uplink: any Uplink, loop: EventLoop) {
        endpoint = route.settings.name
        digest = route.credentials.digest
        self.notes = notes
        self.uplink = uplink
        self.loop = loop
        let note = notes.note(of: endpoint, digest: digest, at: loop.now)
        state = FirstContact(triedAt: note?.triedAt, reachedAt: note?.reachedAt)
        problem = note?.problem
        alarm = loop.alarm { [unowned self] now in due(now) }
    }

    func start(after delay: Duration, at now: EventTime) {
        state.started(after: delay, at: now)
        arm()
    }

    func stop() {
        state.stopped()
        if let transfer { uplink.cancel(transfer) }
        transfer = nil
        arm()
    }

    func linkChanged(_ backoff: Backoff, at now: EventTime) {
        state.linkChanged(backoff, at: now)
        arm()
    }

    /// - Parameter other: a later time; nil = when it is due.
    func arm(_ other: EventTime? = nil) { alarm?.deadline = state.dueAt.map { max($0, other ?? $0) } }

    /// Not before something happens that the caller hears of.
    func rest() { alarm?.deadline = nil }

    /// The server was reached otherwise.
    func heard(isAcceptance: Bool, at now: EventTime) {
        let isNews = state.reachedAt == nil || problem != nil
        state.heard(isAcceptance: isAcceptance, at: now)
        problem = nil
        if isNews { keep() }
        arm()
    }

    /// - Parameter done: what came of it, and what is wrong; nil = nothing. Not called once it was stopped.
    func attempt(
        over route: EndpointDelivery.Route, at now: EventTime, _ done: @escaping (UplinkOutcome, String?) -> Void
    ) {
        state.began(at: now)
        // Should the process end meanwhile, the next one knows of it.
        keep()
        arm()
        attempts += 1
        let number = attempts
        ProbeRequest.make(over: route, loop: loop) { [weak self] result in
            guard let self, attempts == number, state.dueAt == nil else { return }
            do throws(CredentialProblem) {
                transfer = uplink.send(try result.get()) { [unowned self] outcome in
                    transfer = nil
                    done(outcome, ended(outcome, route))
                }
            } catch {
                let failure: TransportFailure = error.isClock ? .clock(error.message) : .credential(error.message)
                let outcome = UplinkOutcome(.failed(failure), written: .nothing)
                done(outcome, ended(outcome, route))
            }
        }
    }

    /// A connection that was made for another reason has shown as much.
    /// - Returns: what is wrong, where that is news.
    func saw(_ outcome: UplinkOutcome, over route: EndpointDelivery.Route, at now: EventTime) -> String? {
        guard transfer == nil else { return nil }
        state.began(at: now)
        return ended(outcome, route)
    }

    /// - Returns: what is wrong, where that is news.
    private func ended(_ outcome: UplinkOutcome, _ route: EndpointDelivery.Route) -> String? {
        let settings = route.settings
        let finding = ProbeFinding(outcome, settings, refusal: route.credentials.refusal)
        let (before, reachedBefore) = (problem, state.reachedAt)
        problem = finding.problem
        let ending: FirstContact.Ending =
            finding.isReached ? .reached : .failed(isUnreached: finding.isUnreached)
        // The place of the device in its fleet is chance enough.
        state.ended(ending, settings.backoff, jitter: 0.5, at: loop.now)
        isFirstReach = finding.isReached && reachedBefore == nil
        keep()
        arm()
        return problem == before ? nil : problem
    }

    private func keep() {
        guard let triedAt = state.triedAt ?? state.reachedAt else { return notes.set(nil, of: endpoint) }
        notes.set(
            .init(digest: digest, triedAt: triedAt, reachedAt: state.reachedAt, problem: problem), of: endpoint)
    }
}

/// A request that stores nothing, with all that it needs.
enum ProbeRequest {
    /// - Parameter done: called at once, or when there is a token.
    static func make(
        over route: EndpointDelivery.Route, loop: EventLoop,
        _ done: @escaping (Result<UplinkRequest, CredentialProblem>) -> Void
    ) {
        let bare = RequestRenderer(route.settings).probeRequest()
        guard !bare.connectsAlone else {
            var request = bare
            request.tls = route.credentials.tls
            return done(.success(request))
        }
        route.credentials.obtain(at: loop.now) { result in
            done(
                Result { () throws(CredentialProblem) in
                    let context = RenderContext(identify: RecordID.make, secrets: try result.get(), gzip: false)
                    var request = RequestRenderer(route.settings, in: context).probeRequest()
                    try route.credentials.complete(&request, batchID: "", at: loop.now)
                    return request
                })
        }
    }
}

/// What the outcome of a request that stores nothing says of the server.
struct ProbeFinding {
    /// A connection was made, or the server has answered.
    let isReached: Bool
    /// Nothing of it has come to the server.
    let isUnreached: Bool
    /// What is wrong, and what helps; nil = nothing.
    let problem: String?

    /// - Parameter refusal: what a refused credential means here.
    init(_ outcome: UplinkOutcome, _ settings: EndpointSettings, refusal: CredentialRefusal) {
        let verdict = AnswerJudge(settings).doubt(aboutProbe: outcome)
        problem = verdict.map { Self.words($0, outcome, settings, refusal: refusal) }
        isUnreached =
            switch outcome.result {
            // What the clock of this host is to blame for is over with that.
            case .failed(.clock): true
            case .failed(let failure): failure.isUnreached
            default: false
            }
        isReached =
            switch outcome.result {
            case .failed: false
            case .connected: true
            case .published(let reply): reply.failure == nil
            case .reply:
                switch verdict {
                // This is hardly the server that was asked.
                case .retry(.redirected, _), .retry(.page, _): false
                default: true
                }
            }
    }

    /// What is wrong, and what helps.
    static func words(
        _ verdict: Verdict, _ outcome: UplinkOutcome, _ settings: EndpointSettings, refusal: CredentialRefusal
    ) -> String {
        var words = UploadProblem.words(verdict, outcome).text
        var cure = UploadProblem.cure(outcome, settings, credential: refusal.cure)
        if case .authStop = verdict, case .reply = outcome.result {
            words += ", \(refusal.words)"
            cure = cure ?? refusal.cure
        }
        return UploadProblem.words(words, cure)
    }
}
