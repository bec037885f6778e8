import Configuration
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

/// One reviewed file beside a log of `fixtures/nmea`: what a command prints about it at default settings.
///
/// This is the only place that says which files there are; `scripts/expected` writes them through `GoldenTests`.
struct Golden: CustomTestStringConvertible, Sendable {
    enum Form: String, CaseIterable {
        /// `waypost decode --format jsonl`, for logs up to 100 kB: of longer ones it would be mass, not evidence.
        case decode = "decode.expected"
        /// `waypost replay --format jsonl`.
        case replay = "replay.expected"
        /// `waypost decode`, where the counts show something.
        case decodeText = "decode.txt"
        /// `waypost replay`, where there is a story.
        case replayText = "replay.txt"
    }

    static let folder = BuiltProducts.repository.appendingPathComponent("fixtures/nmea")
    private static let decodeBytesMax = 100_000
    private static let withText = ["demo-city-drive", "two-second-epochs-over-midnight", "clock-set-back-an-hour"]
    private static let counted = ["glued-and-garbled", "long-lines", "no-date-in-the-whole-stream"]

    var name: String
    var form: Form

    var testDescription: String { "\(name).\(form.rawValue)" }
    var log: String { Self.folder.appendingPathComponent("\(name).nmea").path }
    var expected: URL { Self.folder.appendingPathComponent("\(name).\(form.rawValue)") }

    static let logs: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".nmea") }.map { String($0.dropLast(5)) }.sorted()
    }()

    static let all: [Golden] = logs.flatMap { name in
        Form.allCases.map { Golden(name: name, form: $0) }.filter(\.isWanted)
    }

    private var isWanted: Bool {
        switch form {
        case .decode:
            let attributes = try? FileManager.default.attributesOfItem(atPath: log)
            return (attributes?[.size] as? Int).map { $0 <= Self.decodeBytesMax } ?? false
        case .replay: return true
        case .decodeText: return Self.counted.contains(name)
        case .replayText: return Self.withText.contains(name)
        }
    }

    func output() throws -> String {
        switch form {
        case .decode: try decoded(log, .jsonl)
        case .decodeText: try decoded(log, .text)
        case .replay: try replayed([log], .jsonl)
        case .replayText: try replayed([log], .text)
        }
    }
}

func decoded(_ log: String, _ format: DecodeLog.Format) throws -> String {
    try printed { try DecodeLog().run(log: log, format: format, to: $0) }
}

func replayed(_ logs: [String], _ format: ReplayLog.Format) throws -> String {
    try printed { try ReplayLog(nil).run(logs: logs, format: format, to: $0) }
}

func replayed(_ logs: [String], _ format: ReplayLog.Format, with loaded: LoadedConfiguration) throws -> String {
    try printed { try ReplayLog(loaded).run(logs: logs, format: format, to: $0) }
}
