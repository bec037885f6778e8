import Daemon
import WaypostCore

/// The disk as far as it has the small file of settings and commands from afar: replaced as a whole, or not at all.
final class StateDisk {
    /// nil = there is no such file.
    private(set) var bytes: [UInt8]?
    private let host: SimulatedHost
    private let dice: Dice
    /// Whether the disk refuses now, which it is asked once for each version.
    private let refuses: () -> Bool

    init(host: SimulatedHost, dice: Dice, refuses: @escaping () -> Bool) {
        self.host = host
        self.dice = dice
        self.refuses = refuses
    }

    /// Before the daemon works, or as it ends.
    /// - Returns: whether it is on disk.
    func replaceAtOnce(_ new: [UInt8]) -> Bool {
        if refuses() { return false }
        bytes = new
        return true
    }

    /// As the daemon sees it. What ends with the process in between may be on disk or not.
    var file: StateFile {
        StateFile(
            replace: { [unowned self] new, done in
                let length = dice.chance(0.9) ? dice.between(0.001, 0.05) : dice.between(0.05, 8)
                let isRefused = refuses()
                host.after(.milliseconds(Int64(length * 500)), ofProcess: true) { [self] in
                    if !isRefused { bytes = new }
                    host.after(.milliseconds(Int64(length * 500)), ofProcess: true) {
                        done(isRefused ? "write remote.state.new: Input/output error" : nil)
                    }
                }
            },
            replaceAtOnce: { [unowned self] in _ = replaceAtOnce($0) })
    }
}
