import Delivery
import Positioning

extension Transaction {
    /// A clock that lies this far behind the receiver is wrong.
    private static let clockTolerance: Int64 = 300_000
    /// So many rows at most are looked at for one request: a long backlog that nobody wants takes several.
    private static let planningLimit = 50_000

    /// For whom and by whom batches are formed.
    private struct Forming {
        var index: Int
        var sender: EndpointSettings
        /// nil = the endpoint sends itself.
        var route: String?
        var limit: Int
        var sentMs: Int64?
        /// nil = nothing expires.
        var ages: RowAges?

        var depth: Int { max(1, min(BatchRow.longest, BatchPlanner(sender).depth(limit: limit))) }
    }

    mutating func form(_ request: FormRequest, ages: RowAges?) throws(OutboxError) {
        guard let forming = forming(request, ages) else { return }
        try reroute(forming)
        guard !ledger.endpoints[forming.index].batches.contains(where: request.wants) || request.isProbe else { return }
        try formWaiting(forming)
        let endpoint = ledger.endpoints[forming.index]
        if endpoint.batches.isEmpty, endpoint.waiting == 0, forming.route == nil { try formRetries(forming) }
    }

    private func forming(_ request: FormRequest, _ ages: RowAges?) -> Forming? {
        guard let index = ledger.index(of: request.endpoint), request.limit > 0 else { return nil }
        let endpoint = ledger.endpoints[index]
        guard endpoint.state != .rebind, !endpoint.isSpare else { return nil }
        var forming = Forming(
            index: index, sender: endpoint.settings, limit: min(request.limit, BatchRow.longest),
            sentMs: request.sentMs, ages: ages)
        if let route = request.route, route != request.endpoint {
            guard let spare = ledger.index(of: route).map({ ledger.endpoints[$0].settings }),
                spare.backupFor == request.endpoint
            else { return nil }
            forming.sender = spare
            forming.route = route
        }
        return forming
    }

    /// From the rows behind the cursor.
    private mutating func formWaiting(_ forming: Forming) throws(OutboxError) {
        let index = forming.index
        var budget = Self.planningLimit
        let inFlight = ledger.endpoints[index].batches.count
        guard let start = try readableStart(of: index, forming.sender) else { return }
        // Rows that cannot be read stay behind the cursor; those that go out before them are noted one by one.
        let passes = start > ledger.endpoints[index].formed
        while budget > 0, ledger.endpoints[index].waiting > 0, ledger.endpoints[index].batches.count == inFlight {
            var rows: [QueuedLocation]
            do throws(OutboxError) {
                rows = try waitingRows(
                    of: index, after: max(start, ledger.endpoints[index].formed), limit: forming.depth + 1)
            } catch {
                // What cannot be read of a disk that refuses is waited for.
                if memory == nil { throw error }
                return
            }
            guard !rows.isEmpty else {
                if passes { return }
                // A damaged file may hold fewer than it says.
                ledger.endpoints[index].waiting = 0
                needsCounts = true
                return
            }
            let isEnd = rows.count <= forming.depth
            if !isEnd { rows.removeLast() }
            budget -= rows.count
            let plan = BatchPlanner(forming.sender).plan(rows, limit: forming.limit, isEnd: isEnd, ages: forming.ages)
            let consumed = min(rows.count, plan.consumed)
            guard consumed > 0 else { return }
            try settle(plan, rows, of: index)
            if passes {
                ledger.endpoints[index].ahead.formUnion([rows[0].seq...rows[consumed - 1].seq])
            } else {
                ledger.endpoints[index].formed = rows[consumed - 1].seq
            }
            ledger.endpoints[index].waiting = max(0, ledger.endpoints[index].waiting - consumed)
            ledger.endpoints[index].oldest = .unknown
            let batches = batches(of: plan, rows, forming, generation: nil, mayHaveGaps: false)
            if batches.isEmpty { needsCounts = true }
            for places in plan.batches {
                notePlanned(places.filter(rows.indices.contains).map { rows[$0] }, of: ledger.endpoints[index])
            }
            try add(batches, forming)
        }
    }

