import Agent
import ArgumentParser
import EventLoop
import Glibc
import Positioning

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
    case EACCES, EPERM: fail(error, exitCode: 77)  // EX_NOPERM
    default: fail(error, exitCode: 74)  // EX_IOERR
    }
}

/// Prints a line for people: values from outside neither steer the terminal nor begin a line of their own.
func printLine(_ line: String) { print(line.visible(bytesMax: 32_768)) }

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
