import CLinux
import Glibc
import WaypostCore

/// Follows a path part by part, each opened below the descriptor of the folder before it: the folder and the file that were
/// looked at are those that are used, whatever anyone renames or links meanwhile.
///
/// Nothing is opened on the way for reading or writing, so that no device acts and no pipe waits.
package final class PathWalk {
    /// A folder, a link or the last part of the path.
    package struct Part {
        package let path: String
        package let status: stat
        /// The status of the folder that contains it.
        package let folder: stat

        package var isLink: Bool { status.st_mode & S_IFMT == S_IFLNK }

        /// Whether a user other than root and the user of this process made this link, or can replace it.
        package var isLinkOfOthers: Bool {
            guard isLink else { return false }
            let trusted: [uid_t] = [0, geteuid()]
            // An access control list shows in the bits of the group.
            return !trusted.contains(status.st_uid) || !trusted.contains(folder.st_uid) || folder.st_mode & 0o022 != 0
        }
    }

    private static let linksMax = 40
    private static let procMagic: Int64 = 0x9fa0

    /// The folder that the path leads to, or that contains the file, opened with `O_PATH`.
    package private(set) var folder: Int32
    /// Name of the file in the folder; nil where it has none: a folder itself, or an open file by its number in `/proc`.
    package private(set) var name: String?
    /// What the path leads to, opened with `O_PATH`; -1 = nothing is there, and `name` is free.
    package private(set) var file: Int32 = -1
    /// Of `file`; nil = nothing is there.
    package private(set) var status: stat?

    /// - Parameter pass: is called with each part in the order of the walk, the target of a link after the link; may refuse one.
    /// - Throws: what `pass` throws, and `SystemError` with `action` where a part is missing or may not be searched. That nothing has
    ///   the last name is no error.
    package init(
        _ path: String, to action: String, _ pass: (Part) throws(SystemError) -> Void = { _ in }
    ) throws(SystemError) {
        folder = waypost_open_path(AT_FDCWD, path.hasPrefix("/") ? "/" : ".", true)
        guard folder >= 0 else { throw SystemError("\(action) \(path)") }
        guard !path.isEmpty else { throw SystemError(action, code: ENOENT) }
        var rest = Self.parts(path)
        var isFolder = path.hasSuffix("/")
        var walked = path.hasPrefix("/") ? "/" : ""
        var links = 0
        while let part = rest.popLast() {
            if file >= 0 { Glibc.close(file) }
            file = waypost_open_path(folder, part, false)
            (name, status) = (part, nil)
            let whole = walked + part
            guard file >= 0 else {
                if errno == ENOENT, rest.isEmpty, !isFolder { return }
                throw SystemError("\(action) \(path)")
            }
            var (own, around) = (stat(), stat())
            guard fstat(file, &own) == 0, fstat(folder, &around) == 0 else { throw SystemError("\(action) \(path)") }
            try pass(Part(path: whole, status: own, folder: around))
            if own.st_mode & S_IFMT == S_IFLNK {
                links += 1
                guard links <= Self.linksMax else { throw SystemError("\(action) \(path)", code: ELOOP) }
                if waypost_filesystem_magic(file) == Self.procMagic {
                    // The text of such a link may be no path: a pipe, or a file without a name. The kernel made it, and follows it.
                    Glibc.close(file)
                    file = waypost_open_path(folder, part, true)
                    name = nil
                    guard file >= 0, fstat(file, &own) == 0 else { throw SystemError("\(action) \(path)") }
                } else {
                    let target = try Self.target(of: file, "\(action) \(path)")
                    if target.hasPrefix("/") {
                        try enter(waypost_open_path(AT_FDCWD, "/", true), "\(action) \(path)")
                        walked = "/"
                    }
                    if rest.isEmpty, target.hasSuffix("/") { isFolder = true }
                    rest += Self.parts(target)
                    continue
                }
            }
            status = own
            if own.st_mode & S_IFMT == S_IFDIR {
                try enter(dup(file), "\(action) \(path)")
                walked = whole + "/"
                name = nil
            } else if !rest.isEmpty || isFolder {
                throw SystemError("\(action) \(path)", code: ENOTDIR)
            }
        }
    }

    deinit {
        if file >= 0 { Glibc.close(file) }
        if folder >= 0 { Glibc.close(folder) }
    }

    /// The path by which this process can open or connect to `file` itself.
    package var pathOfFile: String { "/proc/self/fd/\(file)" }

    private func enter(_ descriptor: Int32, _ action: String) throws(SystemError) {
        guard descriptor >= 0 else { throw SystemError(action) }
        Glibc.close(folder)
        folder = descriptor
    }

    /// The last one first.
    private static func parts(_ path: String) -> [String] {
        path.split(separator: "/").filter { $0 != "." }.map(String.init).reversed()
    }

    private static func target(of link: Int32, _ action: String) throws(SystemError) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { readlinkat(link, "", $0, buffer.count) } ?? -1
        }
        guard count > 0 else { throw SystemError(action) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
