import Delivery
import Profiles
import Queue
import WaypostCore

/// What the next commit will carry.
struct PendingCommit {
    private(set) var ring = RowRing()
    private var answers: [BatchAnswer] = []
    private var states: [Commit.StateChange] = []
    private var endpoints: [EndpointSettings] = []
    private var forms: [FormRequest] = []
    private var orders: [(order: QueueOrder, done: (OrderResult) -> Void)] = []
    private var waiters: [() -> Void] = []

    var hasOrders: Bool { !orders.isEmpty }

    /// Its outcome is waited for.
    var isAwaited: Bool { !waiters.isEmpty }

    mutating func add(_ row: consuming NewRow) { ring.append(row) }

    mutating func add(_ answer: BatchAnswer) { answers.append(answer) }

    /// By the id of the batch.
    func answers(by senders: [String]) -> [String: BatchAnswer.Outcome] {
        var found: [String: BatchAnswer.Outcome] = [:]
        for answer in answers where senders.contains(answer.endpoint) { found[answer.batchID] = answer.outcome }
        return found
    }

    /// The last state of an endpoint counts.
    mutating func add(_ change: Commit.StateChange) {
        states.removeAll { $0.endpoint == change.endpoint }
        states.append(change)
    }

    mutating func add(_ request: FormRequest) { forms.append(request) }

    mutating func add(_ order: QueueOrder, done: @escaping (OrderResult) -> Void) { orders.append((order, done)) }

    mutating func add(waiter: @escaping () -> Void) { waiters.append(waiter) }

    /// What endpoints are set to from now on.
    mutating func set(_ endpoints: [EndpointSettings]) { self.endpoints = endpoints }

    mutating func limit(to rows: Int, onFull: OutboxSettings.OnFull) { ring.limit(to: rows, onFull: onFull) }

    /// Empties it into a commit.
    /// - Returns: the commit, the callbacks of its orders, and those that wait for it.
    mutating func take(
        _ parts: PartStates, ages: AgeReference
    ) -> (commit: Commit, ordered: [(OrderResult) -> Void], waiters: [() -> Void]) {
        var commit = Commit(
            rows: ring.takeAll(), parts: parts, answers: answers, states: states, orders: orders.map(\.order),
            forms: forms, ages: ages)
        commit.reloaded = endpoints
        let taken = (commit, orders.map(\.done), waiters)
        let ring = ring
        self = PendingCommit()
        self.ring = ring
        return taken
    }

    /// What a commit carried that was not made, ahead of what has come since. Its orders and forms are refused instead.
    mutating func putBack(_ commit: Commit) {
        defer {
            invariant(
                ring.rows.first == commit.rows.first || commit.rows.isEmpty, "rows of a commit that failed come later")
            invariant(
                zip(answers, commit.answers).allSatisfy(==) && answers.count >= commit.answers.count,
                "answers of a commit that failed come later")
        }
        ring.putBack(commit.rows)
        answers = commit.answers + answers
        states = commit.states.filter { old in !states.contains { $0.endpoint == old.endpoint } } + states
    }
}
