import ArgumentParser
import Daemon
import WaypostControl
import WaypostCore

/// A resolution on the command line.
struct ResolutionOptions: ParsableArguments {
    private static let priorities = AccuracyPriority.allCases.map(\.word)

    @Option(
        help: "minimum, low, balanced, high or maximum.", completion: .list(Self.priorities),
        transform: Self.priority)
    var priority: String?

    @Option(help: "Time between two locations, such as 1s or 5m; 0 = every fix.", transform: Self.interval)
    var interval: Int64?

    @Option(help: "Distance between two locations, such as 5m; 0 = every fix.", transform: Self.displacement)
    var displacement: Double?

    private static func priority(_ word: String) throws -> String {
        guard priorities.contains(word) else {
            throw ValidationError("expected one of \(priorities.joined(separator: ", "))")
        }
        return word
    }

    /// Milliseconds, 0…1 d; a bare number is seconds.
    private static func interval(_ text: String) throws -> Int64 {
        Int64((try Quantity.read(text, .duration, 0...86_400) * 1000).rounded())
    }

    /// Metres, 0…1000 km; a bare number is metres.
    private static func displacement(_ text: String) throws -> Double {
        try Quantity.read(text, .distance, 0...1e6)
    }

    /// nil when none of the three is given.
    /// - Throws: when some are given and some are not.
    func resolution() throws -> ResolutionValue? {
        if priority == nil, interval == nil, displacement == nil { return nil }
        guard let priority, let interval, let displacement else {
            throw ValidationError("A resolution has all three: --priority, --interval and --displacement.")
        }
        return ResolutionValue(priority: priority, intervalMs: interval, displacement: displacement)
    }
}

extension ResolutionValue {
    /// `balanced, 3 s, 10 m`
    var text: String { "\(priority), \(Self.plain(Double(intervalMs) / 1000)) s, \(Self.plain(displacement)) m" }

    private static func plain(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }
}
