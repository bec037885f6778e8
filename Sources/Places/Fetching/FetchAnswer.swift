import Protocols

/// What the answer to a request for a list means.
package enum FetchAnswer: Hashable, Sendable {
    /// The list of the last time is still the one.
    case unchanged
    /// The body, whose content is yet to be read.
    case list([UInt8], ListVersion)
    /// - Parameters:
    ///   - words: for people, about the server.
    ///   - asked: how long it asks to wait; nil = it does not.
    ///   - isUnauthorised: another credential may help.
    case failed(_ words: String, asked: Duration?, isUnauthorised: Bool)

    /// - Parameters:
    ///   - version: of the list in force, by which the request asked; nil = there is none.
    ///   - bytesMax: of the body.
    package init(_ outcome: UplinkOutcome, version: ListVersion?, bytesMax: Int) {
        guard case .reply(let reply) = outcome.result else {
            self = .failed(Self.words(outcome), asked: nil, isUnauthorised: false)
            return
        }
        if reply.status == 200, case .page(let title) = HTMLCheck(reply) {
            let words = "the server answered with status 200 and \(HTMLCheck.words(title: title, key: "url"))"
            self = .failed(words, asked: nil, isUnauthorised: false)
            return
        }
        switch reply.status {
        case 200 where !reply.bodyIncomplete: self = .list(reply.body, ListVersion(of: reply))
        case 200:
            let words =
                reply.body.count >= bytesMax
                ? "the answer has more than \(bytesMax >> 20) MiB" : "the answer broke off"
            self = .failed(words, asked: nil, isUnauthorised: false)
        case 304 where version?.conditions.isEmpty == false: self = .unchanged
        default:
            self = .failed(
                "the server answered with status \(reply.status)", asked: RetryAfter.parse(reply.headers),
                isUnauthorised: [401, 403].contains(reply.status))
        }
    }

    private static func words(_ outcome: UplinkOutcome) -> String {
        if case .failed(let failure) = outcome.result { failure.message } else { "the server is a broker" }
    }
}
