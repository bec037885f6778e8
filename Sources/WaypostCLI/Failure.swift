import ArgumentParser
import Daemon
import Glibc
import WaypostCore
import WaypostHost

/// Ends a command with a line on standard error and an exit status of sysexits.h.
func fail(_ message: some CustomStringConvertible, exitCode: Int32) -> ExitCode {
    printError("waypost: \(message)")
    return ExitCode(exitCode)
}

/// The exit status for a file or socket that could not be used. A reader that went away is no failure of ours.
func fail(_ error: SystemError) -> ExitCode {
    switch error.code {
    case EPIPE: ExitCode(EXIT_SUCCESS)
    case ENOENT, EISDIR: fail(error, exitCode: 66)  // EX_NOINPUT
    case EACCES, EPERM: fail(error, exitCode: Denial.exitStatus)
    default: fail(error, exitCode: 74)  // EX_IOERR
    }
}

/// How a user is told that a socket or file is not for everyone.
enum Denial {
    /// EX_NOPERM
    static let exitStatus: Int32 = 77

    /// One line, without a program's name: what is wrong and what to do.
    static func words(for path: String) -> String {
        let group = group(of: path).map { ", or join group \($0) and log in again" } ?? ""
        return "not permitted: use sudo\(group)"
    }

    /// Whether this user may not read what is there.
    static func forbidsReading(_ path: String) -> Bool { access(path, R_OK) != 0 && errno == EACCES }

    /// The group that a file is for, or the nearest folder that can be looked at; nil where being in it does not help.
    private static func group(of path: String) -> String? {
        var info = stat()
        var path = path
        while stat(path, &info) != 0 {
            guard path != path.parentDirectory else { return nil }
            path = path.parentDirectory
        }
        var groups = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        groups.removeLast(groups.count - max(0, Int(getgroups(Int32(groups.count), &groups))))
        guard info.st_gid != 0, !groups.contains(info.st_gid), info.st_gid != getegid() else { return nil }
        return getgrgid(info.st_gid).map { String(cString: $0.pointee.gr_name) }
    }
}

/// Prints a line for people: values from outside neither steer the terminal nor begin a line of their own.
func printLine(_ line: String) { printLine(line, colour: nil) }

/// - Parameter colour: as a terminal is asked for it, around the line; nil = none.
func printLine(_ line: String, colour: String?) {
    let shown = line.visible(bytesMax: 32_768)
    print(colour.map { "\u{1B}[\($0)m\(shown)\u{1B}[0m" } ?? shown)
}

/// Prints text in the form in which another program reads it: as it is, unless a terminal shows it.
func printText(_ text: String, terminator: String = "\n") {
    print(isatty(STDOUT_FILENO) == 1 ? text.visibleLines : text, terminator: terminator)
}

/// Prints JSON of the daemon or the queue, in which only control characters below 0x20 are escaped so far.
func printJSON(_ json: String) { print(json.visibleJSON) }

func printError(_ text: String) {
    let line = Array((text.visible(bytesMax: 32_768, keepingLineFeeds: true) + "\n").utf8)
    _ = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
}

/// Flushes the output, and fails when that fails: a full disk must not look like an empty queue.
func finishOutput() throws {
    if fflush(nil) != 0 { throw fail(SystemError("standard output")) }
}
