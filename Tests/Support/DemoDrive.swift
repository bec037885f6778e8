import Foundation

/// The simulated drive of the demo: half an hour, two trips, one fix a second by two sentences.
package enum DemoDrive {
    static let prefix = "demo-city-drive"

    /// The log, which gives 724 locations by the rule `either`.
    package static let path = BuiltProducts.repository.appendingPathComponent("fixtures/nmea/\(prefix).nmea").path

    /// Its sentences, each with its end of line.
    package static let sentences: [[UInt8]] = {
        let bytes = (try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data()
        return bytes.split(separator: 0x0A).filter { $0.first == UInt8(ascii: "$") }.map { Array($0) + [0x0A] }
    }()

    /// Some seconds of it.
    package struct Part: Sendable {
        package let seconds: Range<Int>

        package init(_ seconds: Range<Int>) { self.seconds = seconds }

        var name: String { "\(DemoDrive.prefix)-\(seconds.lowerBound)-\(seconds.upperBound).nmea" }
        package var bytes: [UInt8] { DemoDrive.bytes(seconds.lowerBound * 2..<seconds.upperBound * 2) }
    }

    /// The end of its last trip, until it is parked since 07:24:47: 124 locations by the rule `either`.
    package static let lastTrip = Part(1400..<1800)
    /// The last trip from its first metre on: 321 locations.
    package static let secondHalf = Part(1150..<1800)

    /// Sentences as a receiver sends them.
    package static func bytes(_ range: Range<Int>) -> [UInt8] { Array(sentences[range].joined()) }
}
