import Delivery
import Journal
import Profiles
import Protocols
import WaypostCore

/// What keeps the uploads to one endpoint from working, as the log and the status show it.
struct UploadProblem {
    /// Without what is done about it, which depends on when that is asked.
    private var last: String?
    private var gate = RepeatGate()
    /// Where that was, below what was sent: `dns`, `connect`, `tls` …; nil = the server has answered.
    private(set) var layer: String?
    /// What helps; nil = nothing is known.
    private(set) var cure: String?
    /// When the connection to the broker is made again, whatever is sent before; nil = that is not waited for.
    var reconnectsAt: EventTime?

    mutating func clear() { (last, layer, reconnectsAt, cure) = (nil, nil, nil, nil) }

    /// An upload succeeded.
    /// - Returns: whether that is to be logged.
    mutating func ended(isActive: Bool, at now: EventTime) -> Bool {
        if isActive { (last, layer, cure) = (nil, nil, nil) }
        return gate.ended(at: now.nanoseconds)
    }

    /// - Parameters:
    ///   - problem: what has gone wrong; what is done about it is added.
    ///   - layer: where, unless the server has answered.
    ///   - cure: what helps.
    ///   - isNews: the state of the endpoint has changed.
    /// - Returns: what is to be logged; nil = nothing.
    mutating func occurred(
        _ problem: String, layer: String? = nil, cure: String? = nil, _ schedule: DeliverySchedule, isNews: Bool,
        at now: EventTime
    ) -> String? {
        (last, self.layer, self.cure) = (problem, layer, cure)
        let text = words(problem, schedule, at: now)
        // For a batch that is taken apart, the row that is found is logged.
        if case .active = schedule.state, schedule.failures == 0 { return nil }
        let verdict = gate.occurred(at: now.nanoseconds, isNews: isNews)
        return verdict == .suppressed ? nil : text + verdict.words
    }

    /// What went wrong last and what is done about it as of now; nil = nothing.
    func words(_ schedule: DeliverySchedule, at now: EventTime) -> String? {
        last.map { words($0, schedule, at: now) }
    }

    private func words(_ problem: String, _ schedule: DeliverySchedule, at now: EventTime) -> String {
        var text = Self.words(problem, cure)
        switch schedule.state {
        case .active: if let retry = retry(schedule, at: now) { text += "; \(retry)" }
        case .paused(let reason):
            text += "; paused (\(reason))"
            if reason == EndpointState.notBound {
                text += ": `sudo waypost endpoint bind \(schedule.settings.name)` binds it"
            }
            if let retry = retry(schedule, at: now) { text += ", \(retry)" }
            if let rest = schedule.rest(at: now) {
                text += "; the server asked to wait another \(Int(rest.rounded(.up))) s"
            }
        case .stopped(let reason):
            text += "; stopped (\(reason)) until `waypost endpoint resume` or a configuration change"
        case .taken: text += "; stopped, since another device reports this asset"
        case .rebind: text += "; held until it is bound or dropped: `waypost endpoint list` has the command"
        }
        return text
    }

    private func retry(_ schedule: DeliverySchedule, at now: EventTime) -> String? {
        [schedule.nextAttemptAt, reconnectsAt].compactMap { $0 }.max().flatMap { next in
            next > now ? "retry in \(Int(min(next.seconds(since: now), 1e6).rounded(.up))) s" : nil
        }
    }

    static let compressionOff =
        "the server fails over compressed bodies: plain ones are sent for a day; compress = \"none\" does so always"

    static func keepAliveShortened(to interval: Duration) -> String {
        let seconds = interval.milliseconds / 1000
        return "three silent connections to the broker were ended after the same time, as a proxy does: it is asked "
            + "every \(seconds) s from now on, until the restart; keepalive = \"\(seconds)s\" does so always"
    }

    private static let topicsShown = 3

    static func refusedTopics(_ topics: [String]) -> String {
        let shown = topics.prefix(topicsShown).map { $0.visible(bytesMax: 80) }.joined(separator: ", ")
        let more = topics.count > topicsShown ? " and \(topics.count - topicsShown) more" : ""
        return "the broker does not allow this device to publish on \(shown)\(more), by which others know that it is "
            + "there: extend its access rules (ACL); locations are not affected"
    }

    static let unasked =
        "the server sends more answers than it gets requests (unasked_answers): each is discarded with its connection; "
        + "have the server, or the proxy before it, repaired"

    /// - Parameter rows: maximum of a batch.
    static func tooLarge(rows: Int, status: Int) -> String {
        let answer = status >= 200 ? "\(status)" : "packet too large"
        return "batches of \(rows) since a larger one was refused (\(answer)): larger ones are tried again; a higher "
            + "limit of the server, or of the proxy before it, or batch_size = \(rows) helps"
    }

