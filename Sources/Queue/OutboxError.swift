/// Why the queue could not do something, where, and what to do about it.
package struct OutboxError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Cause: Hashable, Sendable {
        /// No space on the file system. Nothing of the commit was stored.
        case full
        /// Read-only file system or file, or no permission. Nothing of the commit was stored.
        case readOnly
        /// The medium failed. Whether the commit was stored shows when the file is opened again.
        case io
        /// Not a database, or a damaged one.
        case corrupt
        /// A database of another program.
        case foreign
        /// Another process has it open; its id when it is known.
        case locked(pid: Int32?)
        /// Written by another version of the program: a newer one, one before the first release (`found` is below
        /// `Schema.firstVersion`), or an older one where the file is only read.
        case otherSchema(found: Int, known: Int)
        case cannotOpen
        /// SQLite refused a statement: a fault of the program.
        case refused
    }

    package var cause: Cause
    package var path: String
    /// Extended SQLite result code, or 0.
    package var code: Int32
    /// SQLite's or the system's words.
    package var message: String
    /// The statement, without values.
    package var sql: String?

    package init(_ cause: Cause, path: String, code: Int32 = 0, message: String, sql: String? = nil) {
        self.cause = cause
        self.path = path
        self.code = code
        self.message = message
        self.sql = sql
    }

    /// Whether another try may succeed although no one changes the file: the disk is the cause.
    var isOfDisk: Bool {
        switch cause {
        case .full, .readOnly, .io, .cannotOpen, .corrupt, .refused: true
        // With a code of SQLite, a program that reads the queue holds the lock, and not another daemon.
        case .locked: code != 0
        case .foreign, .otherSchema: false
        }
    }

    /// What the operator can do.
    package var hint: String {
        switch cause {
        case .full: "free some space, or lower [outbox] max_bytes"
        case .readOnly: "check owner and mode of the state directory, and `mount` for a read-only file system"
        case .io: "check the medium: `dmesg` reports failing cards and disks"
        case .corrupt: "check power supply and card; `dmesg` reports failing ones"
        case .foreign: "set [outbox] path to a file of its own, or move this one away"
        case .locked: "stop the other instance first; its lock goes away by itself"
        case .otherSchema(let found, let known) where found > known:
            "install the newer version again, or move the file away"
        case .otherSchema(let found, _) where found < Schema.firstVersion:
            "let the version that wrote it send what waits, then move the file away"
        case .otherSchema: "start the daemon, which converts it"
        case .cannotOpen: "check that the state directory exists and belongs to the user of the daemon"
        case .refused: "report this as a bug"
        }
    }

    package var description: String {
        var text = "outbox \(path): "
        switch cause {
        case .full: text += "no space left"
        case .readOnly: text += "not writable"
        case .io: text += "input/output error"
        case .corrupt: text += "damaged"
        case .foreign: text += "not a queue"
        case .locked(let pid): text += pid.map { "in use by process \($0)" } ?? "in use by another process"
        case .otherSchema(let found, let known) where found > known:
            text += "schema \(found) is newer than \(known), which this version knows"
        case .otherSchema(let found, _) where found < Schema.firstVersion:
            text += "schema \(found) is of a version before the first release, which this version does not read"
        case .otherSchema(let found, let known):
            text += "schema \(found) is older than \(known), which this version reads"
        case .cannotOpen: text += "cannot be opened"
        case .refused: text += "statement refused"
        }
        if !message.isEmpty { text += ": \(message)" }
        if code != 0 { text += " (SQLite \(code))" }
        return "\(text); \(hint)"
    }
}
