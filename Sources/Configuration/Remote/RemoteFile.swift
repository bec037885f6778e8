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
        let bytes: [UInt8]
        do throws(RegularFile.Failure) {
            let file = try RegularFile(path, followsLinks: false)
            guard let all = readAll(file.descriptor, bytesMax: RemoteMemory.bytesMax) else {
                return .unusable("cannot be read")
            }
            bytes = all
        } catch {
            switch error {
            case .system(ENOENT), .system(ENOTDIR): return .none
            case .system(let code): return .unusable("cannot be opened: \(errorText(code))")
            case .notRegular: return .unusable("is not a regular file")
            }
        }
        guard let memory = RemoteMemory(bytes, at: now) else { return .unusable("is damaged, or of another version") }
        return .memory(memory)
    }
}
