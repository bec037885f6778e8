// A file that takes the place of whatever lies at the path: `<path>.part` while it is written, `<path>.new` once it is whole.
extension QueueFiles {
    var part: String { path + ".part" }
    private var new: String { path + ".new" }

    /// The part is whole: from now on it is the queue, whatever lies at the path.
    func finishPart() throws(OutboxError) {
        let reason = medium.rename(part, to: new)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "rename \(part)") }
        try flushNames()
    }

    /// Puts a new file in place, also one that an earlier process has left. What lies at the path is set aside, unless it is empty.
    ///
    /// - Returns: the number of that copy; nil = there is none.
    @discardableResult
    func finishReplacing() throws(OutboxError) -> Int64? {
        removePart()
        guard medium.exists(new) else { return nil }
        // Nothing that this has made.
        guard medium.mark(new)?.isRegular != false else {
            medium.remove(new)
            return nil
        }
        var copy: Int64?
        if ["", "-wal"].contains(where: { medium.size(path + $0) > 0 }) {
            copy = try setAside()
        } else {
            for part in Self.parts { medium.remove(path + part) }
        }
        let reason = medium.rename(new, to: path)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "rename \(new)") }
        return copy
    }

    /// Puts a log in the place of another one, which is set aside, unless it is empty.
    ///
    /// - Parameter copy: makes the log at a path, and returns `errno`; nil = there is to be none.
    func replaceLog(by copy: ((String) -> Int32)?) throws(OutboxError) {
        let part = part + "-wal"
        var reason = copy?(part) ?? 0
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "write \(part)") }
        if medium.size(path + "-wal") > 0 { try move("-wal", to: (copies().last ?? 0) + 1) }
        // The index in shared memory is that of the other log.
        medium.remove(path + "-shm")
        if copy != nil { reason = medium.rename(part, to: path + "-wal") }
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "rename \(part)") }
    }

    func removePart() {
        for suffix in Self.parts { medium.remove(part + suffix) }
    }

    func flushNames() throws(OutboxError) {
        let reason = medium.flush(directory: path.parentDirectory)
        if reason != 0 { throw OutboxError(system: reason, path: path, doing: "flush \(path.parentDirectory)") }
    }
}
