import Glibc
import WaypostCore
import WaypostHost
import WaypostNMEA

/// Turns a log into fixes, for people, for programs, or only to count them.
package struct DecodeLog {
    /// What is printed.
    package enum Format: String, Sendable, CaseIterable {
        /// A line per epoch, and the counts.
        case text
        /// An object per epoch.
        case jsonl
        /// The counts alone.
        case none
    }

    private let settings: NMEADecoder.Settings

    package init(settings: NMEADecoder.Settings = .init()) { self.settings = settings }

    /// - Returns: what was skipped, for people, with file and line.
    @discardableResult package func run(
        log: String, format: Format, to descriptor: Int32 = STDOUT_FILENO
    ) throws(LogFailure) -> [LogProblem] {
        var decoder = LogDecoder(settings: settings)
        var json = TraceJSON()
        var text = ""
        let output = OutputBuffer(descriptor: descriptor)
        let progress = ProgressLine(.bytes, total: LogFile.bytes([log]), output: descriptor)
        var failure: SystemError?

        func receive(_ epoch: Epoch) {
            switch format {
            case .none: break
            case .jsonl: json.epoch(epoch)
            case .text: text += Self.line(epoch)
            }
        }
        func passOn() -> Bool {
            do throws(SystemError) {
                try output.write(json.writer.bytes)
                try output.write(Array(text.utf8))
            } catch {
                failure = error
            }
            json.writer.removeAll()
            text = ""
            return failure == nil
        }

        try decoder.read(log, receive) {
            progress?.advanced(by: $0)
            return passOn()
        }
        progress?.end()
        decoder.end(receive)
        if let nothing = decoder.nothing { throw .content(nothing) }
        if format != .jsonl { text += Self.counts(decoder.counters, isNMEA: decoder.isNMEA) }
        _ = passOn()
        if let failure { throw .system(failure) }
        return decoder.notices
    }

    private static func line(_ epoch: Epoch) -> String {
        switch epoch {
        case .fix(let fix):
            var line = stamp(fix.time, fix.timeOfDay)
            line += "  \(fix.mode == .threeD ? "3D" : "2D")"
            line += "  \(degrees(fix.coordinate.latitudeE7)) \(degrees(fix.coordinate.longitudeE7))"
            if let altitude = fix.altitudeMSL { line += "  \(tenths(altitude)) m" }
            if let speed = fix.speed { line += "  \(tenths(speed * 3.6)) km/h" }
            if let course = fix.course { line += "  \(InWords.whole(course) % 360)°" }
            if let accuracy = fix.horizontalAccuracy {
                line += "  ±\(accuracy < 1 ? InWords.accuracy(accuracy) : "\(tenths(accuracy)) m")"
            }
            return line + "\n"
        case .void(let void):
            guard let timeOfDay = void.timeOfDay else { return "" }
            return "\(stamp(void.time, timeOfDay))  no fix (\(void.reason == .void ? "void" : "no position"))\n"
        }
    }

    /// As wide without a date as with one.
    private static func stamp(_ time: UTCTime?, _ timeOfDay: Int) -> String {
        time.map(InWords.stamp) ?? "no date    \(UTCTime.clock(timeOfDay).prefix(8))"
    }

    private static func degrees(_ e7: Int32) -> String {
        let magnitude = e7.magnitude
        let fraction = String(magnitude % 10_000_000)
        return (e7 < 0 ? "-" : "") + "\(magnitude / 10_000_000)."
            + String(repeating: "0", count: 7 - fraction.utf8.count) + fraction
    }

    private static func tenths(_ value: Double) -> String {
        let scaled = InWords.whole(value * 10)
        return (scaled < 0 ? "-" : "") + "\(scaled.magnitude / 10).\(scaled.magnitude % 10)"
    }

    private static func counts(_ counters: NMEACounters, isNMEA: Bool) -> String {
        var text =
            "\(counters.bytes) bytes, \(counters.sentences) \(isNMEA ? "sentences" : "records"), \(counters.fixes) fixes, "
        text += "\(counters.voidEpochs) epochs without a fix\n"
        let defects = ReplayStory.defects(counters)
        if !defects.isEmpty { text += "defects: \(defects.joined(separator: ", "))\n" }
        return text
    }
}