    /// The number behind which the rows can be read that an endpoint is to be sent next: its cursor, or the end of what lies
    /// on a disk that cannot be read. nil = they are waited for.
    private mutating func readableStart(of index: Int, _ sender: EndpointSettings) throws(OutboxError) -> Int64? {
        let endpoint = ledger.endpoints[index]
        guard let below = database.below, endpoint.formed < below.last else { return endpoint.formed }
        let own = try database.count(of: endpoint, after: below.last)
        let found = below.read { (database) throws(OutboxError) in
            try database.count(of: endpoint, after: endpoint.formed, through: below.last)
        }
        // A failing medium may not show what it took. Without those rows the others would overtake them.
        if let found, found >= endpoint.waiting - own { return endpoint.formed }
        // Where only the newest row counts, those on disk have been overtaken.
        let isOvertaken = sender.delivery == .latest && own > 0
        guard isOvertaken || memory?.passesUnreadable == true else { return nil }
        if own > 0 { memory?.passed = true }
        return below.last
    }

    /// Rows behind a number, the cursor or one beyond it, without those that the endpoint has had.
    func waitingRows(of index: Int, after start: Int64, limit: Int) throws(OutboxError) -> [QueuedLocation] {
        let endpoint = ledger.endpoints[index]
        var rows: [QueuedLocation] = []
        var from = start + 1
        while rows.count < limit {
            let wanted = limit - rows.count
            let found = try database.rows(
                from: from, through: Ledger.highestSeq, feed: endpoint.settings.feed, limit: wanted,
                names: ledger.names)
            rows += endpoint.ahead.isEmpty ? found : found.filter { !endpoint.ahead.contains($0.seq) }
            guard let last = found.last, found.count == wanted else { break }
            from = (endpoint.ahead.range(of: last.seq)?.upperBound ?? last.seq) + 1
        }
        return rows
    }

    /// Batches that another was to send become batches of the one who asks. Those from the quarantine are the endpoint's
    /// own: they stay, and keep no other one waiting for it.
    private mutating func reroute(_ forming: Forming) throws(OutboxError) {
        let index = forming.index
        if forming.route != nil, memory == nil { try returnToQuarantine(of: index) }
        let others = ledger.endpoints[index].batches.filter { $0.route != forming.route && $0.origin == .queue }
        for (number, batch) in others.enumerated() {
            var rows = try rows(of: batch, ledger.endpoints[index])[...]
            // On a disk that refuses and cannot be read: it stays as it is.
            if memory != nil, rows.count != batch.rows { continue }
            try remove(batch, from: index)
            let isLast = number == others.count - 1 && ledger.endpoints[index].waiting == 0
            while !rows.isEmpty {
                let part = Array(rows.prefix(forming.depth))
                let plan = BatchPlanner(forming.sender).plan(
                    part, limit: forming.limit, isEnd: isLast && part.count == rows.count, ages: forming.ages)
                let consumed = max(1, min(part.count, plan.consumed))
                try settle(plan, part, of: index)
                let mayHaveGaps = batch.picked != nil || batch.feed != ledger.endpoints[index].settings.feed
                var formed = batches(
                    of: plan, part, forming, generation: generation(after: batch.generation), mayHaveGaps: mayHaveGaps)
                for place in formed.indices {
                    formed[place].sentMs = batch.sentMs
                    let bounds = formed[place].first...formed[place].last
                    formed[place].broken = batch.broken.filter { bounds.contains($0) }
                }
                try add(formed, forming)
                rows = rows.dropFirst(consumed)
            }
            ledger.droppableFrom = 0
            needsCounts = true
        }
    }

    /// What goes out again from the quarantine waits there until the endpoint itself can be reached.
    private mutating func returnToQuarantine(of index: Int) throws(OutboxError) {
        let endpoint = ledger.endpoints[index]
        let batches = endpoint.batches.filter { $0.origin == .quarantine }
        guard !batches.isEmpty else { return }
        for batch in batches {
            try remove(batch, from: index)
            try database.want(batch.picked ?? [], of: endpoint.id, after: batch.generation)
        }
        ledger.endpoints[index].quarantine = try database.quarantineCount(of: endpoint.id)
    }

