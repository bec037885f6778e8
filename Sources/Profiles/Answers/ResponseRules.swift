import Protocols

/// What the replies of a server mean, as far as they differ from the rules of HTTP.
///
/// The default is the whole of HTTP and nothing else: the body is never a reason to fail.
package struct ResponseRules: Hashable, Sendable {
    /// The body says whether rows were stored.
    package struct OkJSON: Hashable, Sendable {
        /// Alternatives, each a path into the reply: `["status"]` or `["a", "b"]`; the first that leads somewhere counts.
        package var paths: [[String]]
        /// Good values, as text: strings as they are, numbers and bools as JSON writes them.
        package var values: [String] = []
        /// Any array is good instead.
        package var isArray: Bool = false
        /// An absent path, an empty body and one that is not JSON are fine.
        package var missingIsOk: Bool = false
    }

    /// The reply names single rows that were not accepted.
    package struct ItemErrors: Hashable, Sendable {
        package enum Match: Hashable, Sendable {
            /// Entry n is about row n, and each row has one; an entry whose code is null is a success.
            case index
            /// The fields of an entry that name the row, each with the reference whose value it has.
            case fields([String: String])
        }
        /// The path of the array of entries.
        package var path: [String]
        package var match: Match
        /// The path of the code within an entry.
        package var code: [String]
        /// The path of a reason for people; nil = the code is enough.
        package var reason: [String]?
        /// Rows with one of these codes are sent again.
        package var retryCodes: [String] = []
        /// These codes are about the credential.
        package var authCodes: [String] = []
        /// The list is in every reply; otherwise a reply without it, an empty one included, refuses nothing.
        package var always: Bool = false
    }

    /// Another device reports this asset if all given parts match.
    package struct CollisionSign: Hashable, Sendable {
        /// Empty = any.
        package var status: [Int] = []
        /// Alternatives; empty = the body does not matter.
        package var paths: [[String]] = []
        package var equals: String?
        package var contains: String?
    }

    /// The keys under `response` that move a status to another verdict, in their order of evaluation.
    package enum Class: String, Hashable, Sendable, CaseIterable {
        case authStop = "auth_stop"
        case goneStop = "gone_stop"
        case retry
        case split
        case misconfigured
    }

    /// nil = every 2xx.
    package var okStatus: Set<Int>?
    package var okJSON: OkJSON?
    package var itemErrors: ItemErrors?
    package var collision: [CollisionSign] = []
    /// Absent = the default of HTTP; an empty set removes a class from all statuses that have it by default.
    package var classes: [Class: Set<Int>] = [:]
    /// The path of the number of rows that were stored; nil = the server does not report it.
    package var storedPath: [String]?

    /// A page of HTML is an answer like any other. Otherwise it confirms nothing.
    package var acceptsPages: Bool = false

    /// Whether a body decides about success.
    package var readsBodies: Bool { okJSON != nil || itemErrors != nil }

    /// Maximum bytes of the body of a reply to a number of rows: space for a few words about each.
    package func replyLimit(rows: Int) -> Int {
        UplinkRequest.replyLimitLeast + (readsBodies ? 512 * rows : 0)
    }
}

extension ResponseRules {
    /// Those of HTTP alone.
    package static let http = ResponseRules()

    /// The answers of a server that the profile `waypost` is for.
    package static let waypost = ResponseRules(
        itemErrors: ItemErrors(
            path: ["rejected"], match: .fields(["seq": "seq"]), code: ["code"], reason: ["reason"],
            retryCodes: ["busy"]),
        collision: [CollisionSign(status: [409], paths: [["error"]], equals: "asset_taken")])

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
        // Its class was removed and no other given.
        return (400...499).contains(status) && classes[.misconfigured] == nil ? .of(.misconfigured) : .of(.retry)
    }
}

extension ResponseRules.Class {
    /// The rule of HTTP for a status that is no success.
    fileprivate init(usualFor status: Int) {
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
