import CSimDisk
import Outbox
import Positioning

/// The writer's thread as events: a job begins, changes the disk at its beginning or its end, and ends later.
final class SimulatedWriter: CommitWriter {
    /// What the world does with it.
    struct World {
        var host: SimulatedHost
        var dice: Dice
        /// How long the next job takes.
        var duration: () -> Duration
        /// What the disk has by now, before anybody hears of it.
        var committed: (Commit, Result<CommitReply, OutboxError>) -> Void
        /// The process ended in the middle of a job.
        var died: () -> Void
    }

    private let outbox: Outbox
    private let world: World
    private var jobs: [(commit: Commit, completion: OutboxWriter.Completion)] = []
    private var done: [(OutboxWriter.Completion, Result<CommitReply, OutboxError>)] = []
    /// The job that the thread is busy with, and what it came to, where the disk has it by now.
    private var underWay: (Commit, OutboxWriter.Completion, Result<CommitReply, OutboxError>?)?
    private var isClosed = false

    init(_ outbox: sending Outbox, world: World) {
        self.outbox = outbox
        self.world = world
    }

    var descriptor: Int32 { SimulatedHost.writerDescriptor }
    var bytesOnDisk: Int {
        Int(simdisk_size(outbox.settings.path) + simdisk_size(outbox.settings.path + "-wal"))
    }

    /// The daemon has heard of every commit.
    var isIdle: Bool { underWay == nil && jobs.isEmpty && done.isEmpty }

    func submit(_ commit: Commit, completion: @escaping OutboxWriter.Completion) {
        jobs.append((commit, completion))
        begin()
    }

    /// Another program opens the queue: it gets it between two jobs.
    func readerCame() {
        if underWay == nil, !isClosed { outbox.readerCame() }
    }

    func drain() {
        let done = done
        self.done = []
        for (completion, result) in done { completion(result) }
    }

    @discardableResult
    func close(patience: Duration) -> Bool {
        isClosed = true
        if let (commit, completion, early) = underWay { done.append((completion, early ?? carryOut(commit))) }
        for (commit, completion) in jobs { done.append((completion, carryOut(commit))) }
        (underWay, jobs) = (nil, [])
        drain()
        outbox.close()
        return true
    }

    private func begin() {
        guard underWay == nil, !jobs.isEmpty, !isClosed else { return }
        let (commit, completion) = jobs.removeFirst()
        let early = world.dice.chance(0.5) ? carryOut(commit) : nil
        underWay = (commit, completion, early)
        if simdisk_stopped() { return world.died() }
        world.host.writerReady(after: world.duration()) { [weak self] in
            guard let self, let (commit, completion, early) = underWay else { return }
            let result = early ?? carryOut(commit)
            if simdisk_stopped() { return world.died() }
            done.append((completion, result))
            underWay = nil
            begin()
        }
    }

    private func carryOut(_ commit: Commit) -> Result<CommitReply, OutboxError> {
        let result: Result<CommitReply, OutboxError>
        do throws(OutboxError) { result = .success(try outbox.commit(commit)) } catch { result = .failure(error) }
        world.committed(commit, result)
        return result
    }
}