    /// From the quarantine, what an operator wants to be sent again.
    private mutating func formRetries(_ forming: Forming) throws(OutboxError) {
        let endpoint = ledger.endpoints[forming.index]
        guard endpoint.quarantine.retrying > 0, memory == nil else { return }
        let (rows, generation) = try database.retries(of: endpoint.id, limit: forming.depth, names: ledger.names)
        // Nothing is too old or superseded for an operator who asks for it, so these wait behind nothing.
        let plan = BatchPlanner(forming.sender).plan(rows, limit: forming.limit, isEnd: true, ages: nil)
        for (place, why) in plan.settled where rows.indices.contains(place) {
            try database.setRetry(.none, seq: rows[place].seq, of: endpoint.id)
            if case .refused(let rule) = why {
                let refusal = Refusal(reason: rule)
                try database.refuseAgain(rows[place].seq, of: endpoint.id, refusal, generation: generation)
            }
        }
        var formed = batches(of: plan, rows, forming, generation: self.generation(after: generation), mayHaveGaps: true)
        for place in formed.indices {
            formed[place].origin = .quarantine
            formed[place].broken = []
            for seq in formed[place].picked ?? [] { try database.setRetry(.inFlight, seq: seq, of: endpoint.id) }
        }
        ledger.endpoints[forming.index].quarantine = try database.quarantineCount(of: endpoint.id)
        try add(formed, forming)
    }

    /// Rows that a plan does not send.
    private mutating func settle(_ plan: BatchPlan, _ rows: [QueuedLocation], of index: Int) throws(OutboxError) {
        guard !plan.settled.isEmpty else { return }
        needsCounts = true
        var refused: [(QueuedLocation, Refusal)] = []
        for (place, why) in plan.settled where rows.indices.contains(place) {
            ledger.endpoints[index].count(unsent: why.word)
            if case .refused(let rule) = why { refused.append((rows[place], Refusal(reason: rule))) }
        }
        try quarantine(refused, of: index, generation: 0)
    }

    /// - Parameters:
    ///   - generation: nil = as the rows demand.
    ///   - mayHaveGaps: the queue holds more rows of the feed between these than these.
    private func batches(
        of plan: BatchPlan, _ rows: [QueuedLocation], _ forming: Forming, generation: Int?, mayHaveGaps: Bool
    ) -> [BatchRow] {
        let endpoint = ledger.endpoints[forming.index]
        // Who stands in may have had batches of its own among these rows.
        let sender = forming.route.flatMap(ledger.index).map { ledger.endpoints[$0] } ?? endpoint
        return plan.batches.compactMap { places in
            let places = places.filter { $0 >= 0 && $0 < min(rows.count, plan.consumed) }.sorted()
            guard let head = places.first.map({ rows[$0] }), let tail = places.last.map({ rows[$0] }) else {
                return nil
            }
            let newest = places.reduce(Int64.min) { max($0, rows[$1].location.time.milliseconds) }
            let hasGaps =
                mayHaveGaps || places.last! - places.first! + 1 != places.count
                || endpoint.ahead.overlaps(head.seq...max(head.seq, tail.seq))
            return BatchRow(
                first: head.seq, last: tail.seq, rows: places.count, feed: endpoint.settings.feed,
                picked: hasGaps ? places.map { rows[$0].seq } : nil, route: forming.route,
                sentMs: forming.sentMs.flatMap { $0 < newest - Self.clockTolerance ? nil : $0 },
                generation: max(
                    generation ?? endpoint.generation(from: head.seq), sender.generation(from: head.seq),
                    memory?.generation ?? 1),
                rendering: forming.sender.profile.rendering, through: endpoint.formed, firstTime: head.location.time)
        }
    }

    private mutating func add(_ batches: [BatchRow], _ forming: Forming) throws(OutboxError) {
        guard !batches.isEmpty else { return }
        let endpoint = ledger.endpoints[forming.index]
        var newest: Int64?
        if forming.sender.profile.usesNewest || forming.sender.freshHead, batches[0].origin == .queue,
            batches.count > 1 || endpoint.waiting > 0
        {
            newest = try database.newestSeq(of: endpoint.settings.feed, through: ledger.lastSeq)
        }
        for var batch in batches {
            batch.newestSeq = newest
            batch.broken += try brokenPairs(in: batch, of: forming.index)
            ledger.endpoints[forming.index].insert(batch)
            try database.write(batch, endpoint: endpoint.id)
        }
    }

    mutating func remove(_ batch: BatchRow, from index: Int) throws(OutboxError) {
        ledger.endpoints[index].batches.removeAll { $0.origin == batch.origin && $0.first == batch.first }
        try database.deleteBatch.run(ledger.endpoints[index].id, batch.first)
    }
}

extension BatchPlan.Settled {
    fileprivate var word: String {
        switch self {
        case .unfit: "unfit"
        case .expired: "expired"
        case .superseded: "superseded"
        case .skipped: "skipped"
        case .refused: "refused"
        }
    }
}
