import Glibc
import Remote
import WaypostCore

/// Where settings from afar and their trial are kept: one file beside the queue, replaced as a whole.
///
/// It is not in the queue: settings are read before the queue is opened, by `waypost check` too, and outlive a queue that is
/// damaged or that works in memory while the disk refuses. The highest version that was accepted is in a second file as well: a
/// signed document of before must not count as new because the first one is damaged.
package struct RemoteFile: Sendable {
    package let path: String
    package let seenPath: String

    /// - Parameter outbox: of the file, which no settings from afar can change.
    package init(beside outbox: OutboxConfig) { self.init(path: outbox.directory + "/remote.state") }

    package init(path: String) { (self.path, seenPath) = (path, path.parentDirectory + "/remote.version") }

    package enum Contents: Sendable {
        case none
        case memory(RemoteMemory)
        /// It is there, but cannot be used: damaged, of another version, or not readable by this user.
        /// - Parameter seen: the highest version that was accepted, from its second copy; nil = that cannot be used either.
        case unusable(String, seen: Int64?)
    }

    /// The highest version that was accepted, from the second file; nil where that cannot be used.
    package var seen: Int64? {
        guard let file = try? RegularFile(seenPath, followsLinks: false) else { return nil }
        return readAll(file.descriptor, bytesMax: 64).flatMap(RemoteMemory.seen)
    }

    /// - Parameter now: boot clock, on which budgets and the trial go on.
    package func contents(at now: EventTime) -> Contents {
        let bytes: [UInt8]
        do throws(RegularFile.Failure) {
            let file = try RegularFile(path, followsLinks: false)
            guard let all = readAll(file.descriptor, bytesMax: RemoteMemory.bytesMax) else {
                return .unusable("cannot be read", seen: seen)
            }
            bytes = all
        } catch {
            switch error {
            case .system(ENOENT), .system(ENOTDIR): return withoutState
            case .system(let code): return .unusable("cannot be opened: \(errorText(code))", seen: seen)
            case .notRegular: return .unusable("is not a regular file", seen: seen)
            }
        }
        guard var memory = RemoteMemory(bytes, at: now) else {
            return .unusable("is damaged, or of another version", seen: seen)
        }
        memory.settings.recall(seen: seen ?? 0)
        return .memory(memory)
    }

    /// Nothing was stored yet, unless the second file says otherwise.
    private var withoutState: Contents {
        var status = stat()
        guard lstat(seenPath, &status) == 0 else { return .none }
        return .unusable("is missing", seen: seen)
    }
}
