import Configuration
import Delivery
import JSON
import Positioning

/// A resolution as people write it on a command line: a priority, `1s`, `5m`.
public struct ResolutionArgument: Sendable {
    /// Why an argument is not understood, in words for people.
    public struct Mistake: Error, CustomStringConvertible {
        public var description: String
    }

    public static let priorities = AccuracyPriority.allCases.map(\.word)

    fileprivate var priority: String
    fileprivate var intervalMs: Int64
    fileprivate var displacement: Double

    /// - Parameters:
    ///   - priority: one of `priorities`.
    ///   - intervalMs: as from `interval(_:)`.
    ///   - displacement: as from `displacement(_:)`.
    public init(priority: String, intervalMs: Int64, displacement: Double) {
        self.priority = priority
        self.intervalMs = intervalMs
        self.displacement = displacement
    }

    /// Milliseconds of a duration such as `1s`, 0…1 d; a bare number is seconds.
    public static func interval(_ text: String) throws(Mistake) -> Int64 {
        let seconds = try quantity(text, .duration, limit: 86_400)
        return Int64((seconds * 1000).rounded())
    }

    /// Metres of a distance such as `5m` or `1.2km`, 0…1000 km; a bare number is metres.
    public static func displacement(_ text: String) throws(Mistake) -> Double {
        try quantity(text, .distance, limit: 1e6)
    }

    private static func quantity(_ text: String, _ scale: UnitScale, limit: Double) throws(Mistake) -> Double {
        let value: Double
        switch scale.read(text) {
        case .value(let read): value = read
        case .unitMissing where Double(text) != nil: value = Double(text) ?? 0
        case .unitUnknown(let suggestion?):
            throw Mistake(description: "expected \(scale.expectation) (did you mean \(suggestion)?)")
        default:
            throw Mistake(description: "expected \(scale.expectation)")
        }
        guard (0...limit).contains(value) else {
            throw Mistake(description: "expected \(scale.name) from 0 to \(scale.render(limit))")
        }
        return value
    }
}

/// Requests over the control socket that carry a resolution, as lines of JSON.
public enum ResolutionRequestLine {
    /// - Parameter resolution: nil = no constant location engine any more.
    public static func engine(_ resolution: ResolutionArgument?) -> String {
        line("engine") { writer in
            if let resolution { resolution.write("set", to: &writer) } else { writer.field("clear", true) }
        }
    }

    /// - Parameters:
    ///   - trackable: nil where there is one.
    ///   - resolution: nil = present without asking for one.
    public static func addSubscriber(
        _ id: String, of trackable: String?, asking resolution: ResolutionArgument?
    ) -> String {
        line("subscriber") { writer in
            writer.field("add", id)
            writer.field("trackable", trackable)
            resolution?.write("resolution", to: &writer)
        }
    }

    public static func removeSubscriber(_ id: String, of trackable: String?) -> String {
        line("subscriber") { writer in
            writer.field("remove", id)
            writer.field("trackable", trackable)
        }
    }

    private static func line(_ verb: StaticString, _ members: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.field("id", 1)
        writer.field("do", word: verb)
        members(&writer)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension ResolutionArgument {
    fileprivate func write(_ key: StaticString, to writer: inout JSONWriter) {
        writer.key(key)
        writer.beginObject()
        writer.field("priority", priority)
        writer.field("interval_ms", intervalMs)
        writer.field("displacement", displacement)
        writer.endObject()
    }
}
