import Glibc
import Queue
import WaypostCore

/// What is wrong with the directory of the queue (mount options, owner, space), and the command that helps.
struct DiskFinding {
    let path: String
    let cause: OutboxError.Cause

    /// To be appended to the error; empty when there is nothing to add.
    var text: String {
        switch cause {
        case .full: space
        case .readOnly, .cannotOpen: mount ?? owner
        case .io, .corrupt: mountPoint.map { "; \(path) is on \($0.source) (\($0.type))" } ?? ""
        case .foreign, .locked, .otherSchema, .refused: ""
        }
    }

    private var directory: String { path.parentDirectory }

    private var space: String {
        var info = statvfs()
        guard statvfs(directory, &info) == 0 else { return "" }
        let mebibytes = info.f_bavail / 1024 * info.f_frsize / 1024
        let place = mountPoint.map { "\($0.path) (\($0.type))" } ?? directory
        if info.f_favail == 0, info.f_files > 0 { return "; no inodes are left on \(place): `df -i \(directory)`" }
        return "; \(mebibytes) MiB are free on \(place): `du -xh \(mountPoint?.path ?? directory) | sort -h | tail`"
    }

    private var mount: String? {
        guard let point = mountPoint, point.options.split(separator: ",").contains("ro") else { return nil }
        return
            "; \(point.path) (\(point.source), \(point.type)) is mounted read-only: `mount -o remount,rw \(point.path)`"
    }

    private var owner: String {
        var info = stat()
        let user = geteuid()
        for name in [path, directory] where stat(name, &info) == 0 {
            guard access(name, name == directory ? W_OK | X_OK : R_OK | W_OK) != 0 else { continue }
            let mode = String(info.st_mode & 0o7777, radix: 8)
            return
                "; \(name) belongs to user \(info.st_uid), mode \(mode), and this is user \(user): `chown \(user) \(name)`"
        }
        return ""
    }

    private struct MountPoint {
        var path: String
        var type: String
        var source: String
        var options: String
    }

    /// The mount that holds the directory, from `/proc/self/mountinfo` (proc(5)).
    private var mountPoint: MountPoint? {
        guard let file = fopen("/proc/self/mountinfo", "re") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 4096)
        var best: MountPoint?
        while fgets(&buffer, Int32(buffer.count), file) != nil {
            let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let fields = String(decoding: bytes, as: UTF8.self).split { $0 == " " || $0 == "\n" }.map(String.init)
            guard fields.count > 8, let dash = fields.firstIndex(of: "-"), fields.count > dash + 2 else { continue }
            let root = fields[4]
            guard root == "/" || directory == root || directory.hasPrefix(root + "/"),
                root.utf8.count >= best?.path.utf8.count ?? 0
            else { continue }
            best = MountPoint(path: root, type: fields[dash + 1], source: fields[dash + 2], options: fields[5])
        }
        return best
    }
}
