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

    func keep(_ loaded: LoadedConfiguration) {
        guard let lastGood else { return }
        do throws(LastGoodConfiguration.NotKept) {
            writer.write(try lastGood.bytes(of: loaded), to: lastGood.path)
        } catch { log.notKept(error.reason) }
    }
}
