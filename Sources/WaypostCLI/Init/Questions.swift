import Glibc
import WaypostCore

/// Asks a person at a terminal. Everything goes to standard error, so that standard output is what was asked for.
struct Questions {
    /// Nobody is asked: each question has its usual answer, or none.
    var isSilent = false

    static var hasTerminal: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    func say(_ text: String) { printError(text) }

    /// - Returns: the usual answer where there is nobody to ask.
    func ask(_ question: String, usual: String? = nil) -> String? {
        guard !isSilent else { return usual }
        prompt("\(question)\(usual.map { " [\($0)]" } ?? ""): ")
        guard let answer = readLine()?.trimmingSpaces else { return nil }
        return answer.isEmpty ? usual : answer
    }

    /// - Returns: the place of the answer; nil = there is nobody to ask, or input has ended.
    func choose(_ question: String, _ choices: [String], usual: Int = 0) -> Int? {
        guard !isSilent else { return nil }
        say(question)
        for (index, choice) in choices.enumerated() { say("  \(index + 1)  \(choice)") }
        while true {
            prompt("Number from 1 to \(choices.count) [\(usual + 1)]: ")
            guard let answer = readLine()?.trimmingSpaces else { return nil }
            if answer.isEmpty { return usual }
            if let number = Int(answer), choices.indices.contains(number - 1) { return number - 1 }
        }
    }

    func confirms(_ question: String) -> Bool {
        guard !isSilent else { return false }
        prompt("\(question) [y/N]: ")
        return ["y", "yes"].contains(readLine()?.trimmingSpaces.lowercased() ?? "")
    }

    /// Without showing what is typed.
    func secret(_ question: String) -> String? {
        guard !isSilent else { return nil }
        var settings = termios()
        let isTerminal = tcgetattr(STDIN_FILENO, &settings) == 0
        var quiet = settings
        quiet.c_lflag &= ~tcflag_t(ECHO)
        if isTerminal { tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) }
        defer {
            if isTerminal { tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings) }
            say("")
        }
        prompt("\(question) (not shown): ")
        return readLine().flatMap { $0.isEmpty ? nil : $0 }
    }

    private func prompt(_ text: String) {
        let bytes = Array(text.visible(bytesMax: 4096).utf8)
        _ = bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
