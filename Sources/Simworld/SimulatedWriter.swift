import CSimDisk
import Queue
import WaypostCore

/// The writer's thread as events: a job begins, changes the disk at its beginning or its end, and ends later.
final class SimulatedWriter: CommitWriter {
    /// What the world does with it.
    struct World {
        var host: SimulatedHost
        var dice: Dice
        /// How long the next job takes.
        var duration: () -> Duration
        /// What the disk has by now, before the daemon hears of it.
        var committed: (Commit, Result<CommitReply, OutboxError>) -> Void
        /// The process ended in the middle of a job.
        var died: () -> Void
    }

    private let outbox: Outbox
    private let world: World
    private struct Job {
        let commit: Commit
        let completion: OutboxWriter.Completion
        /// nil = the disk does not have it yet.
        var result: Result<CommitReply, OutboxError>?
    }

    private var jobs: [Job] = []
    /// They have a result.
    private var done: [Job] = []
    /// The job that the thread is busy with.
    private var underWay: Job?
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
        jobs.append(Job(commit: commit, completion: completion))
        begin()
    }

    /// Another program opens the queue: it gets it between two jobs.
    func readerCame() {
        if underWay == nil, !isClosed { outbox.readerCame() }
    }

    func drain() {
        let done = done
        self.done = []
        for job in done { if let result = job.result { job.completion(result) } }
    }

    @discardableResult
    func close(timeout: Duration) -> Bool {
        isClosed = true
        if let underWay { done.append(finished(underWay)) }
        for job in jobs { done.append(finished(job)) }
        underWay = nil
        jobs = []
        drain()
        outbox.close()
        return true
    }

    private func begin() {
        guard underWay == nil, !jobs.isEmpty, !isClosed else { return }
        let job = jobs.removeFirst()
        underWay = world.dice.chance(0.5) ? finished(job) : job
        if simdisk_stopped() { return world.died() }
        world.host.writerReady(after: world.duration()) { [weak self] in
            guard let self, let underWay else { return }
            let ended = finished(underWay)
            if simdisk_stopped() { return world.died() }
            done.append(ended)
            self.underWay = nil
            begin()
        }
    }

    /// The job with its result: it is carried out unless it has been.
    private func finished(_ job: Job) -> Job {
        guard job.result == nil else { return job }
        let result: Result<CommitReply, OutboxError>
        do throws(OutboxError) { result = .success(try outbox.commit(job.commit)) } catch { result = .failure(error) }
        world.committed(job.commit, result)
        var finished = job
        finished.result = result
        return finished
    }
}
