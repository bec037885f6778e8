import Glibc

/// How far what the kernel shows of a file can be believed to be on the medium.
enum PageCache {
    /// A process before this one may have seen a flush fail.
    case unknown
    /// A write or a flush has failed.
    case suspect
    case trusted
}

/// The files of a queue, and the copies of it that were damaged and set aside: `<path>.corrupt-N`, with their logs.
///
/// A log is never deleted or left without its database: it holds rows that were acknowledged.
struct QueueFiles {
    let path: String

    private static let copiesMax = 2
    private static let parts = ["", "-wal", "-shm"]

    func copy(_ number: Int64) -> String { "\(path).corrupt-\(number)" }

    /// Numbers of the copies, oldest first.
    func copies() -> [Int64] {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        let prefix = path[path.index(after: slash)...] + ".corrupt-"
        guard let handle = opendir(directory) else { return [] }
        defer { closedir(handle) }
        var numbers: Set<Int64> = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasPrefix(prefix) else { continue }
            let number = name.dropFirst(prefix.count).prefix { $0.isNumber }
            if let number = Int64(number), number > 0, number < Int64.max { numbers.insert(number) }
        }
        return numbers.sorted()
    }

    /// Moves database and log out of the way.
    /// - Returns: the number of the copy.
    func setAside() throws(OutboxError) -> Int64 {
        let number = (copies().last ?? 0) + 1
        // The database first: a log without one tells that the rest is still to be moved.
        for part in Self.parts { try move(part, to: number) }
        syncDirectory()
        return number
    }

    /// Ends what a power cut interrupted: a log whose database has gone already. SQLite would delete it.
    func finishSettingAside() throws(OutboxError) {
        guard size(path) < 512, size(path + "-wal") > 0 else { return }
        if exists(path) {
            _ = try setAside()
            return
        }
        let last = copies().last ?? 0
        let number = last > 0 && !exists(copy(last) + "-wal") ? last : last + 1
        for part in Self.parts.dropFirst() { try move(part, to: number) }
        syncDirectory()
    }

    /// Deletes the oldest copies, so that two remain at most, which together are not larger than this.
    func prune(maxBytes: Int64?, keeping needed: Set<Int64>) {
        var numbers = copies()
        func bytes(_ number: Int64) -> Int64 { Self.parts.map { size(copy(number) + $0) }.reduce(0, +) }
        while let oldest = numbers.first {
            let isTooMuch = maxBytes.map { numbers.map(bytes).reduce(0, +) > $0 && numbers.count > 1 } ?? false
            guard numbers.count > Self.copiesMax || isTooMuch else { return }
            // What is still being read goes only for want of room, not of numbers.
            if needed.contains(oldest), !isTooMuch, numbers.count <= Self.copiesMax + needed.count { return }
            for part in Self.parts { unlink(copy(oldest) + part) }
            numbers.removeFirst()
        }
    }

    /// Lets what is read from now on come from the medium.
    ///
    /// Pages that a flush failed to write count as written: the kernel shows them to everybody who reads the file, and
    /// never writes them, so that a commit behind them would be out of reach after a power cut.
    ///
    /// - Throws: when the medium still refuses.
    func forget(_ cache: PageCache) throws(OutboxError) {
        switch cache {
        case .trusted: return
        case .unknown: _ = forget(path + "-wal", isSuspect: false)
        case .suspect:
            for file in [path, path + "-wal"] {
                let reason = forget(file, isSuspect: true)
                if [EIO, ENOSPC, EDQUOT].contains(reason) {
                    throw OutboxError(system: reason, path: path, doing: "flush \(file)")
                }
            }
        }
    }

    /// - Returns: the reason why it could not be flushed; 0 = it was, or is not there.
    private func forget(_ file: String, isSuspect: Bool) -> Int32 {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }
        var reason: Int32 = 0
        if isSuspect {
            // The first flush may tell once more of an error of before, whatever the medium does by now.
            for _ in 0..<2 {
                // The size of the file may have met the same fate, and is only written with a change.
                futimens(descriptor, nil)
                reason = fsync(descriptor) == 0 ? 0 : errno
                if reason == 0 { break }
            }
        }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        return reason
    }

    private func move(_ part: String, to number: Int64) throws(OutboxError) {
        if rename(path + part, copy(number) + part) != 0, errno != ENOENT {
            throw OutboxError(system: errno, path: path, doing: "set the damaged queue aside as \(copy(number))")
        }
    }

    private func syncDirectory() {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let descriptor = open(slash == path.startIndex ? "/" : String(path[..<slash]), O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    func size(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? Int64(info.st_size) : 0
    }
}
