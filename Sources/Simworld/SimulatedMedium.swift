import CSimDisk
import Glibc
import Queue

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
    var failedReads: FailedReads {
        FailedReads(
            count: Int(simdisk_counter(Int32(simdisk_failed_reads))), reason: EIO,
            run: Int(simdisk_counter(Int32(simdisk_failed_run))))
    }

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
    func flush(directory: String) -> Int32 { simdisk_sync_directory() }

    func mark(_ path: String) -> FileMark? {
        var identity = simdisk_identity()
        return simdisk_mark(path, &identity) ? FileMark(identity) : nil
    }

    func hold(_ path: String) throws(OutboxError) -> any HeldFile {
        guard let file = simdisk_hold(path) else {
            throw OutboxError(.cannotOpen, path: path, message: "open: there is none")
        }
        return Held(file: file, life: simdisk_life())
    }

    func dropFromPageCache(_ path: String, isSuspect: Bool) -> Int32 { simdisk_forget(path, isSuspect) }

    func space(of path: String) -> (available: Int64, size: Int64)? {
        let available = simdisk_available()
        return (available, max(available, simdisk_get(Int32(simdisk_capacity))))
    }

    func lock(_ path: String) throws(OutboxError) -> any QueueLock {
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

    private final class Held: HeldFile {
        let file: OpaquePointer
        let life: UInt64
        private var isLocked = false

        init(file: OpaquePointer, life: UInt64) {
            self.file = file
            self.life = life
        }

        deinit { simdisk_release(file, life, isLocked) }

        var mark: FileMark? { FileMark(simdisk_identify(file)) }

        func lock() -> Bool {
            if !isLocked { isLocked = simdisk_lock_file(file) }
            return isLocked
        }

        func copy(to path: String) -> Int32 { simdisk_copy(file, path) }
    }

    private final class Lock: QueueLock {
        let isForReading = false
        // A power cut may take it.
        let note = ""
        func leave(_ note: String) {}
        var isInPlace: Bool { simdisk_is_flocked(path) }
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

extension FileMark {
    fileprivate init(_ identity: simdisk_identity) {
        self.init(
            device: 1, inode: identity.number, size: identity.size, modified: Int64(bitPattern: identity.version))
    }
}
