import Delivery
import Profiles
import WaypostCore

/// A location that is to be kept.
package struct NewRow: Hashable, Sendable {
    package var location: Location
    /// Host wall clock at receipt, Unix milliseconds; may be wrong.
    package var receivedMs: Int64?
    /// Boot clock when it was recorded; nil = by an earlier process.
    package var recordedAt: EventTime?
    /// Endpoints that had it already in another queue, from which it is brought back.
    var finishedFor: [String] = []

    package init(_ location: Location, receivedMs: Int64? = nil, recordedAt: EventTime? = nil) {
        self.location = location
        self.receivedMs = receivedMs
        self.recordedAt = recordedAt
    }

    /// Unix milliseconds: of the fix; where the location has none, of receipt, or 0.
    var date: Int64 { location.isPlaced ? location.time.milliseconds : receivedMs ?? 0 }
}

/// A batch that was answered.
package struct BatchAnswer: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
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
    package var endpoint: String
    package var batchID: String
    package var outcome: Outcome

    package init(endpoint: String, batchID: String, outcome: Outcome = .accepted) {
        self.endpoint = endpoint
        self.batchID = batchID
        self.outcome = outcome
    }
}

/// Why a row is not to be sent again.
package struct Refusal: Hashable, Sendable {
    /// The rule or the code, in words for people.
    package var reason: String
    /// HTTP status; nil when it was never sent.
    package var status: Int?
    /// The first 512 bytes of the reply.
    package var reply: [UInt8]
    /// Times it was sent.
    package var attempts: Int

    package init(reason: String, status: Int? = nil, reply: [UInt8] = [], attempts: Int = 0) {
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
package enum QueueOrder: Hashable, Sendable {
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
package enum OrderResult: Hashable, Sendable {
    /// How many rows were concerned, from and to these sequence numbers.
    case done(rows: Int, first: Int64?, last: Int64?)
    /// Nothing was done, for this reason in words for people.
    case refused(String)
}

/// A batch that is wanted.
package struct FormRequest: Hashable, Sendable {
    /// Whose cursor.
    package var endpoint: String
    /// Who sends it: a spare of that endpoint; nil = the endpoint itself. Batches that another one was to send and has not
    /// delivered are formed again for this one, under other ids.
    package var route: String?
    /// Most rows; 0 = none, only the list of what is in flight.
    package var limit: Int
    /// Also while others are in flight: the row after them is to be tried.
    package var isProbe: Bool
    /// Host wall clock, Unix milliseconds. It is not kept when it is more than 5 min before the newest row.
    package var sentMs: Int64?
    /// With `delivery = "latest"`, times up to which the server has seen positions; see `PositionFeed`.
    package var shown: [String?: UTCTime]
    /// Matches the reply to the request.
    package var number: Int

    package init(
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
package struct Commit: Sendable {
    /// Oldest first.
    package var rows: [NewRow]
    /// After these rows.
    package var parts: PartStates
    package var answers: [BatchAnswer]
    /// States of endpoints that changed.
    package var states: [StateChange]
    package var orders: [QueueOrder]
    package var forms: [FormRequest]
    /// nil = nothing expires.
    package var ages: AgeReference?
    /// Whether a disk that has refused is tried again; if not, what is in memory stays there.
    package var asksDisk = true
    /// Newer rows do not wait any longer for those on disk that cannot be read.
    package var passesUnreadable = false
    /// Settings of endpoints that a reload may have changed: `EndpointSettings.copyPace` says which. They apply from
    /// this commit on, even if it fails.
    package var reloaded: [EndpointSettings] = []

    package struct StateChange: Hashable, Sendable {
        package var endpoint: String
        package var state: EndpointState

        package init(endpoint: String, state: EndpointState) {
            self.endpoint = endpoint
            self.state = state
        }
    }

    package init(
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
package struct RemovedEndpoint: Hashable, Sendable {
    package var name: String
    package var rows: Int
}

/// The result of a commit.
package struct CommitReply: Hashable, Sendable {
    /// The newest sequence number given so far; 0 in a new queue.
    package var lastSeq: Int64
    /// With their rows: the batches that form requests, splits and partial acceptances made, and those in flight of an endpoint that
    /// requested another; oldest first for each endpoint. `depths` has the headers of all.
    package var formed: [Batch]
    /// Ids of batches in flight that were given up, to make room, because another device has the asset, or because rows of
    /// them are missing: an answer of the server changes nothing any more.
    package var dissolved: [String] = []
    /// Of every configured endpoint, in the order of the configuration.
    package var depths: [EndpointDepth]
    /// Endpoints that are no longer configured and have rows waiting.
    package var removed: [RemovedEndpoint] = []
    /// What retention removed in this commit.
    package var dropped: DropCounts
    /// Which limit has removed rows last since the queue was opened; nil = none has.
    package var limitReached: QueueLimit?
    /// The file system has less free than `OutboxSettings.minFree`; nil = it has enough, or was not looked at.
    package var shortage: SpaceShortage?
    /// Rows in the queue, for any endpoint.
    package var rows: Int
    /// One for each order of the commit.
    package var orders: [OrderResult]
    package var recovery = Recovery()
    package var replacement = Replacement()
    /// Why the disk refuses: the commit is in memory alone. nil = it is on the medium.
    package var refusal: OutboxError?
    /// Rows that are in memory alone.
    package var unstored = 0
    /// Rows that left memory without having been on disk, because all required endpoints had them. Since the start.
    package var sentUnstored = 0
    /// Newer rows went out before rows on disk that could not be read for ten minutes.
    package var passedUnreadable = false
    /// The disk can be used for the first time, and holds another queue than the one in memory: all of it is new.
    package var wasFoundLate = false
    /// Endpoints with another binding than their sender knows: no longer held for an old one, or unreadable until now.
    package var released: [String] = []
    /// The disk has stored what waited in memory. Batches of the quarantine, which memory does not list, are in flight again.
    package var hasReturned = false
    /// With `wasFoundLate`, the tracker's state there before this commit; nil = none.
    package var foundState: [UInt8]?
    /// Live pages and log.
    package var bytes: Int64 = 0

    package init(
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
package struct Replacement: Hashable, Sendable {
    /// Times that the files were removed, replaced or overwritten, and written again.
    package var count = 0
    /// Of the last time, for people: what happened, and what to do.
    package var words: String?

    package init() {}
}

/// Rows removed before they were delivered, by reason.
package struct DropCounts: Hashable, Sendable {
    /// Plain fixes and heartbeats, oldest first, because the queue was full.
    package var oldest = 0
    /// New plain fixes for which a full queue had no room.
    package var newest = 0
    /// Plain fixes that a full queue gave up between others, within an error bound.
    package var thinned = 0
    /// Plain fixes that grew too old.
    package var expired = 0
    /// Motion changes, crossings and the like, because there was nothing else to remove.
    package var events = 0

    package init(oldest: Int = 0) { self.oldest = oldest }

    /// Rows that no longer say what they said, and not for a coarser track that was asked for.
    package var lost: Int { oldest + newest + expired + events }

    package static func += (total: inout DropCounts, more: DropCounts) {
        total.oldest += more.oldest
        total.newest += more.newest
        total.thinned += more.thinned
        total.expired += more.expired
        total.events += more.events
    }
}

/// A limit of the queue, by its key in the configuration.
package enum QueueLimit: String, Hashable, Sendable {
    case maxRecords = "max_records"
    case maxBytes = "max_bytes"
    case maxAge = "max_age"
    case minFree = "min_free"
}

/// Bytes that a file system has free, and those that it must have.
package struct SpaceShortage: Hashable, Sendable {
    package var free: Int64
    package var wanted: Int64

    package init(free: Int64, wanted: Int64) { (self.free, self.wanted) = (free, wanted) }
}

/// A batch in flight, without its rows.
package struct BatchHeader: Hashable, Sendable {
    package var id: String
    package var rows: Int
    /// The endpoint that sends it: that of its rows, or a spare of it.
    package var sender: String

    package init(id: String, rows: Int, sender: String) {
        self.id = id
        self.rows = rows
        self.sender = sender
    }
}

/// How much waits for one endpoint.
package struct EndpointDepth: Hashable, Sendable {
    package var endpoint: String
    package var state: EndpointState
    /// Rows that are in no batch, those of the quarantine that are to be sent again included. None for a spare.
    package var waiting: Int
    /// Rows of its batches, also of those that a spare sends. None for a spare.
    package var inFlight: Int
    /// These batches, in the order in which they go out.
    package var batches: [BatchHeader] = []
    /// Everything up to this sequence number is finished. That of a spare is its primary's.
    package var ackedThrough: Int64
    /// The oldest row that is not finished; nil when there is none.
    package var oldestSeq: Int64?
    package var oldestTime: UTCTime?
    /// Rows in quarantine, without those that are to be sent again: they wait, or are in flight.
    package var quarantined = 0
    /// Rows finished without being sent since the queue was opened, by reason: `unfit`, `expired`, `superseded`, `skipped`,
    /// `refused` (by a rule of the profile), `dropped` (by order), `evicted` (by the limits of the queue), `overflow` (a
    /// full quarantine gave them up).
    package var finishedUnsent: [String: Int] = [:]
    /// It has accepted something since its address, device or asset was set.
    package var acceptedBefore = false
    /// Since the queue was opened, `base_url` was found changed while rows waited, and what was there before had accepted
    /// nothing: they go to the new one without an order.
    package var isMoved = false
    /// `EndpointSettings.fingerprint` that its rows wait for; nil when it is the configured one.
    package var boundTo: String?

    package init(
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
