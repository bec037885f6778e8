import Protocols
import WaypostCore

/// Judges the answers to the requests of one endpoint by the rules of its profile.
package struct AnswerJudge {
    private let renderer: RequestRenderer
    private let rules: ResponseRules
    private let settings: EndpointSettings

    /// - Parameter context: as of the request: an answer may name rows by any value that they were sent with.
    package init(_ settings: EndpointSettings, in context: RenderContext = RenderContext()) {
        renderer = RequestRenderer(settings, in: context)
        rules = settings.profile.response
        self.settings = settings
    }

    /// Exactly one verdict for any outcome whatsoever.
    package func verdict(for outcome: UplinkOutcome, of batch: Batch) -> Verdict {
        let reply: UplinkReply
        switch outcome.result {
        case .failed(let failure): return .retry(.transport(failure), after: nil)
        // Nothing was sent, so that nothing can be accepted.
        case .connected: return .retry(.transport(.broken("there was only a connection")), after: nil)
        case .reply(let received): reply = received
        case .published(let received):
            return received.verdict(
                of: batch, rowsPerMessage: settings.profile.compiled.parts.broker?.rowsPerMessage ?? 1,
                needsSubscriber: settings.needsSubscriber)
        }
        guard reply.status >= 200 else {
            return .retry(.transport(.broken("the answer ended with the interim status \(reply.status)")), after: nil)
        }
        let after = RetryAfter.parse(reply.headers)
        let doubt = doubt(about: reply)
        if case .page? = doubt {} else if isCollision(reply) { return .collision }
        switch (rules.meaning(of: reply.status), doubt) {
        case (.of(let group), _): return Verdict(group, of: reply, after: after)
        case (_, let doubt?): return .retry(doubt, after: after)
        case (.notConfirmed, nil): return .retry(.notConfirmed(status: reply.status), after: after)
        case (.success, nil): return success(reply, batch, after: after)
        }
    }

    /// The number of rows that the server reports as stored; nil when it does not report one.
    package func stored(_ outcome: UplinkOutcome) -> Int? {
        guard let path = rules.storedPath, case .reply(let reply) = outcome.result,
            case .int(let count) = reply.json?.value(at: path), count >= 0
        else { return nil }
        return Int(clamping: count)
    }

    /// Why a reply may be of somebody else than the server that was asked; nil = nothing indicates that.
    package func doubt(about reply: UplinkReply) -> Verdict.RetryCause? {
        guard !rules.acceptsPages else { return nil }
        switch HTMLCheck(reply) {
        case .page(let title): return .page(title: title)
        case .unknown(let why): return .unclear(why)
        case .noPage: return nil
        }
    }

    /// What is wrong with the answer to a request that stores nothing; nil = nothing. It says nothing about any row.
    package func doubt(aboutProbe outcome: UplinkOutcome) -> Verdict? {
        switch outcome.result {
        case .connected: return nil
        case .failed(let failure): return .retry(.transport(failure), after: nil)
        case .published(let reply):
            guard reply.failure != nil || reply.ending != nil || reply.reasons.contains(where: { $0?.isError != false })
            else { return nil }
            return verdict(for: outcome, of: Batch(endpoint: settings.name, id: "", rows: [], sentMs: nil))
        case .reply(let reply):
            switch ResponseRules.http.meaning(of: reply.status) {
            case .success, .notConfirmed: return doubt(about: reply).map { .retry($0, after: nil) }
            case .of(let group): return Verdict(group, of: reply, after: RetryAfter.parse(reply.headers))
            }
        }
    }

    /// A body that has to be read has to be complete: the missing part may name the row that was refused.
    private func success(_ reply: UplinkReply, _ batch: Batch, after: Duration?) -> Verdict {
        guard rules.readsBodies else { return .accepted }
        let body = ReplyBody(reply)
        if let doubt = body.doubt { return .retry(.unclear(doubt), after: after) }
        if let okJSON = rules.okJSON, !okJSON.holds(in: body) {
            let cause = body == .notJSON ? Verdict.RetryCause.unclear(.notJSON) : .notConfirmed(status: reply.status)
            return .retry(cause, after: after)
        }
        guard let itemErrors = rules.itemErrors else { return .accepted }
        let reader = ItemErrorReader(rules: itemErrors, rows: RowNames(batch: batch, renderer: renderer), after: after)
        return reader.verdict(in: body, of: reply.status) ?? .accepted
    }

    private func isCollision(_ reply: UplinkReply) -> Bool {
        rules.collision.contains { sign in
            guard sign.status.isEmpty || sign.status.contains(reply.status) else { return false }
            guard !sign.paths.isEmpty else { return !sign.status.isEmpty }
            guard let text = reply.json?.value(atFirstOf: sign.paths)?.text else { return false }
            return (sign.equals.map { $0 == text } ?? true) && (sign.contains.map { text.has($0) } ?? true)
        }
    }
}

extension Verdict {
    /// What a status other than success means in its class.
    init(_ group: ResponseRules.Class, of reply: UplinkReply, after: Duration?) {
        let status = reply.status
        switch (group, status) {
        case (.authStop, _): self = .authStop(status: status, after: after)
        case (.goneStop, _): self = .goneStop(status: status, after: after)
        case (.retry, 300...399), (.retry, 511):
            self = .retry(.redirected(status: status, host: reply.locationHost), after: after)
        case (.retry, 409): self = .retry(.conflict, after: after)
        case (.retry, _): self = .retry(.status(status), after: after)
        case (.split, 413), (.split, 414): self = .tooLarge(status: status, after: after)
        case (.split, _): self = .split(status: status)
        case (.misconfigured, 415): self = .encodingRefused(after: after)
        case (.misconfigured, _): self = .misconfigured(status: status, after: after)
        }
    }
}

extension ResponseRules.OkJSON {
    fileprivate func holds(in body: ReplyBody) -> Bool {
        guard let value = body.json?.value(atFirstOf: paths) else { return missingIsOk }
        if isArray { return value.items != nil }
        return value.text.map(values.contains) ?? false
    }
}

extension UplinkReply {
    /// nil when the body is empty, not JSON, or incomplete.
    fileprivate var json: JSONValue? { ReplyBody(self).json }

    /// The host that `Location` names, without anything that could be a secret.
    fileprivate var locationHost: String? {
        guard let text = header("location"), let scheme = text.firstOccurrence(of: "://"),
            text[..<scheme.lowerBound].allSatisfy({ $0.isASCII && $0.isLetter })
        else { return nil }
        let authority = text[scheme.upperBound...].prefix { !"/?#".contains($0) }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        let isPlain = host.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return (1...255).contains(host.utf8.count) && isPlain ? String(host) : nil
    }
}

extension String {
    fileprivate func has(_ part: String) -> Bool { part.isEmpty || firstOccurrence(of: part) != nil }
}
