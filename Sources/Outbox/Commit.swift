import Delivery
import Positioning

/// A location that is to be kept.
public struct NewRow: Hashable, Sendable {
    public var location: Location
    /// Host wall clock at receipt, Unix milliseconds; may be wrong.
    public var receivedMs: Int64?
    /// Boot clock when it was recorded; nil = by an earlier process.
    public var recordedAt: EventTime?
    /// Endpoints that had it already in another queue, from which it is brought back.
    var finishedFor: [String] = []

    public init(_ location: Location, receivedMs: Int64? = nil, recordedAt: EventTime? = nil) {
        self.location = location
        self.receivedMs = receivedMs
        self.recordedAt = recordedAt
    }

    /// Unix milliseconds: of the fix; where the location has none, of receipt, or 0.
    var date: Int64 { location.isPlaced ? location.time.milliseconds : receivedMs ?? 0 }
}

/// A batch that was answered.
public struct BatchAnswer: Hashable, Sendable {
    public enum Outcome: Hashable, Sendable {
        /// The server has it.
        case accepted
        /// It becomes two batches, the older ⌈n/2⌉ rows and the rest, each with an id of its own. A single row stays as it is.
        case split
        /// All of it goes to quarantine.
        case refused(Refusal)
        /// The server answered by row: these go to quarantine, those become a batch of their own, the others it has.
        case partly(refused: [Int64: Refusal], again: Set<Int64>)
    }
    /// The one that sent it: `Batch.endpoint`.
    public var endpoint: String
    public var batchID: String
    public var outcome: Outcome

    public init(endpoint: String, batchID: String, outcome: Outcome = .accepted) {
        self.endpoint = endpoint
        self.batchID = batchID
        self.outcome = outcome
    }
}

/// Why a row is not to be sent again.
public struct Refusal: Hashable, Sendable {
    /// The rule or the code, in words for people.
    public var reason: String
    /// HTTP status; nil when it was never sent.
    public var status: Int?
    /// The first 512 bytes of the reply.
    public var reply: [UInt8]
    /// Times it was sent.
    public var attempts: Int

    public init(reason: String, status: Int? = nil, reply: [UInt8] = [], attempts: Int = 0) {
        self.reason = reason
        self.status = status
        self.reply = Array(reply.prefix(512))
        self.attempts = attempts
    }

    /// Bytes of its texts.
    var size: Int { reason.utf8.count + reply.count }
}

/// What an operator, or the rule for a collision, wants to happen to the rows of an endpoint.
///
/// After a refused one, those of the same commit for the same endpoint are refused as well.
public enum QueueOrder: Hashable, Sendable {
    /// Sends the rows that wait for an old address, device or asset to the present one.
    case bind(endpoint: String)
    /// Drops the rows of the old binding and goes on with the present one.
    case drop(endpoint: String)
    /// Drops all unsent rows.
    case clear(endpoint: String)
    /// Moves all unsent rows to quarantine; refused when they do not fit its cap.
    case quarantine(endpoint: String, Refusal)
    /// Sends rows of the quarantine again, after what waits. Empty = all.
    case retryQuarantined(endpoint: String?, ids: [Int64])
    /// Deletes rows of the quarantine. Empty = all.
    case dropQuarantined(endpoint: String?, ids: [Int64])
    /// Drops the cursor of an endpoint that is no longer configured, and with it its claim on rows.
    case forget(endpoint: String)
}

/// What became of a `QueueOrder`.
public enum OrderResult: Hashable, Sendable {
    /// How many rows were concerned, from and to these sequence numbers.
    case done(rows: Int, first: Int64?, last: Int64?)
    /// Nothing was done, for this reason in words for people.
    case refused(String)
}

/// A batch that is wanted.
public struct FormRequest: Hashable, Sendable {
    /// Whose cursor.
    public var endpoint: String
    /// Who sends it: a spare of that endpoint; nil = the endpoint itself. Batches that another one was to send and has not
    /// delivered are formed again for this one, under other ids.
    public var route: String?
    /// Most rows; 0 = none, only the list of what is in flight.
    public var limit: Int
    /// Also while others are in flight: the row after them is to be tried.
    public var isProbe: Bool
    /// Host wall clock, Unix milliseconds. It is not kept when it is more than 5 min before the newest row.
    public var sentMs: Int64?
    /// With `delivery = "latest"`, times up to which the server has seen positions; see `PositionFeed`.
    public var shown: [String?: UTCTime]
    /// Matches the reply to the request.
    public var number: Int

