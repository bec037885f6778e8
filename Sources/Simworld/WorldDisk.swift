import CSimDisk

/// What goes wrong with the disk of a world, beside what `simdisk` does on its own.
final class WorldDisk {
    private let host: SimulatedHost
    private let oracle: Oracle
    /// Seconds that a commit may take; 0 = it is quick.
    private var slow = 0.0
    /// The slowest that it was since it was last quick for a minute, seconds.
    private(set) var slowest = WorldDisk.quick
    private var heals = 0
    /// Of database and log, by what follows the path.
    var backup: [String: [UInt8]] = [:]
    /// A file was removed or replaced, and no commit has reached the disk since: it goes with the process.
    var isFileGone = false
    /// Most seconds of a commit on a disk without a fault.
    private static let quick = 0.4

    init(host: SimulatedHost, oracle: Oracle) {
        self.host = host
        self.oracle = oracle
    }

    /// Bytes of the queue with its log.
    private var queueBytes: Int64 {
        simdisk_size(WorldConfiguration.path) + simdisk_size(WorldConfiguration.path + "-wal")
    }

    func commitDuration(_ dice: Dice) -> Duration {
        let longest = slow > 0 ? slow : dice.chance(0.9) ? 0.015 : Self.quick
        return .milliseconds(Int64(dice.between(0, longest * 1000)))
    }

    func fail(_ settings: [(Int32, Int64)]) {
        noteTrouble()
        for (setting, value) in settings {
            // Room for so much more, or none at all.
            let isRoom = setting == Int32(simdisk_capacity) && value > 1
            simdisk_set(setting, isRoom ? value + queueBytes : value)
        }
    }

    func slowDown(to seconds: Double) {
        noteTrouble()
        slow = seconds
        slowest = max(slowest, seconds)
    }

    private func noteTrouble() {
        if oracle.diskTroubleSince == nil { oracle.diskTroubleSince = host.time }
    }

    func heal() {
        for setting in [
            simdisk_fail_read, simdisk_fail_write, simdisk_fail_sync, simdisk_short_write, simdisk_read_only,
            simdisk_capacity, simdisk_lying_sync,
        ] { simdisk_set(Int32(setting), 0) }
        slow = 0
        // Commits that began before take as long.
        heals += 1
        host.after(.seconds(70), ofProcess: false) { [unowned self, heals] in
            if slow == 0, heals == self.heals { slowest = Self.quick }
        }
        if oracle.diskTroubleSince != nil {
            oracle.diskTroubleUntil = host.time
            oracle.diskTroubleSince = nil
        }
    }
}
