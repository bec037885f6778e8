import Delivery
import Profiles

/// Forms the batches that a request asks for.
struct BatchForming {
    private let queue: Transaction
    private let request: FormRequest
    private let index: Int
    private let sender: EndpointSettings
    /// nil = the endpoint sends itself.
    private let route: String?
    private let limit: Int
    /// nil = nothing expires.
    private let ages: RowAges?

    /// Milliseconds by which a correct host clock may be behind the receiver.
    private static let clockTolerance: Int64 = 300_000
    /// Most rows that are read for one request: a long backlog of which nothing is to be sent takes several.
    private static let planningLimit = 50_000

    private var database: Database { queue.database }
    private var endpoint: Ledger.Endpoint { queue[index] }
    private var depth: Int { max(1, min(BatchRow.longest, BatchPlanner(sender).depth(limit: limit))) }

    /// nil: there is nothing to form for it.
    init?(_ request: FormRequest, ages: RowAges?, in queue: Transaction) {
        guard let index = queue.ledger.index(of: request.endpoint), request.limit > 0 else { return nil }
        guard queue[index].state != .rebind, !queue[index].isSpare else { return nil }
        if let route = request.route, route != request.endpoint {
            guard let spare = queue.ledger.index(of: route).map({ queue[$0].settings }),
                spare.backupFor == request.endpoint
            else { return nil }
            sender = spare
            self.route = route
        } else {
            sender = queue[index].settings
            route = nil
        }
        self.queue = queue
        self.request = request
        self.index = index
        self.ages = ages
        limit = min(request.limit, BatchRow.longest)
    }

    func form() throws(OutboxError) {
        try reroute()
        guard !endpoint.batches.contains(where: request.wants) || request.isProbe else { return }
        try formWaiting()
        if endpoint.batches.isEmpty || request.isProbe, endpoint.waiting == 0, route == nil { try formRetries() }
    }

    /// From the rows after the cursor.
    private func formWaiting() throws(OutboxError) {
        var budget = Self.planningLimit
        let inFlight = endpoint.batches.count
        guard let start = try readableStart() else { return }
        // The cursor does not pass rows that cannot be read; those that go out before them are noted one by one.
        let passes = start > endpoint.formed
        while budget > 0, endpoint.waiting > 0, endpoint.batches.count == inFlight {
            var rows: [QueuedLocation]
            do throws(OutboxError) {
                rows = try database.waitingRows(
                    of: endpoint, after: max(start, endpoint.formed), limit: depth + 1, names: queue.ledger.names)
            } catch {
                // What cannot be read of a disk that refuses is waited for.
                if queue.memory == nil { throw error }
                return
            }
            guard !rows.isEmpty else {
                if passes { return }
                // A damaged file may hold fewer than it says.
                queue[index].waiting = 0
                queue.needsCounts = true
                return
            }
            let isEnd = rows.count <= depth
            if !isEnd { rows.removeLast() }
            budget -= rows.count
            let plan = BatchPlanner(sender).plan(
                rows, limit: limit, isEnd: isEnd, ages: ages, shown: request.shown)
            let consumed = min(rows.count, plan.consumed)
            guard consumed > 0 else { return }
            try finishUnsent(plan, rows)
            if passes {
                queue[index].ahead.formUnion([rows[0].seq...rows[consumed - 1].seq])
            } else {
                queue[index].formed = rows[consumed - 1].seq
            }
            queue[index].waiting = max(0, endpoint.waiting - consumed)
            queue[index].oldest = .unknown
            let batches = batches(of: plan, rows, generation: nil, mayHaveGaps: false)
            if batches.isEmpty { queue.needsCounts = true }
            for places in plan.batches {
                // Most batches take all the rows: then these are not copied.
                let planned =
                    places.elementsEqual(rows.indices) ? rows : places.filter(rows.indices.contains).map { rows[$0] }
                queue.notePlanned(planned, of: endpoint)
            }
            try add(batches)
        }
    }

    /// The number after which the next rows for the endpoint can be read: its cursor, or the last row on a disk that
    /// cannot be read. nil = it waits for those.
    private func readableStart() throws(OutboxError) -> Int64? {
        let endpoint = endpoint
        guard let below = database.below, endpoint.formed < below.last else { return endpoint.formed }
        let own = try database.count(of: endpoint, after: below.last)
        let found = below.read { (database) throws(OutboxError) in
            try database.count(of: endpoint, after: endpoint.formed, through: below.last)
        }
        // A failing medium may not show all that was stored: later rows would overtake what is missing.
        if let found, found >= endpoint.waiting - own {
            // It may have shown less when they were counted. With too low a count, the last ones would be removed as delivered.
            queue[index].waiting = found + own
            return endpoint.formed
        }
        // Where only the newest row counts, those on disk have been overtaken.
        let isOvertaken = sender.delivery == .latest && own > 0
        guard isOvertaken || queue.memory?.passesUnreadable == true else { return nil }
        if own > 0 { queue.memory?.passed = true }
        return below.last
    }

