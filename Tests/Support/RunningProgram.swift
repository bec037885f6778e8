import Foundation

/// A program of ours that runs beside the test, with its output kept.
public final class RunningProgram {
    private let process = Process()
    private let output: URL

    /// - Parameter directory: where its output is kept.
    public init(
        _ name: String, _ arguments: [String], in directory: URL, environment: [String: String] = [:]
    ) throws {
        output = directory.appendingPathComponent("\(name)-\(UUID().uuidString).log")
        FileManager.default.createFile(atPath: output.path, contents: nil)
        let handle = try FileHandle(forWritingTo: output)
        process.executableURL = try BuiltProducts.executable(name)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardOutput = handle
        process.standardError = handle
        try process.run()
    }

    public var text: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }
    public var isRunning: Bool { process.isRunning }
    public var processID: Int32 { process.processIdentifier }

    /// Waits for the end; a program that outlives `seconds` is killed, which is a failure of the test.
    /// - Returns: exit status, or the negative number of the signal that ended it.
    public func exitStatus(within seconds: Double) throws -> Int32 {
        guard ended(within: seconds) else {
            kill(SIGKILL)
            throw Unfinished(text: text)
        }
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// Whether it ended by itself within `seconds`.
    public func ended(within seconds: Double) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        while process.isRunning, Date() < deadline { usleep(2000) }
        return !process.isRunning
    }

    public func kill(_ signal: Int32) {
        Foundation.kill(process.processIdentifier, signal)
        if signal == SIGKILL { process.waitUntilExit() }
    }

    /// Waits until its output holds `words`.
    public func waitFor(_ words: String, within seconds: Double = 20) throws {
        let deadline = Date(timeIntervalSinceNow: seconds)
        while !text.contains(words) {
            guard process.isRunning, Date() < deadline else { throw Unfinished(text: "no \"\(words)\" in: \(text)") }
            usleep(5000)
        }
    }

    deinit {
        if process.isRunning { kill(SIGKILL) }
    }

    public struct Unfinished: Error, CustomStringConvertible {
        public let text: String
        public var description: String { text }
    }
}
