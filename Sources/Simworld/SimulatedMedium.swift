import CSimDisk
import Glibc
import Outbox

/// The simulated disk as a queue sees it. There is one for the process.
struct SimulatedMedium: QueueMedium {
    /// Nanoseconds of the boot clock of the world; the world sets it.
    private let clock: @Sendable () -> Int64
    /// A descriptor of the world that no reader ever makes ready.
    private static let readers: Int32 = 3

    init(clock: @escaping @Sendable () -> Int64) { self.clock = clock }

    var vfs: String? { String(cString: simdisk_vfs) }
    var vfsWithoutLocks: String { String(cString: simdisk_vfs_without_locks) }
    var now: Int64 { clock() }
    var failedReads: FailedReads { FailedReads(count: Int(simdisk_counter(Int32(simdisk_failed_reads))), reason: EIO) }

    func exists(_ path: String) -> Bool { simdisk_exists(path) }
    func size(_ path: String) -> Int64 { simdisk_size(path) }

    func names(in directory: String) -> [String] {
        var names: [String] = []
        while let name = simdisk_name(Int32(names.count)) {
            names.append(String(cString: name).split(separator: "/").last.map(String.init) ?? "")
        }
        return names
    }

    func create(_ path: String) -> Int32 { simdisk_create(path) }
    func rename(_ path: String, to other: String) -> Int32 { simdisk_rename(path, other) }
    func remove(_ path: String) { _ = simdisk_remove(path) }
    func flush(directory: String) { _ = simdisk_sync_directory() }
    func dropFromPageCache(_ path: String, isSuspect: Bool) -> Int32 { simdisk_forget(path, isSuspect) }

    func space(of path: String) -> (available: Int64, size: Int64)? {
        let available = simdisk_available()
        return (available, max(available, simdisk_get(Int32(simdisk_capacity))))
    }

    func lock(_ path: String) throws(OutboxError) -> AnyObject {
        switch simdisk_flock(path) {
        case 0: break
        case EWOULDBLOCK: throw OutboxError(.locked(pid: nil), path: path, message: "")
        default: throw OutboxError(.readOnly, path: path, message: "open \(path)-lock")
        }
        return Lock(path: path, life: simdisk_life())
    }

    func openWatch() -> Int32 { Self.readers }
    func watch(_ path: String, by descriptor: Int32) -> Bool { true }
    func drain(_ descriptor: Int32) {}
    func closeWatch(_ descriptor: Int32) {}

    private final class Lock {
        let path: String
        /// A lock of a process that was killed is gone already.
        let life: UInt64

        init(path: String, life: UInt64) {
            self.path = path
            self.life = life
        }

        deinit { if simdisk_life() == life { simdisk_funlock(path) } }
    }
}
