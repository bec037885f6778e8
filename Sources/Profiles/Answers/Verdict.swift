import Protocols
import WaypostCore

/// What one attempt means for its batch. Only `accepted` and `partlyAccepted` ever remove rows.
package enum Verdict: Hashable, Sendable {
    /// Stored, as far as the server says.
    case accepted
    /// The server refused single rows by name, and accepted at least one.
    case partlyAccepted(ItemVerdicts)
    /// Not now: the same batch again later.
    case retry(RetryCause, after: Duration?)
    /// The credential, not the rows (401, 402, 403, 407).
    case authStop(status: Int, after: Duration? = nil)
    /// Unknown or gone (404, 410).
    case goneStop(status: Int, after: Duration? = nil)
    /// Our method, type, version or address is wrong.
    case misconfigured(status: Int, after: Duration? = nil)
    /// 415: our content encoding is refused.
    case encodingRefused(after: Duration? = nil)
    /// Some record, or the request as a whole, is refused (400, 422).
    ///
    /// - Parameter reason: what the server says about the only row of a batch; nil = nothing, or there are more.
    case split(status: Int, reason: String? = nil)
    /// The request is too large (413, 414).
    case tooLarge(status: Int, after: Duration?)
    /// Another device reports this asset.
    case collision

    /// Why a batch is to be repeated.
    package enum RetryCause: Hashable, Sendable {
        case transport(TransportFailure)
        /// 3xx and 511: moved, or a captive portal. Never followed.
        ///
        /// - Parameter host: of `Location`; nil when it names none.
        case redirected(status: Int, host: String?)
        /// 409 without the profile's sign of a collision: a conflict, or a twin request in progress.
        case conflict
        /// 2xx, but not one of `ok_status`, or the body does not say what `ok_json` wants.
        case notConfirmed(status: Int)
        /// A success whose body is not what the profile promises, so that it may name rows that were not accepted.
        case unclear(UnclearBody)
        /// A success with a page of HTML, which is hardly from the server that was asked.
        ///
        /// - Parameter title: as it can be shown to people; nil where no title was read.
        case page(title: String?)
        case status(Int)
        /// A reason code of MQTT.
        case reason(UInt8)
        /// A broker has passed a message to nobody, and somebody has to store it.
        case noSubscriber
        /// The connection to a broker ended with messages of the batch unanswered.
        ///
        /// - Parameter isAlone: one message of the batch was the only packet that the broker had not answered: it may be the
        ///   cause. Of several nobody knows which.
        case lost(TransportFailure, isAlone: Bool)
    }

    /// One word or two for counters, logs and `status`.
    package var word: String {
        switch self {
        case .accepted: "accepted"
        case .partlyAccepted: "partly accepted"
        case .retry(.transport(let failure), _), .retry(.lost(let failure, _), _): failure.word
        case .retry(.redirected, _): "redirected"
        case .retry(.conflict, _): "conflict"
        case .retry(.notConfirmed, _): "not confirmed"
        case .retry(.unclear, _): "unclear reply"
        case .retry(.page, _): "web page"
        case .retry(.reason(let code), _): MQTTReason(rawValue: code).words
        case .retry(.noSubscriber, _): MQTTReason.noMatchingSubscribers.words
        case .retry(.status(let status), _), .misconfigured(let status, _), .split(let status, _):
            Verdict.words(ofStatus: status)
        case .authStop: "auth"
        case .goneStop(let status, _): status == 410 ? "gone" : "not found"
        case .encodingRefused: "encoding refused"
        case .tooLarge: "too large"
        case .collision: "taken"
        }
    }

    /// The server has said something. A redirect or a page is hardly from it, but from what is in the way on this link.
    package var isAnswer: Bool {
        switch self {
        case .retry(.transport, _), .retry(.lost, _), .retry(.redirected, _), .retry(.page, _): false
        default: true
        }
    }

    /// Whether whoever intercepts plain HTTP may say the same, as the captive portal of a Wi-Fi network does.
    package var mayBeOfPortal: Bool {
        switch self {
        case .authStop, .goneStop, .misconfigured, .encodingRefused, .split, .tooLarge, .retry(.redirected, _),
            .retry(.page, _), .retry(.notConfirmed, _), .retry(.unclear, _):
            true
        case .accepted, .partlyAccepted, .collision, .retry: false
        }
    }

    /// The reason of the pause that it may lead to; nil = it leads to none. A refusal of rows leads to one if all are refused.
    package var pauseReason: String? {
        switch self {
        case .authStop: EndpointState.auth
        case .goneStop(410, _): EndpointState.gone
        case .goneStop: "not found"
        case .misconfigured(let status, _) where [405, 406, 411, 426, 501, 505].contains(status):
            "configuration (status \(status))"
        case .misconfigured(let status, _):
            "refused \(status < 200 ? Verdict.words(ofStatus: status) : String(status))"
        case .encodingRefused: "configuration (status 415)"
        case .collision: EndpointState.notBound
        case .retry(.redirected, _): EndpointState.redirected
        case .retry(.conflict, _): "conflict"
        case .split, .tooLarge: EndpointState.everyRecordRefused
        case .accepted, .partlyAccepted, .retry: nil
        }
    }

    /// A broker has passed messages to nobody, which is not enough.
    package var lacksSubscriber: Bool {
        switch self {
        case .retry(.noSubscriber, _): true
        case .partlyAccepted(let items): items.lacksSubscriber
        default: false
        }
    }

    /// How long the server asked to wait; nil when it did not.
    package var asked: Duration? {
        switch self {
        case .retry(_, let after), .tooLarge(_, let after), .authStop(_, let after), .goneStop(_, let after),
            .misconfigured(_, let after), .encodingRefused(let after):
            after
        case .partlyAccepted(let items): items.after
        case .accepted, .split, .collision: nil
        }
    }
}

/// What a reply says about single rows, by their sequence numbers. Rows that it does not name are stored.
package struct ItemVerdicts: Hashable, Sendable {
    /// Never to be sent again, each with the words for people.
    package var refused: [Int64: String] = [:]
    /// To be sent again.
    package var again: Set<Int64> = []
    /// Some of those that are to be sent again wait for another credential.
    package var needsCredential: Bool = false
    /// Some of those that are to be sent again have a topic or the like that is not allowed.
    package var isMisconfigured: Bool = false
    /// Some of those that are to be sent again were refused, and perhaps for themselves.
    package var isRefused: Bool = false
    /// Some of those that are to be sent again wait for somebody who subscribes to their topic.
    package var lacksSubscriber: Bool = false
    /// Another device reports this asset, as was said after the rest was accepted.
    package var isTaken: Bool = false
    package var after: Duration?

    /// Some of those that are to be sent again would be refused again, unless something else than these rows changes.
    package var blamesRows: Bool { needsCredential || isMisconfigured || isRefused }
}
