import Agent
import ArgumentParser
import EventLoop
import Glibc
import Positioning

/// The user that owns a queue.
enum QueueOwner {
    /// Root looks at the queue of another user, or changes it, with the rights of that user.
    ///
    /// Whoever owns the directory chooses what each name in it refers to. Acting as the owner, nothing can be read,
    /// written or made that the owner could not, and what is made belongs to the user that the daemon runs as.
    ///
    /// - Throws: what `body` throws, and `ExitCode` where the rights cannot be had.
    static func acting<Value>(on path: String, _ body: () throws -> Value) throws -> Value {
        guard geteuid() == 0, let owner = owner(of: path), owner.user != 0 else { return try body() }
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
            let error = SystemError("take the rights of user \(owner.user), whose queue \(path) is")
            becomeRoot()
            throw fail(error)
        }
        return try body()
    }

    /// The owner of the directory, or where that is root of the file; nil where there is none.
    private static func owner(of path: String) -> (user: uid_t, group: gid_t)? {
        var info = stat()
        guard stat(path.parentDirectory, &info) == 0 else { return nil }
        if info.st_uid == 0, lstat(path, &info) != 0 { return nil }
        // A directory keeps the group of whoever made it, which may be root's.
        return (info.st_uid, getpwuid(info.st_uid)?.pointee.pw_gid ?? info.st_gid)
    }
}
