import Daemon
import Glibc
import WaypostCore
import WaypostHost

/// A file that a configuration, or the command line, names.
struct NamedPath {
    var path: String
    /// The user who wrote the configuration and could name the files of others; nil for root and for the user of this process.
    var author: FileOwner?

    /// Does something with the file: as the author, else as the owner of the file.
    func acting<Value>(_ body: () throws -> Value) throws -> Value {
        try FileOwner.acting(as: author ?? FileOwner(of: path), body)
    }
}

/// A user other than root who decides what stands at a path. Root touches such a file only with the rights of that user.
///
/// Acting as the owner, nothing can be read, written or made that the owner could not, and what is made belongs to the user
/// that the daemon runs as.
struct FileOwner {
    let user: uid_t
    let group: gid_t

    /// - Returns: nil where root decides, where nothing is there, and for a process that is not root's.
    ///
    /// Whoever made a link on the way decides; else the owner of the last folder on the way that is not root's, who can put
    /// something else there; else the owner of the file.
    init?(of path: String) {
        guard geteuid() == 0 else { return nil }
        var (link, folder, file): (stat?, stat?, stat?)
        // A part that is missing ends the walk, and whoever owns what is there could make it.
        _ = try? PathWalk(path, to: "look at") { part in
            guard part.status.st_uid != 0 else { return }
            switch part.status.st_mode & S_IFMT {
            case S_IFLNK: link = link ?? part.status
            case S_IFDIR: folder = part.status
            default: file = part.status
            }
        }
        guard let owner = link ?? folder ?? file else { return nil }
        user = owner.st_uid
        // A directory keeps the group of whoever made it, which may be root's.
        group = getpwuid(owner.st_uid)?.pointee.pw_gid ?? owner.st_gid
    }

    /// - Parameter owner: nil = as this process is.
    /// - Throws: what `body` throws, and `SystemError` where the rights cannot be had.
    static func acting<Value>(as owner: FileOwner?, _ body: () throws -> Value) throws -> Value {
        guard let owner else { return try body() }
        let group = getegid()
        var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        groups.removeLast(groups.count - max(0, Int(getgroups(Int32(groups.count), &groups))))
        func becomeRoot() {
            _ = seteuid(0)
            _ = setegid(group)
            _ = setgroups(groups.count, groups)
        }
        defer { becomeRoot() }
        guard setgroups(0, nil) == 0, setegid(owner.group) == 0, seteuid(owner.user) == 0 else {
            let error = SystemError("take the rights of user \(owner.user)")
            becomeRoot()
            throw error
        }
        return try body()
    }
}