    public init(
        endpoint: String, route: String? = nil, limit: Int, isProbe: Bool = false, sentMs: Int64?,
        shown: [String?: UTCTime] = [:], number: Int = 0
    ) {
        self.endpoint = endpoint
        self.route = route
        self.limit = limit
        self.isProbe = isProbe
        self.sentMs = sentMs
        self.shown = shown
        self.number = number
    }

    /// Records of the quarantine are the endpoint's own: while the disk refuses they cannot go back there, and wait
    /// until the endpoint itself can be reached. What comes after them is sent.
    func wants(_ batch: BatchRow) -> Bool { route == nil || route == endpoint || batch.origin == .queue }
}

/// Everything that reaches the disk together: all of it or nothing. Carried out in the order of the members.
public struct Commit: Sendable {
    /// Oldest first.
    public var rows: [NewRow]
    /// After these rows.
    public var parts: PartStates
    public var answers: [BatchAnswer]
    /// States of endpoints that changed.
    public var states: [StateChange]
    public var orders: [QueueOrder]
    public var forms: [FormRequest]
    /// nil = nothing expires.
    public var ages: AgeReference?
    /// Whether a disk that has refused is tried again; if not, what is in memory stays there.
    public var asksDisk = true
    /// Newer rows do not wait any longer for those on disk that cannot be read.
    public var passesUnreadable = false
    /// Settings of endpoints that a reload may have changed: `EndpointSettings.copyPace` says which. They apply from
    /// this commit on, even if it fails.
    public var reloaded: [EndpointSettings] = []

    public struct StateChange: Hashable, Sendable {
        public var endpoint: String
        public var state: EndpointState

        public init(endpoint: String, state: EndpointState) {
            self.endpoint = endpoint
            self.state = state
        }
    }

    public init(
        rows: [NewRow] = [], parts: PartStates = PartStates(), answers: [BatchAnswer] = [], states: [StateChange] = [],
        orders: [QueueOrder] = [],
        forms: [FormRequest] = [], ages: AgeReference? = nil
    ) {
        self.rows = rows
        self.parts = parts
        self.answers = answers
        self.states = states
        self.orders = orders
        self.forms = forms
        self.ages = ages
    }
}

/// An endpoint that is no longer configured, and the rows that wait for it.
public struct RemovedEndpoint: Hashable, Sendable {
    public var name: String
    public var rows: Int
}

/// The result of a commit.
public struct CommitReply: Hashable, Sendable {
    /// The newest sequence number given so far; 0 in a new queue.
    public var lastSeq: Int64
    /// The batches that form requests, splits and partial acceptances made, and those in flight of an endpoint that requested
    /// another; oldest first for each endpoint.
    public var formed: [Batch]
    /// Ids of batches in flight that were given up, to make room, because another device has the asset, or because rows of
    /// them are missing: an answer of the server changes nothing any more.
    public var dissolved: [String] = []
    /// Of every configured endpoint, in the order of the configuration.
    public var depths: [EndpointDepth]
    /// Endpoints that are no longer configured and have rows waiting.
    public var removed: [RemovedEndpoint] = []
    /// What retention removed in this commit.
    public var dropped: DropCounts
    /// Which limit has removed rows last since the queue was opened; nil = none has.
    public var limitReached: QueueLimit?
    /// The file system has less free than `OutboxSettings.minFree`; nil = it has enough, or was not looked at.
    public var shortage: SpaceShortage?
    /// Rows in the queue, for any endpoint.
    public var rows: Int
    /// One for each order of the commit.
    public var orders: [OrderResult]
    public var recovery = Recovery()
    public var replacement = Replacement()
    /// Why the disk refuses: the commit is in memory alone. nil = it is on the medium.
    public var refusal: OutboxError?
    /// Rows that are in memory alone.
    public var unstored = 0
    /// Rows that left memory without having been on disk, because all required endpoints had them. Since the start.
    public var sentUnstored = 0
    /// Newer rows went out before rows on disk that could not be read for ten minutes.
    public var passedUnreadable = false
    /// The disk can be used for the first time, and holds another queue than the one in memory: all of it is new.
    public var wasFoundLate = false
    /// Endpoints with another binding than their sender knows: no longer held for an old one, or unreadable until now.
    public var released: [String] = []
    /// The disk has stored what waited in memory. Batches of the quarantine, which memory does not list, are in flight again.
    public var hasReturned = false
    /// With `wasFoundLate`, the tracker's state there before this commit; nil = none.
    public var foundState: [UInt8]?
    /// Live pages and log.
    public var bytes: Int64 = 0

