import Profiles
import Protocols
import Queue

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

    /// - Parameter listed: all that are in flight now.
    mutating func replace(with listed: [Batch]) {
        batches = listed
        let known = Set(listed.map(\.id))
        histories = histories.filter { known.contains($0.key) }
    }

    mutating func remove(_ ids: [String]) {
        batches.removeAll { ids.contains($0.id) }
        for id in ids { histories[id] = nil }
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
        let history = histories[id] ?? History()
        remove([id])
        return (batch, history)
    }
}
