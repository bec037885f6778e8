import CLinux
import Glibc
import WaypostCore
import WaypostHost

/// Where a command writes: standard output, or a file that appears whole or not at all.
///
/// The content comes together in a file without a name, which takes the name with ``commit()``. Without that, what was there
/// before stays as it was, and nothing is left behind, however the process ends. A new file has mode 0600, since it contains
/// positions.
///
/// A link is followed only if it and its folder are out of the reach of other users: a command that root runs must not
/// write where one of them points it to. The folder is opened once, and all names are looked up in it.
package final class OutputFile {
    /// Where to write; valid as long as this object.
    package let descriptor: Int32
    /// Where the file is to appear; nil where it is written in place.
    private var target: Target?

    private struct Target {
        var path: String
        var place: PathWalk
        var name: String
        /// Nothing had the name when the command began: what has it at the end is not overwritten.
        var isNew: Bool
        /// The name of the content where a file system knows no files without a name; nil = it has none yet.
        var draft: String?
    }

    private static let namesMax = 100

    /// - Parameters:
    ///   - path: nil and `-` are standard output. A device or a pipe is written in place, and so is an open file that is named by its
    ///     descriptor (`/dev/stdout`), at its end.
    ///   - replaces: an existing file is replaced; else it is an error.
    /// - Throws: `SystemError` when the file cannot be made, EPERM where a link or pipe is not to be trusted.
    package init(path: String?, replaces: Bool = true) throws(SystemError) {
        guard let path, path != "-" else {
            descriptor = STDOUT_FILENO
            return
        }
        let place = try PathWalk(path, to: "create") { (part) throws(SystemError) in
            guard !part.isLinkOfOthers else {
                throw SystemError(
                    "create \(path): \(part.path) is a link that another user can set; name the file itself",
                    code: EPERM)
            }
        }
        if place.status != nil, !replaces { throw SystemError("create \(path)", code: EEXIST) }
        if let status = place.status, status.st_mode & S_IFMT != S_IFREG || place.name == nil {
            descriptor = try Self.inPlace(place, status, path)
            return
        }
        guard let name = place.name else { throw SystemError("create \(path)", code: EISDIR) }
        var target = Target(path: path, place: place, name: name, isNew: place.status == nil)
        var file = waypost_open_unnamed(place.folder)
        if file < 0, errno == EOPNOTSUPP || errno == EISDIR {
            target.draft = try Self.draft(of: target) { name in
                file = openat(place.folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
                return file >= 0
            }
        }
        descriptor = file
        guard file >= 0 else { throw SystemError("create \(path)") }
        self.target = target
    }

    /// The content is complete: gives the file its name. Nothing where it is written in place.
    /// - Throws: `SystemError` when it cannot be brought to the disk, or named, EEXIST where a file of that name has come meanwhile;
    ///   then nothing has changed.
    package func commit() throws(SystemError) {
        guard let target else { return }
        guard fsync(descriptor) == 0 else { throw SystemError("write \(target.path)") }
        if target.isNew { try appear(target) } else { try replace(target) }
        self.target = nil
    }

    deinit {
        if let target, let draft = target.draft { unlinkat(target.place.folder, draft, 0) }
        if descriptor != STDOUT_FILENO { close(descriptor) }
    }

    private func appear(_ target: Target) throws(SystemError) {
        let folder = target.place.folder
        if let draft = target.draft {
            if waypost_rename_new(folder, draft, target.name) == 0 { return }
            guard errno == EINVAL || errno == ENOSYS, linkat(folder, draft, folder, target.name, 0) == 0 else {
                throw SystemError("create \(target.path)")
            }
            unlinkat(folder, draft, 0)
        } else if link(as: target.name, in: folder) != 0 {
            throw SystemError("create \(target.path)")
        }
    }

    /// A link does not replace a file, a new name does.
    private func replace(_ target: Target) throws(SystemError) {
        let folder = target.place.folder
        if target.draft == nil {
            self.target?.draft = try Self.draft(of: target) { link(as: $0, in: folder) == 0 }
        }
        guard let draft = self.target?.draft, renameat(folder, draft, folder, target.name) == 0 else {
            throw SystemError("write \(target.path)")
        }
    }

    private func link(as name: String, in folder: Int32) -> Int32 {
        linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", folder, name, AT_SYMLINK_FOLLOW)
    }

    /// - Parameter make: makes a file of a name that no other file has; false and errno where it cannot.
    /// - Returns: the name.
    private static func draft(of target: Target, _ make: (String) -> Bool) throws(SystemError) -> String {
        for _ in 0..<namesMax {
            let name = "\(target.name).\(String(UInt32.random(in: .min ... .max), radix: 36))"
            if make(name) { return name }
            guard errno == EEXIST else { break }
        }
        throw SystemError("create \(target.path)")
    }

    private static func inPlace(_ place: PathWalk, _ status: stat, _ path: String) throws(SystemError) -> Int32 {
        let kind = status.st_mode & S_IFMT
        guard kind != S_IFDIR else { throw SystemError("write \(path)", code: EISDIR) }
        // Whoever made the pipe reads what is written to it.
        if kind == S_IFIFO, place.name != nil, status.st_uid != 0, status.st_uid != geteuid() {
            throw SystemError("write \(path), a pipe of another user", code: EPERM)
        }
        let file = open(place.pathOfFile, O_WRONLY | O_CLOEXEC | O_NOCTTY | (kind == S_IFREG ? O_APPEND : 0))
        guard file >= 0 else { throw SystemError("write \(path)") }
        return file
    }
}
