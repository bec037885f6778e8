import Foundation
import TestSupport
import Testing

@testable import Inspect

/// The demonstration drive with some of its sentences changed.
struct AlteredDrive {
    private var sentences: [Substring]

    init() throws {
        sentences = try String(contentsOfFile: DemoDrive.path, encoding: .utf8).split(whereSeparator: \.isNewline)
            .filter { $0.hasPrefix("$") }
            .map { $0.dropFirst().prefix { $0 != "*" } }
    }

    /// - Parameters:
    ///   - epoch: seconds since the drive began.
    ///   - change: of a sentence without `$` and checksum.
    mutating func change(_ epochs: Range<Int>, _ change: (Substring) -> String) {
        for index in (2 * epochs.lowerBound)..<(2 * epochs.upperBound) {
            sentences[index] = change(sentences[index])[...]
        }
    }

    mutating func cut(after epochs: Int) { sentences.removeSubrange((2 * epochs)...) }

    mutating func append(_ more: [String]) { sentences += more.map { $0[...] } }

    var text: String {
        sentences.map { sentence in
            let sum = sentence.utf8.reduce(0, ^)
            return "$\(sentence)*\(String(sum >> 4, radix: 16))\(String(sum & 15, radix: 16))\r\n".uppercased()
        }.joined()
    }

    /// What the page would show of it.
    func data(_ report: ReportLog = ReportLog(nil)) throws -> ReportData {
        let folder = try TemporaryDirectory()
        try folder.write("drive.nmea", text)
        return try report.data(of: ["\(folder.path)/drive.nmea"])
    }
}

extension Substring {
    func replacing(_ old: String, with new: String) -> String { replacingOccurrences(of: old, with: new) }
}
