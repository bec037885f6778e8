import Delivery
import Positioning

// Sending while the disk refuses.
extension EndpointDelivery {
    /// - Returns: whether there is nothing to ask the disk for: a batch of rows that are on no disk is about to be sent, or
    ///   there are none.
    func formFromMemory(_ limit: Int, at now: EventTime) -> Bool {
        guard limit > 0, recorder.isDiskBad, batches.isEmpty, fromMemory == nil, schedule.hasNothingInFlight else {
            return false
        }
        if let waiting = recorder.waitingWithoutDisk(for: settings) {
            // Some may have been given up for want of memory.
            schedule.waitingCorrected(to: waiting)
            if waiting == 0 { return true }
        }
        let routeBefore = schedule.route
        schedule.formRequested(at: now)
        if schedule.route != routeBefore { routeChanged() }
        let sender = routes[schedule.route].settings
        guard
            let batch = recorder.memoryBatch(
                for: settings, by: sender, limit: limit, sentMs: HostIdentity.wallClockMs())
        else {
            schedule.batchNotFormed(at: now)
            return false
        }
        fromMemory = batch
        batches = [batch]
        schedule.batchesFormed([.init(id: batch.id, rows: batch.rows.count)], at: now)
        return true
    }

    /// Rows that lie on a disk which refuses were read for it.
    func storedRowsRead(at now: EventTime) {
        guard schedule.isFreeToForm else { return }
        if formFromMemory(schedule.batchLimit, at: now) { step(at: now) }
    }

    func memoryAnswered(
        _ sent: Batch, _ verdict: Verdict, _ settled: [DeliverySchedule.Settled], at now: EventTime
    ) {
        // Unless an order has emptied the queue meanwhile.
        let isCurrent = batches.contains { $0.id == sent.id }
        fromMemory = nil
        var accepted = Set(sent.rows.map(\.seq))
        var isRefused = false
        switch verdict {
        case .accepted: break
        case .partlyAccepted(let items):
            accepted.subtract(items.again)
            accepted.subtract(items.refused.keys)
            isRefused = !items.refused.isEmpty
        // Half of it may go at once.
        case .tooLarge where sent.rows.count > 1: accepted = []
        case .split:
            accepted = []
            isRefused = true
        default:
            accepted = []
            isRefused = !settled.isEmpty
        }
        if isCurrent {
            batches = []
            schedule.memoryBatchEnded(
                rows: sent.rows.count - accepted.count, isRefused: isRefused, jitter: jitter(), at: now)
        }
        if !accepted.isEmpty { histories[sent.id] = nil }
        counters.accepted += accepted.count
        link.gate.settled(accepted.count)
        recorder.memorySettled(settings.name, accepted: accepted)
    }
}
