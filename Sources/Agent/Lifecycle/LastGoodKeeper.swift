import Configuration
import EventLoop

/// Keeps a configuration that works, for a start without a good one.
final class LastGoodKeeper {
    /// nil = nothing is kept.
    private let lastGood: LastGoodConfiguration?
    private let log: AgentLog
    private let writer: FileWriter

    init(_ lastGood: LastGoodConfiguration?, log: AgentLog, loop: EventLoop) {
        (self.lastGood, self.log) = (lastGood, log)
        writer = FileWriter(mode: 0o600, isDurable: true, loop: loop)
        writer.done = { problem, _ in if let problem { log.notKept(problem) } }
    }

    /// What is kept of a configuration, or why nothing is.
    typealias Copy = Result<[UInt8], LastGoodConfiguration.NotKept>

    /// What is to be kept of a configuration, which takes a while for a large one; nil = nothing is kept.
    var copy: @Sendable (LoadedConfiguration) -> Copy? {
        { [lastGood] loaded in
            lastGood.map { lastGood in
                Copy { () throws(LastGoodConfiguration.NotKept) in try lastGood.bytes(of: loaded) }
            }
        }
    }

    func keep(_ copy: Copy?) {
        guard let lastGood, let copy else { return }
        switch copy {
        case .success(let bytes): writer.write(bytes, to: lastGood.path)
        case .failure(let problem): log.notKept(problem.reason)
        }
    }
}
