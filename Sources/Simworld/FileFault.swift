import CSimDisk

/// What another program does to the files of the queue while the daemon uses them.
///
/// Files are named by what follows the path: nothing for the database, `-wal` for its log, `-lock` for the lock file.
enum FileFault {
    case removed([String])
    /// Database and log are copied.
    case backedUp
    /// The copies take their places, or, without any, empty files.
    case replaced([String])
    /// The copies are written into the files, or these are cut off.
    case overwritten([String])
}

extension Schedule {
    /// Files of the queue go, with readers and ends of the process among them.
    mutating func addFileFaults(_ dice: Dice) {
        func add(_ kind: Fault.Kind, at: Double) {
            faults.append(Fault(at: at, lasts: 0, kind: kind, seed: dice.next()))
        }
        for _ in 0..<dice.below(3) { add(.files(.backedUp), at: dice.between(0, length)) }
        for _ in 0..<dice.from(2...8) {
            let at = dice.between(0, length)
            let parts: [String] = dice.pick([[""], ["-wal"], ["", "-wal"], ["", "-wal", "-lock"], ["-lock"]])
            switch dice.below(10) {
            case 0..<5: add(.files(.removed(parts)), at: at)
            case 5..<9: add(.files(.replaced(parts.filter { $0 != "-lock" })), at: at)
            default: add(.files(.overwritten(parts.filter { $0 != "-lock" })), at: at)
            }
            // The daemon hears of it at once, or it was closed for a reader just before.
            if dice.chance(0.4) { add(.reader, at: at + dice.between(-0.5, 0.5)) }
            if dice.chance(0.3) { add(dice.pick([.kill, .powerCut, .stop]), at: at + dice.between(0, 60)) }
            if dice.chance(0.3) { faults.append(trouble(around: at, dice)) }
        }
        for _ in 0..<dice.below(3) { add(.wrongNumber, at: dice.between(0, length)) }
        faults.removeAll { $0.at > length || $0.at < 0 }
        faults.sort { $0.at < $1.at }
    }

    /// The disk refuses just then.
    private func trouble(around at: Double, _ dice: Dice) -> Fault {
        let before = dice.between(0, 20)
        return Fault(
            at: max(0, at - before), lasts: before + dice.between(0, 60), kind: Self.disk(dice), seed: dice.next())
    }
}

extension WorldDisk {
    /// - Returns: whether rows may be lost by it, whatever the daemon does.
    func strike(_ fault: FileFault) -> Bool {
        let path = WorldConfiguration.path
        switch fault {
        case .backedUp:
            for part in ["", "-wal"] { backup[part] = contents(of: path + part) }
        case .removed(let parts):
            for part in parts where part != "-lock" { simdisk_unlink(path + part) }
            if parts.contains("-lock") { simdisk_funlock(path) }
            isFileGone = isFileGone || parts != ["-lock"]
        case .replaced(let parts):
            for part in parts { simdisk_plant(path + part, backup[part] ?? [], Int64(backup[part]?.count ?? 0)) }
            isFileGone = isFileGone || !parts.isEmpty
        case .overwritten(let parts):
            for part in parts { simdisk_overwrite(path + part, backup[part] ?? [], Int64(backup[part]?.count ?? 0)) }
            return !parts.isEmpty
        }
        return false
    }

    private func contents(of path: String) -> [UInt8] {
        guard let bytes = simdisk_contents(path) else { return [] }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(simdisk_size(path))))
    }
}
