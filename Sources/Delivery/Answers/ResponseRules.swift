/// What the replies of a receiver mean, as far as they differ from the rules of HTTP.
///
/// The default is the whole of HTTP and nothing else: the body is never a reason to fail.
public struct ResponseRules: Hashable, Sendable {
    /// The body says whether rows were stored.
    public struct OkJSON: Hashable, Sendable {
        /// Alternatives, each a way into the reply: `["status"]` or `["a", "b"]`; the first that leads somewhere counts.
        public var paths: [[String]]
        /// Good values, as text: strings as they are, numbers and bools as JSON writes them.
        public var values: [String]
        /// An absent path, an empty body and one that is no JSON are fine.
        public var missingIsOk: Bool

        public init(paths: [[String]], values: [String], missingIsOk: Bool = false) {
            self.paths = paths
            self.values = values
            self.missingIsOk = missingIsOk
        }
    }

    /// The reply tells of single rows that were not taken.
    public struct ItemErrors: Hashable, Sendable {
        public enum Match: Hashable, Sendable {
            /// Entry n is about row n, and each row has one; an entry whose code is null is a success.
            case index
            /// The fields of an entry that name the row, each with the reference whose value they bear.
            case fields([String: String])
        }
        /// The way to the array of entries.
        public var path: [String]
        public var match: Match
        /// The way to the code within an entry.
        public var code: [String]
        /// The way to words for people; nil = the code says it all.
        public var reason: [String]?
        /// Rows with one of these codes are sent again.
        public var retryCodes: [String]
        /// These codes are about the credential.
        public var authCodes: [String]
        /// The list stands in every reply; else a reply without it, an empty one included, refuses nothing.
        public var always: Bool

        public init(
            path: [String], match: Match, code: [String], reason: [String]? = nil, retryCodes: [String] = [],
            authCodes: [String] = [], always: Bool = false
        ) {
            self.path = path
            self.match = match
            self.code = code
            self.reason = reason
            self.retryCodes = retryCodes
            self.authCodes = authCodes
            self.always = always
        }
    }

    /// Another device reports this asset: all parts that are given hold.
    public struct CollisionSign: Hashable, Sendable {
        /// Empty = any.
        public var status: [Int]
        /// Alternatives; empty = the body does not matter.
        public var paths: [[String]]
        public var equals: String?
        public var contains: String?

        public init(status: [Int] = [], paths: [[String]] = [], equals: String? = nil, contains: String? = nil) {
            self.status = status
            self.paths = paths
            self.equals = equals
            self.contains = contains
        }
    }

    /// The keys under `response` that move a status to another verdict, in their order of evaluation.
    public enum Class: String, Hashable, Sendable, CaseIterable {
        case authStop = "auth_stop"
        case goneStop = "gone_stop"
        case retry
        case split
        case misconfigured
    }

    /// nil = every 2xx.
    public var okStatus: Set<Int>?
    public var okJSON: OkJSON?
    public var itemErrors: ItemErrors?
    public var collision: [CollisionSign]
    /// Absent = the default of HTTP; an empty set takes a class away from all statuses that have it by default.
    public var classes: [Class: Set<Int>]
    /// The way to the number of rows that were really stored; nil = the receiver does not tell.
    public var storedPath: [String]?

    public init(
        okStatus: Set<Int>? = nil, okJSON: OkJSON? = nil, itemErrors: ItemErrors? = nil,
        collision: [CollisionSign] = [], classes: [Class: Set<Int>] = [:], storedPath: [String]? = nil
    ) {
        self.okStatus = okStatus
        self.okJSON = okJSON
        self.itemErrors = itemErrors
        self.collision = collision
        self.classes = classes
        self.storedPath = storedPath
    }

    /// Success stands in the body as well.
    public var readsBodies: Bool { okJSON != nil || itemErrors != nil }

    /// Maximum bytes of the body of a reply to a number of rows: space for a few words about each.
    public func replyLimit(rows: Int) -> Int {
        UplinkRequest.replyLimitLeast + (readsBodies ? 512 * rows : 0)
    }
}
