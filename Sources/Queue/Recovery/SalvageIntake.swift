import WaypostCore

/// Brings rows of a damaged copy back into the queue.
struct SalvageIntake {
    let queue: Transaction

    /// Appends rows under new numbers, as of their old times and boots, and notes how far it got.
    ///
    /// - Parameters:
    ///   - gaps: records in the place of rows that are given up.
    ///   - now: boot clock.
    /// - Returns: rows that are older than the one before them, and the endpoints that are held for an old binding no more.
    func bringBack(
        _ found: [SalvagedRow], gaps: [SalvagedRow], after lastTime: inout Int64, plan: SalvagePlan, at now: EventTime?
    ) throws(OutboxError) -> (inversions: Int, released: [String]) {
        try queue.whole { () throws(OutboxError) in
            var inversions = 0
            // Rows of one boot in one go: they become segments.
            var rest = (found + gaps)[...]
            while let boot = rest.first.map(\.row.bootID) {
                let rows = rest.prefix { $0.row.bootID == boot }
                try RowAppending(queue: queue).append(
                    rows.map { salvaged in
                        // One of this boot may be of this process, and is as young as can be.
                        var new = NewRow(
                            salvaged.row.location, receivedMs: salvaged.row.receivedMs,
                            recordedAt: boot == queue.processRun.bootID ? now : nil)
                        new.finishedFor = salvaged.finishedFor
                        return new
                    }, boot: boot)
                rest = rest.dropFirst(rows.count)
            }
            for row in found.lazy.map(\.row) where row.location.isPlaced {
                if row.location.time.milliseconds < lastTime { inversions += 1 }
                lastTime = row.location.time.milliseconds
            }
            try keepBindings(found + gaps)
            queue.ledger.isSalvaging = plan.isUnderWay
            let released = queue.ledger.isSalvaging ? [] : try releaseBindings()
            try queue.database.store(.salvage, plan.bytes)
            if queue.ledger.lastSeq - queue.ledger.mark >= Ledger.countInterval { try queue.writeCounts() }
            try queue.findOldest()
            return (inversions, released)
        }
    }

    /// What is brought back was recorded before an endpoint got another binding: an operator decides on it as well.
    ///
    /// - Parameter found: what was just appended.
    private func keepBindings(_ found: [SalvagedRow]) throws(OutboxError) {
        for index in queue.ledger.endpoints.indices where queue[index].wanted != nil {
            let settings = queue[index].settings
            let isConcerned = found.contains {
                ($0.row.location.published || settings.feed == .engine) && !$0.finishedFor.contains(settings.name)
            }
            guard isConcerned else { continue }
            // Read beforehand: assigning through `?` holds the ledger while the right side is evaluated.
            let last = queue.ledger.lastSeq
            queue[index].wanted?.boundThrough = last
            try queue.database.writeState(queue[index])
        }
    }

    /// Once all has been brought back: where nothing was recorded under the old binding, or only the address has changed and nothing
    /// was accepted there, there is nothing to decide.
    private func releaseBindings() throws(OutboxError) -> [String] {
        var released: [String] = []
        for index in queue.ledger.endpoints.indices where queue[index].removedAt == nil {
            let endpoint = queue[index]
            guard let bound = endpoint.wanted?.boundThrough, endpoint.state == .rebind else { continue }
            let left =
                try endpoint.inFlight + queue.database.count(of: endpoint, after: endpoint.formed, through: bound)
            guard left == 0 || endpoint.mayMove else { continue }
            queue[index].isMoved = left > 0
            try OrderHandling(queue: queue).bind(index)
            released.append(endpoint.settings.name)
        }
        return released
    }
}
