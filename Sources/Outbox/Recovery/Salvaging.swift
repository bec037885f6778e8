import Delivery
import Positioning

/// What became of a queue that was damaged, since it was opened.
public struct Recovery: Hashable, Sendable {
    /// Damaged queues that were set aside.
    public var corruptRecovered = 0
    /// Rows that were brought back from them.
    public var salvaged = 0
    /// Of these, rows that are older than the row before them.
    public var inversions = 0
    /// Rows are still being brought back, some with each commit.
    public var isSalvaging = false
    /// After this another commit should bring back more, even if nothing is recorded; nil = no need.
    public var nextStepIn: Duration?
    /// The last one that was set aside, and what was wrong with it.
    public var copy: String?
    public var reason: String?

    public init() {}
}

/// How far what can be read of damaged copies has been brought back.
struct Salvaging {
    private(set) var plan = SalvagePlan()
    /// The last step may be on the medium, although it failed.
    private(set) var isUncertain = false
    private var reader: Salvage?
    /// Failed attempts to read the first copy.
    private var tries = 0
    /// Commits until the next step.
    private var pause = 0
    /// The endpoints when a copy was set aside, by its number. After a restart only the copy has them.
    private var before: [Int64: [Ledger.Endpoint]] = [:]
    private var counts = Recovery()

    /// Most rows that are brought back with one commit.
    static let rowsMax = 250
    /// What cannot be read of a copy after so many tries counts as damaged. The pause before each is twice as long as the
    /// last one.
    private static let triesMax = 4
    /// Commits after which a disk is asked again that has refused what was brought back.
    private static let pauseAfterRefusal = 16

    /// - Parameter onDisk: the queue itself is on disk at present.
    func report(onDisk: Bool) -> Recovery {
        var report = counts
        report.isSalvaging = !plan.parts.isEmpty
        if report.isSalvaging, onDisk { report.nextStepIn = pause == 0 ? .seconds(1) : .seconds(60) }
        return report
    }

    mutating func count(_ setAside: (copy: String, reason: String)?) {
        guard let (copy, reason) = setAside else { return }
        counts.corruptRecovered += 1
        counts.copy = copy
        counts.reason = reason
    }

    mutating func note(_ endpoints: [Ledger.Endpoint], before copies: Set<Int64>) {
        for copy in copies { before[copy] = endpoints }
    }

    mutating func adopt(_ new: SalvagePlan) {
        if new.parts.first?.copy != plan.parts.first?.copy { (tries, pause) = (0, 0) }
        plan = new
        before = before.filter { copy, _ in new.parts.contains { $0.copy == copy } }
        closeReader()
        isUncertain = false
    }

    mutating func closeReader() { reader = nil }

    /// The next rows, and the plan once they are stored; nil = none are due, or the copy cannot be read just now.
    mutating func read(
        for endpoints: [EndpointSettings], of files: QueueFiles
    ) -> (rows: [SalvagedRow], next: SalvagePlan)? {
        guard let part = plan.parts.first else { return nil }
        guard pause == 0 else {
            pause -= 1
            return nil
        }
        do throws(OutboxError) {
            if reader == nil {
                reader = try Salvage(
                    path: files.copy(part.copy), part: part, before: before[part.copy],
                    isPatient: tries < Self.triesMax, medium: files.medium)
            }
            let rows = try reader?.rows(Self.rowsMax, for: endpoints) ?? []
            var next = plan
            if let reader, !reader.isFinished {
                next.parts[0].next = reader.next
            } else {
                next.parts.removeFirst()
            }
            return (rows, next)
        } catch {
            closeReader()
            tries = min(tries + 1, Self.triesMax)
            pause = 1 << tries
            return nil
        }
    }

    mutating func stored(_ rows: Int, inversions: Int, next: SalvagePlan) {
        if next.parts.first?.copy == plan.parts.first?.copy { plan = next } else { adopt(next) }
        if tries < Self.triesMax { tries = 0 }
        counts.salvaged += rows
        counts.inversions += inversions
    }

    /// The rows that were read last could not be stored.
    mutating func refused(isUncertain: Bool) {
        closeReader()
        pause = Self.pauseAfterRefusal
        self.isUncertain = isUncertain
    }
}
