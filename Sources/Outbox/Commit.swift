import Delivery
import Positioning

/// A location that is to be kept.
public struct NewRow: Hashable, Sendable {
    public var location: Location
    /// Host wall clock at receipt, Unix milliseconds; may be wrong.
    public var receivedMs: Int64?

    public init(_ location: Location, receivedMs: Int64? = nil) {
        self.location = location
        self.receivedMs = receivedMs
    }
}

/// A batch that was answered.
public struct Settlement: Hashable, Sendable {
    public enum How: Hashable, Sendable {
        /// The server has it: the cursor moves past it.
        case accepted
        /// It is dissolved: its rows wait again and are formed anew, under another id.
        case released
    }
    public var endpoint: String
    public var batchID: String
    public var how: How

    public init(endpoint: String, batchID: String, how: How = .accepted) {
        self.endpoint = endpoint
        self.batchID = batchID
        self.how = how
    }
}

/// A batch that is wanted.
public struct FormRequest: Hashable, Sendable {
    public var endpoint: String
    /// Most rows.
    public var limit: Int
    /// Host wall clock, Unix milliseconds. It is not kept when it lies more than 5 min before the newest row.
    public var sentMs: Int64?

    public init(endpoint: String, limit: Int, sentMs: Int64?) {
        self.endpoint = endpoint
        self.limit = limit
        self.sentMs = sentMs
    }
}

/// Everything that reaches the disk together: all of it or nothing. Carried out in the order of the members.
public struct Commit: Sendable {
    /// Oldest first.
    public var rows: [NewRow]
    /// The tracker's state after these rows; nil = unchanged.
    public var trackerState: [UInt8]?
    /// What the source needs to go on behind these rows, such as the place in a file; nil = unchanged.
    public var sourceState: [UInt8]?
    public var settlements: [Settlement]
    /// States of endpoints that changed.
    public var states: [StateChange]
    public var forms: [FormRequest]

    public struct StateChange: Hashable, Sendable {
        public var endpoint: String
        public var state: EndpointState

        public init(endpoint: String, state: EndpointState) {
            self.endpoint = endpoint
            self.state = state
        }
    }

    public init(
        rows: [NewRow] = [], trackerState: [UInt8]? = nil, sourceState: [UInt8]? = nil,
        settlements: [Settlement] = [], states: [StateChange] = [], forms: [FormRequest] = []
    ) {
        self.rows = rows
        self.trackerState = trackerState
        self.sourceState = sourceState
        self.settlements = settlements
        self.states = states
        self.forms = forms
    }
}

/// What a commit came to.
public struct CommitReply: Hashable, Sendable {
    /// The newest sequence number given so far; 0 in a new queue.
    public var lastSeq: Int64
    /// One batch for each form request that found rows, and the one in flight where there was one already.
    public var formed: [Batch]
    /// Of every configured endpoint, in the order of the configuration.
    public var depths: [EndpointDepth]
    /// What retention removed in this commit.
    public var dropped: DropCounts
    /// Rows in the queue, whoever waits for them.
    public var rows: Int

    public init(
        lastSeq: Int64, formed: [Batch] = [], depths: [EndpointDepth] = [], dropped: DropCounts = DropCounts(),
        rows: Int = 0
    ) {
        self.lastSeq = lastSeq
        self.formed = formed
        self.depths = depths
        self.dropped = dropped
        self.rows = rows
    }
}

/// Rows removed before they were delivered, by reason.
public struct DropCounts: Hashable, Sendable {
    /// Plain fixes and heartbeats, oldest first, because the queue was full.
    public var oldest: Int
    /// Motion changes, crossings and the like, because nothing else was left to remove.
    public var events: Int

    public init(oldest: Int = 0, events: Int = 0) {
        self.oldest = oldest
        self.events = events
    }

    public static func += (total: inout DropCounts, more: DropCounts) {
        total.oldest += more.oldest
        total.events += more.events
    }
}

/// How much waits for one endpoint.
public struct EndpointDepth: Hashable, Sendable {
    public var endpoint: String
    public var state: EndpointState
    /// Rows that are in no batch.
    public var waiting: Int
    /// Rows of the batch in flight.
    public var inFlight: Int
    /// Everything up to this sequence number is settled.
    public var acked: Int64
    /// The oldest row that is not settled; nil when there is none.
    public var oldestSeq: Int64?
    public var oldestTime: UTCTime?

    public init(
        endpoint: String, state: EndpointState, waiting: Int, inFlight: Int, acked: Int64, oldestSeq: Int64?,
        oldestTime: UTCTime?
    ) {
        self.endpoint = endpoint
        self.state = state
        self.waiting = waiting
        self.inFlight = inFlight
        self.acked = acked
        self.oldestSeq = oldestSeq
        self.oldestTime = oldestTime
    }
}
