import Profiles
import Protocols
import Queue
import WaypostCore

/// The batches of one endpoint that are formed and not finished, in the order in which they go out, and what was tried with each.
struct BatchesInFlight {
    struct History {
        fileprivate(set) var attempts = 0
        /// An attempt may have reached the server without its answer reaching us.
        fileprivate(set) var mayBeStored = false
        /// The broker has taken this device, and refused what it published.
        fileprivate(set) var isMessageRefused = false
        /// The last answer, for the quarantine.
        fileprivate(set) var answer: (reason: String, status: Int?, reply: [UInt8]) = ("", nil, [])

        func refusal(_ reason: String) -> Refusal {
            Refusal(reason: reason, status: answer.status, reply: answer.reply, attempts: max(1, attempts))
        }
    }

    private var batches: [Batch]
    private var histories: [String: History] = [:]

    /// - Parameter batches: formed by an earlier process, which may have sent them.
    init(_ batches: [Batch]) {
        self.batches = batches
        for batch in batches { histories[batch.id] = History(mayBeStored: true) }
    }

    var first: Batch? { batches.first }
    var isEmpty: Bool { batches.isEmpty }

    subscript(id: String) -> Batch? { batches.first { $0.id == id } }

    func history(of id: String) -> History? { histories[id] }

    /// - Parameters:
    ///   - ids: of all that are in flight now, in the order in which they go out.
    ///   - new: those of them that have come with their rows.
    mutating func update(_ ids: [String], _ new: [Batch]) {
        for batch in new {
            invariant(
                self[batch.id].map {
                    $0.rows.map(\.seq) == batch.rows.map(\.seq) && $0.newest?.seq == batch.newest?.seq
                } ?? true,
                "\(batch.id) means other rows than before")
        }
        batches = ids.compactMap { id in new.first { $0.id == id } ?? self[id] }
        histories = histories.filter { ids.contains($0.key) }
    }

    mutating func removeAll() { self = BatchesInFlight([]) }

    /// An attempt was given up.
    mutating func abandoned(_ id: String) {
        guard self[id] != nil else { return }
        histories[id, default: History()].attempts += 1
        histories[id]?.mayBeStored = true
    }

    mutating func answered(_ id: String, _ verdict: Verdict, _ outcome: UplinkOutcome) {
        guard self[id] != nil else { return }
        var history = histories[id] ?? History()
        history.attempts += 1
        switch outcome.result {
        case .connected: break
        case .failed(let failure):
            history.mayBeStored = history.mayBeStored || failure.mayFollowRequest
            history.answer = (failure.message, nil, [])
        case .published(let reply):
            history.mayBeStored = history.mayBeStored || reply.failure != nil
            history.answer = (reply.words ?? verdict.word, nil, [])
            history.isMessageRefused = reply.ending == nil
        case .reply(let reply):
            history.mayBeStored =
                switch verdict {
                case .retry(.unclear, _), .retry(.page, _): true
                default: false
                }
            var reason = verdict.word
            if case .split(_, let given?) = verdict { reason = given }
            history.answer = (reason, reply.status, Array(reply.body.prefix(512)))
        }
        histories[id] = history
    }

    /// Removes one that is finished.
    mutating func finish(_ id: String) -> (batch: Batch, history: History)? {
        guard let batch = self[id] else { return nil }
        let history = histories.removeValue(forKey: id) ?? History()
        batches.removeAll { $0.id == id }
        return (batch, history)
    }
}
