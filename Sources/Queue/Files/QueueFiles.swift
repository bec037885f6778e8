import Glibc
import WaypostCore

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
    var medium: any QueueMedium = SystemMedium()

    private static let copiesMax = 2
    static let parts = ["", "-wal", "-shm"]

    func copy(_ number: Int64) -> String { "\(path).corrupt-\(number)" }

    /// Numbers of the copies, oldest first.
    func copies() -> [Int64] {
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let prefix = path[path.index(after: slash)...] + ".corrupt-"
        var numbers: Set<Int64> = []
        for name in medium.names(in: directory) where name.hasPrefix(prefix) {
            let number = name.dropFirst(prefix.count).prefix { $0.isNumber }
            if let number = Int64(number), number > 0, number < Int64.max { numbers.insert(number) }
        }
        return numbers.sorted()
    }

    /// Moves database and log out of the way.
    /// - Returns: the number of the copy.
    func setAside() throws(OutboxError) -> Int64 {
        let number = (copies().last ?? 0) + 1
        // The database first: a log without one means that the rest is still to be moved.
        for part in Self.parts { try move(part, to: number) }
        medium.flush(directory: directory)
        return number
    }

    /// Finishes a move that a power cut interrupted: a log whose database has moved already. SQLite would delete it.
    func finishSettingAside() throws(OutboxError) {
        guard medium.hasLogAlone(path) else { return }
        // A link that leads nowhere is in its place: it is for a person to remove, and the log stays beside it.
        guard medium.mark(path)?.isRegular != false else { return }
        if medium.exists(path) {
            _ = try setAside()
            return
        }
        let last = copies().last ?? 0
        let number = last > 0 && !medium.exists(copy(last) + "-wal") ? last : last + 1
        for part in Self.parts.dropFirst() { try move(part, to: number) }
        medium.flush(directory: directory)
    }

    /// Deletes copies whose rows are all back or given up, but for the newest two copies.
    func prune(finished: Set<Int64>) {
        for number in copies().dropLast(Self.copiesMax) where finished.contains(number) { remove(number) }
    }

    /// The oldest copy, if all of them together have more bytes than this and it is not the only one.
    func oldest(ifMoreThan maxBytes: Int64) -> Int64? {
        let numbers = copies()
        guard numbers.count > 1, numbers.map(bytes).reduce(0, +) > maxBytes else { return nil }
        return numbers.first
    }

    func bytes(of number: Int64) -> Int64 { Self.parts.map { medium.size(copy(number) + $0) }.reduce(0, +) }

    func remove(_ number: Int64) { for part in Self.parts { medium.remove(copy(number) + part) } }

    /// Makes reads from now on come from the medium.
    ///
    /// Pages that a flush failed to write count as written: the kernel shows them to all who read the file, and never
    /// writes them, so that commits after them would be lost in a power cut. And a process that was killed between
    /// writing a commit and flushing it left one that a power cut may take back, after batches of it went out.
    ///
    /// - Throws: when the medium still refuses.
    func dropFromPageCache(_ cache: PageCache) throws(OutboxError) {
        switch cache {
        case .trusted: return
        case .unknown:
            if medium.dropFromPageCache(path + "-wal", isSuspect: false) != 0 { try dropFromPageCache(.suspect) }
        case .suspect:
            for file in [path, path + "-wal"] {
                let reason = medium.dropFromPageCache(file, isSuspect: true)
                if [EIO, ENOSPC, EDQUOT].contains(reason) {
                    throw OutboxError(system: reason, path: path, doing: "flush \(file)")
                }
            }
        }
    }

    func move(_ part: String, to number: Int64) throws(OutboxError) {
        let reason = medium.rename(path + part, to: copy(number) + part)
        if reason != 0, reason != ENOENT {
            throw OutboxError(system: reason, path: path, doing: "set the damaged queue aside as \(copy(number))")
        }
    }

    private var directory: String { path.parentDirectory }
}

extension QueueMedium {
    /// The database is gone, or shorter than a page, and its log is there.
    func hasLogAlone(_ path: String) -> Bool {
        !hasPage(path) && size(path + "-wal") > 0
    }

    /// A database or a log that is shorter than a page has nothing.
    func hasPage(_ path: String) -> Bool { size(path) >= Int64(DatabaseFile.pageSize) }
}
