import Remote
import WaypostCore
import WaypostHost

/// What is remembered of settings and commands from afar, and the file that has it.
final class RemoteStore {
    /// When what the disk refused is written again.
    private static let rewritePause = Duration.seconds(60)

    /// Changed by whoever then calls `save`.
    var memory: RemoteMemory
    private let file: StateFile
    /// Has the highest version that was accepted, and nothing else; nil = there is none.
    private let seenFile: StateFile?
    private let loop: EventLoop
    private var alarm: EventLoop.Alarm?
    private var isWriting = false
    private var isChanged: Bool
    /// What kept the last version from being written; nil = it is on disk.
    private(set) var problem: String?
    /// Want to know what becomes of the next version, and of the one that is being written.
    private var waiting: [(String?) -> Void] = []
    private var writing: [(String?) -> Void] = []

    /// - Parameters:
    ///   - problem: what kept it from being written before; nil = it is on disk.
    ///   - isSeenBehind: the second file does not have what it should.
    init(
        _ memory: RemoteMemory, problem: String?, file: StateFile, seenFile: StateFile? = nil,
        isSeenBehind: Bool = false, loop: EventLoop
    ) {
        self.memory = memory
        self.file = file
        self.seenFile = seenFile
        self.loop = loop
        self.problem = problem
        isChanged = problem != nil || isSeenBehind
        alarm = loop.alarm { [unowned self] now in write(at: now) }
        if isChanged { alarm?.deadline = loop.now + Self.rewritePause }
    }

    /// What has changed is on disk.
    var isIdle: Bool { !isWriting && !isChanged }

    /// Writes what has changed; while a version is being written, the next one waits.
    /// - Parameter done: takes what kept it from being written; nil = it is on disk.
    func save(at now: EventTime, _ done: @escaping (String?) -> Void = { _ in }) {
        waiting.append(done)
        isChanged = true
        write(at: now)
    }

    /// The rest of a trial's clock is kept over a restart.
    func close() {
        alarm?.deadline = nil
        guard !isWriting, isChanged || memory.settings.trial != nil else { return }
        file.replaceAtOnce(memory.bytes(at: loop.now))
        seenFile?.replaceAtOnce(memory.seenBytes)
    }

    private func write(at now: EventTime) {
        guard isChanged, !isWriting else { return }
        (isWriting, isChanged) = (true, false)
        writing = waiting
        waiting = []
        alarm?.deadline = nil
        // The second file after the first: it must not name a version that the first one has never had.
        let seen = memory.seenBytes
        file.replace(memory.bytes(at: now)) { [weak self, seenFile] failure in
            guard failure == nil, let seenFile else { return self?.written(failure) ?? () }
            seenFile.replace(seen) { self?.written($0) }
        }
    }

    private func written(_ failure: String?) {
        isWriting = false
        problem = failure
        let callers = writing
        writing = []
        // What the disk has is older than what is in force from here on.
        if failure != nil {
            isChanged = true
            alarm?.deadline = loop.now + Self.rewritePause
        }
        for caller in callers { caller(failure) }
        if failure == nil || !waiting.isEmpty { write(at: loop.now) }
    }
}

/// A small file that is replaced as a whole and durably.
package struct StateFile {
    /// Replaces it later, and takes what kept it from that; nil = it is on disk.
    package var replace: ([UInt8], @escaping (String?) -> Void) -> Void
    /// Replaces it before it returns: the daemon ends.
    package var replaceAtOnce: ([UInt8]) -> Void

    package init(
        replace: @escaping ([UInt8], @escaping (String?) -> Void) -> Void, replaceAtOnce: @escaping ([UInt8]) -> Void
    ) {
        self.replace = replace
        self.replaceAtOnce = replaceAtOnce
    }

    init(path: String, loop: EventLoop) {
        let writer = FileWriter(mode: 0o600, isDurable: true, loop: loop)
        self.init(
            replace: { bytes, done in writer.write(bytes, to: path, done) },
            replaceAtOnce: { try? replaceFile(path, with: $0, mode: 0o600) })
    }
}
