import Delivery
import Outbox
import Positioning

// Straight from memory, while the disk refuses.
extension EndpointDelivery {
    /// - Returns: whether there is a batch to send now; if not, one is to be asked of the disk.
    func formFromMemory(_ limit: Int, at now: EventTime) -> Bool {
        // What another way has had is known only by the cursor, which is on disk.
        guard limit > 0, schedule.route == 0, batches.isEmpty, !needsDisk,
            let batch = recorder.memoryBatch(
                for: settings.name, limit: limit, sentMs: HostIdentity.wallClockMs())
        else { return false }
        fromMemory = batch
        batches = [batch]
        schedule.batchesFormed([.init(id: batch.id, rows: batch.rows.count)], at: now)
        return true
    }

    /// Rows that were not accepted stay in memory: for another attempt, or for the disk.
    func memoryAnswered(
        _ batch: Batch, _ settled: [DeliverySchedule.Settled], _ verdict: Verdict, at now: EventTime
    ) {
        fromMemory = nil
        batches = []
        histories = [:]
        let isAccepted = settled.contains { $0.batch == batch.id && $0.how == .accepted }
        if isAccepted {
            counters.accepted += batch.rows.count
            link.gate.settled(batch.rows.count)
        } else {
            schedule.batchWithdrawn(.init(id: batch.id, rows: batch.rows.count))
        }
        switch verdict {
        case .split, .tooLarge, .partlyAccepted: needsDisk = true
        default: break
        }
        recorder.memorySettled(batch, accepted: isAccepted)
        if let left = recorder.memoryRows(for: settings.name) { schedule.waitingCorrected(to: left) }
    }
}
