import Glibc
import WaypostCore
import WaypostHost

/// How far long work is, as a line that is written over again: `38 %, 12.4 MB of 32.6 MB, 21 MB/s, 1 s left`. Pure: time is an
/// argument.
package struct Progress: Sendable {
    /// What is counted.
    package enum Unit: Sendable {
        case bytes
        case rows
    }

    /// At most four times a second; work that takes less shows nothing.
    private static let pause = Duration.milliseconds(250)

    private let unit: Unit
    /// nil = unknown, as of a pipe.
    private let total: Int64?
    private let began: EventTime
    private var shownAt: EventTime
    private var done: Int64 = 0

    package init(_ unit: Unit, total: Int64?, at now: EventTime) {
        self.unit = unit
        self.total = total.flatMap { $0 > 0 ? $0 : nil }
        (began, shownAt) = (now, now)
    }

    /// - Returns: what to show; nil = not yet.
    package mutating func advanced(by more: Int, at now: EventTime) -> String? {
        done += Int64(more)
        guard now.duration(since: shownAt) >= Self.pause else { return nil }
        shownAt = now
        let rate = Double(done) / max(0.001, now.seconds(since: began))
        var parts = ["\(words(Double(done))), \(words(rate))/s"]
        if let total {
            // A file may have grown since.
            let share = min(100, Int64(Double(done) / Double(total) * 100))
            parts = ["\(share) %, \(words(Double(done))) of \(words(Double(total))), \(words(rate))/s"]
            let left = Double(max(0, total - done)) / max(1, rate)
            parts.append("\(InWords.span(seconds: left.rounded(.up))) left")
        }
        return parts.joined(separator: ", ")
    }

    private func words(_ count: Double) -> String {
        switch unit {
        case .rows: return "\(Int64(count)) rows"
        case .bytes:
            let names = ["B", "kB", "MB", "GB", "TB"]
            var (value, index) = (count, 0)
            while value >= 999.95, index < names.count - 1 { (value, index) = (value / 1000, index + 1) }
            guard index > 0, value < 99.95 else { return "\(Int64(value.rounded())) \(names[index])" }
            let tenths = Int64((value * 10).rounded())
            return "\(tenths / 10).\(tenths % 10) \(names[index])"
        }
    }
}

/// Shows progress on standard error if that is a terminal, and the output goes elsewhere: never in a pipe or a log.
package final class ProgressLine {
    private var progress: Progress
    private var isShown = false

    /// nil where nobody would see it, or it would run into the output.
    /// - Parameter output: where the results go.
    package init?(_ unit: Progress.Unit, total: Int64?, output: Int32) {
        guard isatty(STDERR_FILENO) == 1, isatty(output) == 0 else { return nil }
        progress = Progress(unit, total: total, at: HostClock.bootTime)
    }

    package func advanced(by more: Int) {
        guard let text = progress.advanced(by: more, at: HostClock.bootTime) else { return }
        isShown = true
        Self.write("\r\(text)\u{1B}[K")
    }

    /// Leaves the line empty for what follows.
    package func end() {
        if isShown { Self.write("\r\u{1B}[K") }
        isShown = false
    }

    deinit { end() }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
