import Profiles
import WaypostCore

extension DeliverySchedule {
    /// What to do now.
    package enum Step: Hashable, Sendable {
        /// Commit what is held in memory and form batches of at most this many rows, 0 = none; then `formRequested`. `committed`
        /// follows, with the rows of all that is in flight.
        case form(limit: Int)
        /// The same for another route, for which what is in flight is formed again.
        case reform(limit: Int)
        /// Send this batch; then `attemptStarted`.
        case send(batch: String)
        /// Send the newest row alone, ahead of its turn; then `previewStarted`.
        case preview
        /// Send the newest position from memory, for which no row needs to exist; then `positionSought`, and `attemptStarted`
        /// with an id that no batch has if there is a position to send.
        case position
        /// Ask the server to bind the asset to this device; then `bindStarted(at:)`.
        case bind
        /// Look for a new credential; then `refreshStarted(at:)`.
        case refreshCredentials
        /// Nothing until this instant, or until something happens (nil).
        case wait(until: EventTime?)
    }

    /// What a reply of the queue says of one endpoint, without the batches that an answer has settled which came since the commit
    /// was taken.
    package struct View: Hashable, Sendable {
        /// Rows in no batch: those of the reply, and those recorded since that commit was taken.
        package var waiting: Int
        /// What is in flight and can be sent, in the order in which it goes out.
        package var batches: [InFlight]
        /// Rows of further batches in flight: formed for another address, device or asset, not readable, or parts of one whose
        /// answer the next commit carries.
        package var unlisted: Int
        /// No answer of this endpoint waits for the next commit.
        package var hasAllAnswers: Bool
        /// Batches are listed whose rows nobody has asked for yet.
        package var lacksRows: Bool

        package init(
            waiting: Int, batches: [InFlight] = [], unlisted: Int = 0, hasAllAnswers: Bool = true,
            lacksRows: Bool = false
        ) {
            self.waiting = waiting
            self.batches = batches
            self.unlisted = unlisted
            self.hasAllAnswers = hasAllAnswers
            self.lacksRows = lacksRows
        }
    }

    /// A batch that is on disk and not settled.
    package struct InFlight: Hashable, Sendable {
        package var id: String
        package var rows: Int
        /// The route that it was formed for: 0 = the endpoint itself.
        package var route: Int

        package init(id: String, rows: Int, route: Int = 0) {
            self.id = id
            self.rows = rows
            self.route = route
        }
    }

    /// What becomes of a batch, to be written with the next commit.
    package struct Settled: Hashable, Sendable {
        package enum How: Hashable, Sendable {
            case accepted
            /// It becomes two batches, the older ⌈n/2⌉ rows and the rest.
            case split
            /// To quarantine.
            case refused
            /// By the answer of the server about single rows.
            case partly(ItemVerdicts)
        }
        package var batch: String
        package var how: How
    }
}

extension EventTime {
    static let min = EventTime(nanoseconds: .min)
    static let max = EventTime(nanoseconds: .max)
}