    /// - Parameter rows: maximum of a batch.
    static func tooSlow(rows: Int, isLinkSlow: Bool) -> String {
        isLinkSlow
            ? "the link is too slow for larger batches: they have at most \(rows) locations until they get through quickly"
            : "the server does not answer to larger batches in time: they have at most \(rows) locations; a longer timeout or a smaller batch_size suits it"
    }

    /// - Parameter reason: of the first.
    static func suspects(_ count: Int, _ reason: String) -> String {
        (count == 1 ? "a location fails" : "\(count) locations fail") + " alone"
            + (reason.isEmpty ? "" : " (\(reason))") + " while others are accepted: tried last, and "
            + "quarantined after five such failures in half an hour"
    }

    /// Where it failed, unless the server has answered.
    static func layer(_ outcome: UplinkOutcome) -> String? {
        switch outcome.result {
        case .failed(let failure): failure.word
        case .published(let reply): reply.words == nil ? reply.failure?.word : nil
        case .reply, .connected: nil
        }
    }

    /// What helps, where what went wrong says enough; nil = nothing is known.
    ///
    /// - Parameters:
    ///   - credential: where the credential is, as `CredentialRefusal` has it.
    ///   - hasWorked: the server has accepted something since the start.
    static func cure(
        _ outcome: UplinkOutcome, _ settings: EndpointSettings, credential: String?, hasWorked: Bool = false
    ) -> String? {
        func words(_ failure: TransportFailure) -> String? {
            FailureCure.words(for: failure, settings, credential: credential, hasWorked: hasWorked)
        }
        return switch outcome.result {
        case .failed(let failure): words(failure)
        case .published(let reply): reply.failure.flatMap(words)
        case .reply(let reply): FailureCure.words(status: reply.status, reply.body, settings)
        case .connected: nil
        }
    }

    static func words(_ problem: String, _ cure: String?) -> String { cure.map { "\(problem): \($0)" } ?? problem }

    /// What went wrong with a request, and whether a person has to look at it. What the server says about it is a part of that.
    static func words(_ verdict: Verdict, _ outcome: UplinkOutcome) -> (text: String, isAlarm: Bool) {
        let (text, isAlarm) = ownWords(verdict, outcome)
        guard case .reply(let reply) = outcome.result, reply.status >= 400 else { return (text, isAlarm) }
        return (text + said(reply.status, reply.body), isAlarm)
    }

    /// The beginning of the body of a refusal.
    static func said(_ status: Int, _ body: [UInt8]) -> String {
        ServerWords.first(of: body, status: status).map { " (\"\($0)\")" } ?? ""
    }

    private static func ownWords(_ verdict: Verdict, _ outcome: UplinkOutcome) -> (text: String, isAlarm: Bool) {
        switch (outcome.result, verdict) {
        case (.failed(.timeout(let message)), _) where outcome.written == .whole:
            return (message + "; a longer timeout or a smaller batch_size suits a slow server", false)
        case (.failed(let failure), _):
            let isAlarm = if case .tls = failure { true } else { false }
            return (failure.message, isAlarm)
        case (.published(let reply), _):
            let text = reply.words ?? reply.failure?.message ?? verdict.word
            guard verdict.lacksSubscriber else { return (text, false) }
            return (
                "\(text): the oldest location is tried until it has one, and all others wait, whatever their topic; "
                    + "no_subscriber = \"accept\" counts them as stored", false
            )
        case (.connected, _): return (verdict.word, false)
        case (.reply(let reply), .collision):
            return ("status \(reply.status), by which this device is not the one of the asset", false)
        case (.reply(let reply), .goneStop), (.reply(let reply), .authStop), (.reply(let reply), .encodingRefused),
            (.reply(let reply), .tooLarge):
            return ("status \(reply.status)", false)
        case (_, .retry(.redirected(let status, let host?), _)):
            let cause = "base_url is not the final address, or a portal of this network is in the way"
            return ("status \(status), redirected to \(host): \(cause)", false)
        case (.reply(let reply), .retry(.unclear(let why), _)):
            return ("status \(reply.status), but \(why.rawValue)", false)
        case (.reply(let reply), .retry(.page(let title), _)):
            return ("status \(reply.status) with \(HTMLCheck.words(title: title, key: "base_url"))", false)
        case (.reply(let reply), .retry(.notConfirmed, _)) where reply.body.isEmpty:
            let words = "status \(reply.status) with an empty body, which confirms nothing: check the path in base_url"
            return (words, false)
        case (.reply(let reply), .retry(.status(200..<300), _)):
            return ("status \(reply.status), but nothing was accepted", false)
        default: return (verdict.word, false)
        }
    }
}

extension DeliverySchedule {
    /// Seconds for which the server wants no request; nil = it did not ask for a wait.
    func rest(at now: EventTime) -> Double? { restsUntil > now ? restsUntil.seconds(since: now) : nil }
}
