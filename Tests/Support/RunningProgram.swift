import Foundation

/// A program of ours that runs beside the test, with its output kept.
package final class RunningProgram {
    private let process = Process()
    private let output: URL

    /// - Parameter directory: where its output is kept.
    package convenience init(
        _ name: String, _ arguments: [String], in directory: URL, environment: [String: String] = [:]
    ) throws {
        try self.init(
            BuiltProducts.executable(name), name: name, arguments, in: directory, environment: environment)
    }

    /// A line for the shell, in which `$waypost` is our program.
    package convenience init(shell line: String, in directory: URL) throws {
        try self.init(
            URL(fileURLWithPath: "/bin/sh"), name: "shell", ["-c", line], in: directory,
            environment: ["waypost": BuiltProducts.executable("waypost").path])
    }

    private init(
        _ executable: URL, name: String, _ arguments: [String], in directory: URL, environment: [String: String]
    ) throws {
        output = directory.appendingPathComponent("\(name)-\(UUID().uuidString).log")
        try Data().write(to: output)
        let handle = try FileHandle(forWritingTo: output)
        process.executableURL = executable
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = handle
        process.standardError = handle
        try process.run()
        // It has its own; the process object keeps this one for ever.
        try handle.close()
    }

    /// The limits of waiting are those of an idle machine: one that runs all tests at once is given more.
    package static let slack = 4.0

    package var text: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }
    package var isRunning: Bool { process.isRunning }
    package var processID: Int32 { process.processIdentifier }

    /// Waits for the end; a program that outlives `seconds` is killed, which is a failure of the test.
    /// - Returns: exit status, or the negative number of the signal that ended it.
    package func exitStatus(within seconds: Double) throws -> Int32 {
        guard ended(within: seconds * Self.slack) else {
            kill(SIGKILL)
            throw Unfinished(text: text)
        }
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// Whether it ended by itself within `seconds`.
    package func ended(within seconds: Double) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        while process.isRunning, Date() < deadline { usleep(2000) }
        return !process.isRunning
    }

    package func kill(_ signal: Int32) {
        Foundation.kill(process.processIdentifier, signal)
        if signal == SIGKILL { process.waitUntilExit() }
    }

    /// Ends a daemon as its service manager does, which has to end well.
    package func stop(within seconds: Double = 10) throws {
        kill(SIGTERM)
        guard try exitStatus(within: seconds) == 0 else { throw Unfinished(text: text) }
    }

    /// Waits until its output holds `words`, so often in all.
    package func waitFor(_ words: String, times: Int = 1, within seconds: Double = 20) throws {
        var size: Int64 = -1
        let isThere = eventually(within: seconds, every: 20_000) { () -> Bool? in
            let isRunning = process.isRunning
            var entry = stat()
            guard stat(output.path, &entry) == 0, Int64(entry.st_size) != size else { return isRunning ? nil : false }
            size = Int64(entry.st_size)
            return count(of: words) >= times ? true : isRunning ? nil : false
        }
        guard isThere == true else { throw Unfinished(text: "no \"\(words)\" in: \(text)") }
    }

    /// How often its output holds `words`.
    package func count(of words: String) -> Int { text.components(separatedBy: words).count - 1 }

    /// The most memory that it has had resident so far, in bytes.
    package var peakMemory: Int {
        get throws { try number(of: "VmHWM:") * 1024 }
    }

    /// Waits until the kernel has stopped it.
    package func waitUntilStopped() throws {
        while try !statusLine("State:").contains("T") { usleep(1000) }
    }

    private func number(of field: String) throws -> Int {
        let words = try statusLine(field).split(whereSeparator: \.isWhitespace)
        return words.count > 1 ? Int(words[1]) ?? 0 : 0
    }

    private func statusLine(_ field: String) throws -> String {
        let text = try String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
        return text.split(separator: "\n").first { $0.hasPrefix(field) }.map(String.init) ?? ""
    }

    deinit {
        if process.isRunning { kill(SIGKILL) }
    }

    package struct Unfinished: Error, CustomStringConvertible {
        package let text: String
        package var description: String { text }

        package init(text: String) { self.text = text }
    }
}

/// Asks until `found` has something, soon at first and then ever more seldom: for what there is no event to wait for.
/// - Parameter longest: microseconds between two questions at the most.
/// - Returns: nil when there is nothing after `seconds` of an idle machine.
package func eventually<Found>(
    within seconds: Double, every longest: useconds_t = 100_000, _ found: () throws -> Found?
) rethrows -> Found? {
    let deadline = Date(timeIntervalSinceNow: seconds * RunningProgram.slack)
    var pause: useconds_t = 2000
    while true {
        if let found = try found() { return found }
        if Date() >= deadline { return nil }
        usleep(pause)
        pause = min(pause * 3 / 2, longest)
    }
}
