import Positioning

extension EndpointSettings {
    /// What an attempt means by the rules of its profile: exactly one verdict for any outcome whatsoever.
    ///
    /// - Parameter context: as of the request: an answer may name rows by any value that they were sent with.
    public func verdict(
        for outcome: UplinkOutcome, of batch: Batch, in context: RenderContext = RenderContext()
    ) -> Verdict {
        profile.response.verdict(for: outcome, RowNames(batch: batch, settings: self, context: context))
    }
}

extension ResponseRules {
    /// The receiver contract of the profile `waypost`.
    public static let waypost = ResponseRules(
        itemErrors: ItemErrors(
            path: ["rejected"], match: .fields(["seq": "seq"]), code: ["code"], reason: ["reason"],
            retryCodes: ["busy"]),
        collision: [CollisionSign(status: [409], paths: [["error"]], equals: "asset_taken")])

    fileprivate func verdict(for outcome: UplinkOutcome, _ rows: RowNames) -> Verdict {
        let reply: UplinkReply
        switch outcome.result {
        case .failed(let failure): return .retry(.transport(failure), after: nil)
        case .reply(let received): reply = received
        }
        guard reply.status >= 200 else {
            return .retry(.transport(.broken("the answer ended with the interim status \(reply.status)")), after: nil)
        }
        if isCollision(reply) { return .collision }
        let after = RetryAfter.parse(reply.headers)
        switch meaning(of: reply.status) {
        case .success: return success(reply, rows, after: after)
        case .notConfirmed: return .retry(.notConfirmed(status: reply.status), after: after)
        case .of(let group): return Self.verdict(of: group, reply, after: after)
        }
    }

    /// Where the body has to be read it has to be there as promised: a part of it may lack the row that was refused.
    private func success(_ reply: UplinkReply, _ rows: RowNames, after: Duration?) -> Verdict {
        guard readsBodies else { return .accepted }
        let body = ReplyBody(reply)
        if let doubt = body.doubt { return .retry(.unclear(doubt), after: after) }
        if let okJSON, !okJSON.holds(in: body) {
            let cause = body == .notJSON ? Verdict.RetryCause.unclear(.notJSON) : .notConfirmed(status: reply.status)
            return .retry(cause, after: after)
        }
        return itemErrors?.verdict(in: body, of: reply.status, about: rows, after: after) ?? .accepted
    }

    /// The number of rows that the receiver says it has really stored; nil when it does not tell.
    public func stored(_ outcome: UplinkOutcome) -> Int? {
        guard let storedPath, case .reply(let reply) = outcome.result,
            case .int(let count) = reply.json?.value(at: storedPath), count >= 0
        else { return nil }
        return Int(clamping: count)
    }

    enum Meaning: Hashable {
        case success
        /// 2xx that `ok_status` leaves out.
        case notConfirmed
        case of(Class)
    }

    /// What the profile says about a status goes before what HTTP says; 3xx is never a success.
    func meaning(of status: Int) -> Meaning {
        for group in Class.allCases where classes[group]?.contains(status) ?? false { return .of(group) }
        let isMoved = (300...399).contains(status)
        if !isMoved, okStatus?.contains(status) ?? false { return .success }
        if (200...299).contains(status) { return okStatus == nil ? .success : .notConfirmed }
        let usual = Class(usualFor: status)
        if classes[usual] == nil || isMoved { return .of(usual) }
        // Its class was taken away and no other given.
        return (400...499).contains(status) && classes[.misconfigured] == nil ? .of(.misconfigured) : .of(.retry)
    }

    static func verdict(of group: Class, _ reply: UplinkReply, after: Duration?) -> Verdict {
        let status = reply.status
        switch (group, status) {
        case (.authStop, _): return .authStop(status: status, after: after)
        case (.goneStop, _): return .goneStop(status: status, after: after)
        case (.retry, 300...399), (.retry, 511):
            return .retry(.redirected(status: status, host: reply.locationHost), after: after)
        case (.retry, 409): return .retry(.conflict, after: after)
        case (.retry, _): return .retry(.status(status), after: after)
        case (.split, 413), (.split, 414): return .tooLarge(status: status, after: after)
        case (.split, _): return .split(status: status)
        case (.misconfigured, 415): return .encodingRefused(after: after)
        case (.misconfigured, _): return .misconfigured(status: status, after: after)
        }
    }

    private func isCollision(_ reply: UplinkReply) -> Bool {
        collision.contains { sign in
            guard sign.status.isEmpty || sign.status.contains(reply.status) else { return false }
            guard !sign.paths.isEmpty else { return !sign.status.isEmpty }
            guard let text = reply.json?.value(atFirstOf: sign.paths)?.text else { return false }
            return (sign.equals.map { $0 == text } ?? true) && (sign.contains.map { text.has($0) } ?? true)
        }
    }
}

extension ResponseRules.Class {
    /// The rule of HTTP for a status that is no success.
    init(usualFor status: Int) {
        switch status {
        case 401, 402, 403, 407: self = .authStop
        case 404, 410: self = .goneStop
        case 400, 413, 414, 422: self = .split
        case 408, 409, 421, 423, 424, 425, 429: self = .retry
        case 100...199, 400...499, 501, 505: self = .misconfigured
        default: self = .retry
        }
    }
}

extension ResponseRules.OkJSON {
    func holds(in body: ReplyBody) -> Bool {
        guard let value = body.json?.value(atFirstOf: paths) else { return missingIsOk }
        return value.text.map(values.contains) ?? false
    }
}

extension UplinkReply {
    /// nil when the body is empty, no JSON, or not all of it is there.
    var json: JSONValue? { ReplyBody(self).json }

    /// The host that `Location` names, without anything that could be a secret.
    var locationHost: String? {
        guard let text = header("location"), let scheme = text.firstRange(of: "://"),
            text[..<scheme.lowerBound].allSatisfy({ $0.isASCII && $0.isLetter })
        else { return nil }
        let authority = text[scheme.upperBound...].prefix { !"/?#".contains($0) }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        let isPlain = host.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return (1...255).contains(host.utf8.count) && isPlain ? String(host) : nil
    }
}

extension String {
    fileprivate func has(_ part: String) -> Bool { part.isEmpty || firstRange(of: part) != nil }

    /// Without Foundation and regular expressions.
    fileprivate func firstRange(of part: String) -> Range<String.Index>? {
        var start = utf8.startIndex
        while start < utf8.endIndex {
            if utf8[start...].starts(with: part.utf8) {
                return start..<utf8.index(start, offsetBy: part.utf8.count)
            }
            utf8.formIndex(after: &start)
        }
        return nil
    }
}