    /// Batches that another endpoint was to send become batches of the requested sender. Those from the quarantine are
    /// the endpoint's own: they stay, and keep no other one waiting for it.
    private func reroute() throws(OutboxError) {
        if route != nil, queue.memory == nil { try returnToQuarantine() }
        let others = endpoint.batches.filter { $0.route != route && $0.origin == .queue }
        for (number, batch) in others.enumerated() {
            var rows = try queue.rows(of: batch, endpoint)[...]
            // On a disk that refuses and cannot be read: it stays as it is.
            if queue.memory != nil, rows.count != batch.rows { continue }
            try queue.remove(batch, from: index)
            let isLast = number == others.count - 1 && endpoint.waiting == 0
            while !rows.isEmpty {
                let part = Array(rows.prefix(depth))
                let plan = BatchPlanner(sender).plan(
                    part, limit: limit, isEnd: isLast && part.count == rows.count, ages: ages, shown: request.shown)
                let consumed = max(1, min(part.count, plan.consumed))
                try finishUnsent(plan, part)
                var formed = batches(
                    of: plan, part, generation: queue.generation(after: batch.generation),
                    mayHaveGaps: batch.picked != nil || batch.feed != endpoint.settings.feed)
                for place in formed.indices {
                    formed[place].sentMs = batch.sentMs
                    let bounds = formed[place].first...formed[place].last
                    formed[place].broken = batch.broken.filter { bounds.contains($0) }
                }
                try add(formed)
                rows = rows.dropFirst(consumed)
            }
            queue.rowsBecameFree()
        }
    }

    /// What goes out again from the quarantine waits there until the endpoint itself can be reached.
    private func returnToQuarantine() throws(OutboxError) {
        let batches = endpoint.batches.filter { $0.origin == .quarantine }
        guard !batches.isEmpty else { return }
        for batch in batches {
            try queue.remove(batch, from: index)
            try database.markForRetry(batch.picked ?? [], of: endpoint.id, after: batch.generation)
        }
        try queue.recountQuarantine(of: index)
    }

    /// From the quarantine, what an operator wants to be sent again.
    private func formRetries() throws(OutboxError) {
        let id = endpoint.id
        guard endpoint.quarantine.retrying > 0, queue.memory == nil else { return }
        let (rows, generation) = try database.retries(of: id, limit: depth, names: queue.ledger.names)
        // Nothing is too old or superseded for an operator who wants it, so these wait for nothing.
        let plan = BatchPlanner(sender).plan(rows, limit: limit, isEnd: true, ages: nil)
        for (place, why) in plan.settled where rows.indices.contains(place) {
            try database.setRetry(.none, seq: rows[place].seq, of: id)
            if case .refused(let rule) = why {
                try database.refuseAgain(rows[place].seq, of: id, Refusal(reason: rule), generation: generation)
            }
        }
        var formed = batches(of: plan, rows, generation: queue.generation(after: generation), mayHaveGaps: true)
        for place in formed.indices {
            formed[place].origin = .quarantine
            formed[place].broken = []
            for seq in formed[place].picked ?? [] { try database.setRetry(.inFlight, seq: seq, of: id) }
        }
        try queue.recountQuarantine(of: index)
        try add(formed)
    }

    /// Rows that a plan does not send.
    private func finishUnsent(_ plan: BatchPlan, _ rows: [QueuedLocation]) throws(OutboxError) {
        guard !plan.settled.isEmpty else { return }
        queue.needsCounts = true
        var refused: [QuarantineIntake.Refused] = []
        for (place, why) in plan.settled where rows.indices.contains(place) {
            queue[index].count(unsent: why.word)
            if case .refused(let rule) = why { refused.append((rows[place], Refusal(reason: rule))) }
        }
        try QuarantineIntake(queue: queue).add(refused, of: index, generation: 0)
    }

    /// - Parameters:
    ///   - generation: nil = as the rows demand.
    ///   - mayHaveGaps: the queue holds more rows of the feed between these than these.
    private func batches(
        of plan: BatchPlan, _ rows: [QueuedLocation], generation: Int?, mayHaveGaps: Bool
    ) -> [BatchRow] {
        let endpoint = endpoint
        // A spare may have had batches of its own among these rows.
        let spare = route.flatMap(queue.ledger.index).map { queue[$0] } ?? endpoint
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
                picked: hasGaps ? places.map { rows[$0].seq } : nil, route: route,
                sentMs: request.sentMs.flatMap { $0 < newest - Self.clockTolerance ? nil : $0 },
                generation: max(
                    generation ?? endpoint.generation(from: head.seq), spare.generation(from: head.seq),
                    queue.memory?.generation ?? 1),
                rendering: sender.profile.rendering, through: endpoint.formed, firstTime: head.date)
        }
    }

    private func add(_ batches: [BatchRow]) throws(OutboxError) {
        guard !batches.isEmpty else { return }
        var newest: Int64?
        if sender.profile.usesNewest || sender.freshHead, batches[0].origin == .queue,
            batches.count > 1 || endpoint.waiting > 0
        {
            newest = try database.newestSeq(of: endpoint.settings.feed, through: queue.ledger.lastSeq)
        }
        for var batch in batches {
            batch.newestSeq = newest
            batch.broken += try brokenPairs(in: batch)
            try queue.insert(batch, into: index)
        }
    }

    /// Rows of a batch whose ENTER is in quarantine.
    private func brokenPairs(in batch: BatchRow) throws(OutboxError) -> [Int64] {
        guard endpoint.quarantine.records > 0, batch.origin == .queue, queue.memory == nil else { return [] }
        var broken: [Int64] = []
        for seq in try database.exits(from: batch.first, through: batch.last) {
            if let picked = batch.picked, !picked.contains(seq) { continue }
            if try database.pair(exit: seq, of: endpoint.id) { broken.append(seq) }
        }
        return broken
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
