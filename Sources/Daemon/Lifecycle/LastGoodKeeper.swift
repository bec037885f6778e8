import Configuration
import WaypostHost

/// Keeps a configuration that works, for a start without a good one.
final class LastGoodKeeper {
    /// nil = nothing is kept.
    private let lastGood: LastGoodConfiguration?
    private let log: AgentLog
    private let writer: FileWriter
    /// Why nothing is kept, as was said last: it is not said again with each reload.
    private var said: String?

    init(_ lastGood: LastGoodConfiguration?, log: AgentLog, loop: EventLoop) {
        (self.lastGood, self.log) = (lastGood, log)
        writer = FileWriter(mode: 0o600, isDurable: true, loop: loop)
        writer.done = { [unowned self] problem, _ in say(problem) }
    }

    private func say(_ problem: String?) {
        if let problem, problem != said { log.notKept(problem) }
        said = problem
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
        case .failure(let problem): say(problem.reason)
        }
    }
}
