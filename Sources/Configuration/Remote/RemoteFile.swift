import Glibc
import Positioning
import Remote

/// Where settings from afar and their trial are kept: one file beside the queue, replaced as a whole.
///
/// It is not in the queue: settings are read before the queue is opened, by `waypost check` too, and outlive a queue that is
/// damaged or that works in memory while the disk refuses.
package struct RemoteFile: Sendable {
    package let path: String

    /// - Parameter outbox: of the file, which no settings from afar can change.
    package init(beside outbox: OutboxConfig) { path = outbox.directory + "/remote.state" }

    package enum Contents: Sendable {
        case none
        case memory(RemoteMemory)
        /// It is there, but cannot be used: damaged, of another version, or not readable by this user.
        case unusable(String)
    }

    /// - Parameter now: boot clock, on which budgets and the trial go on.
    package func contents(at now: EventTime) -> Contents {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else {
            let code = errno
            return code == ENOENT || code == ENOTDIR ? .none : .unusable("cannot be opened: \(errorText(code))")
        }
        defer { close(descriptor) }
        guard let bytes = readAll(descriptor, bytesMax: RemoteMemory.bytesMax) else {
            return .unusable("cannot be read")
        }
        guard let memory = RemoteMemory(bytes, at: now) else { return .unusable("is damaged, or of another version") }
        return .memory(memory)
    }
}