    public init(
        lastSeq: Int64, formed: [Batch] = [], depths: [EndpointDepth] = [], dropped: DropCounts = DropCounts(),
        rows: Int = 0, orders: [OrderResult] = []
    ) {
        self.lastSeq = lastSeq
        self.formed = formed
        self.depths = depths
        self.dropped = dropped
        self.rows = rows
        self.orders = orders
    }
}

/// What other programs have done to the files of the queue while it was in use, since it was opened.
public struct Replacement: Hashable, Sendable {
    /// Times that the files were removed, replaced or overwritten, and written again.
    public var count = 0
    /// Of the last time, for people: what happened, and what to do.
    public var words: String?

    public init() {}
}

/// Rows removed before they were delivered, by reason.
public struct DropCounts: Hashable, Sendable {
    /// Plain fixes and heartbeats, oldest first, because the queue was full.
    public var oldest = 0
    /// New plain fixes for which a full queue had no room.
    public var newest = 0
    /// Plain fixes that a full queue gave up between others, within an error bound.
    public var thinned = 0
    /// Plain fixes that grew too old.
    public var expired = 0
    /// Motion changes, crossings and the like, because there was nothing else to remove.
    public var events = 0

    public init(oldest: Int = 0) { self.oldest = oldest }

    /// Rows that no longer say what they said, and not for a coarser track that was asked for.
    public var lost: Int { oldest + newest + expired + events }

    public static func += (total: inout DropCounts, more: DropCounts) {
        total.oldest += more.oldest
        total.newest += more.newest
        total.thinned += more.thinned
        total.expired += more.expired
        total.events += more.events
    }
}

/// A limit of the queue, by its key in the configuration.
public enum QueueLimit: String, Hashable, Sendable {
    case maxRecords = "max_records"
    case maxBytes = "max_bytes"
    case maxAge = "max_age"
    case minFree = "min_free"
}

/// Bytes that a file system has free, and those that it must have.
public struct SpaceShortage: Hashable, Sendable {
    public var free: Int64
    public var wanted: Int64

    public init(free: Int64, wanted: Int64) { (self.free, self.wanted) = (free, wanted) }
}

/// How much waits for one endpoint.
public struct EndpointDepth: Hashable, Sendable {
    public var endpoint: String
    public var state: EndpointState
    /// Rows that are in no batch, those of the quarantine that are to be sent again included. None for a spare.
    public var waiting: Int
    /// Rows of its batches, also of those that a spare sends. None for a spare.
    public var inFlight: Int
    /// Everything up to this sequence number is finished. That of a spare is its primary's.
    public var ackedThrough: Int64
    /// The oldest row that is not finished; nil when there is none.
    public var oldestSeq: Int64?
    public var oldestTime: UTCTime?
    /// Rows in quarantine, without those that are to be sent again: they wait, or are in flight.
    public var quarantined = 0
    /// Rows finished without being sent since the queue was opened, by reason: `unfit`, `expired`, `superseded`, `skipped`,
    /// `refused` (by a rule of the profile), `dropped` (by order), `evicted` (by the limits of the queue), `overflow` (a
    /// full quarantine gave them up).
    public var finishedUnsent: [String: Int] = [:]
    /// It has accepted something since its address, device or asset was set.
    public var acceptedBefore = false
    /// Since the queue was opened, `base_url` was found changed while rows waited, and what was there before had accepted
    /// nothing: they go to the new one without an order.
    public var isMoved = false
    /// `EndpointSettings.fingerprint` that its rows wait for; nil when it is the configured one.
    public var boundTo: String?

    public init(
        endpoint: String, state: EndpointState, waiting: Int, inFlight: Int, ackedThrough: Int64, oldestSeq: Int64?,
        oldestTime: UTCTime?
    ) {
        self.endpoint = endpoint
        self.state = state
        self.waiting = waiting
        self.inFlight = inFlight
        self.ackedThrough = ackedThrough
        self.oldestSeq = oldestSeq
        self.oldestTime = oldestTime
    }
}
