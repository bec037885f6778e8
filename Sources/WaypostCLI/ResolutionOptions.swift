import Agent
import ArgumentParser
import ControlProtocol
import FoundationEssentials

/// A resolution on the command line.
struct ResolutionOptions: ParsableArguments {
    @Option(
        help: "minimum, low, balanced, high or maximum.", completion: .list(ResolutionArgument.priorities),
        transform: Self.priority)
    var priority: String?

    @Option(help: "Time between two locations, such as 1s or 5m; 0 = every fix.", transform: Self.interval)
    var interval: Int64?

    @Option(help: "Distance between two locations, such as 5m; 0 = every fix.", transform: Self.displacement)
    var displacement: Double?

    private static func priority(_ word: String) throws -> String {
        guard ResolutionArgument.priorities.contains(word) else {
            throw ValidationError("expected one of \(ResolutionArgument.priorities.joined(separator: ", "))")
        }
        return word
    }

    private static func interval(_ text: String) throws -> Int64 {
        do { return try ResolutionArgument.interval(text) } catch { throw ValidationError("\(error)") }
    }

    private static func displacement(_ text: String) throws -> Double {
        do { return try ResolutionArgument.displacement(text) } catch { throw ValidationError("\(error)") }
    }

    /// nil when none of the three is given.
    /// - Throws: when some are given and some are not.
    func resolution() throws -> ResolutionArgument? {
        if priority == nil, interval == nil, displacement == nil { return nil }
        guard let priority, let interval, let displacement else {
            throw ValidationError("A resolution has all three: --priority, --interval and --displacement.")
        }
        return ResolutionArgument(priority: priority, intervalMs: interval, displacement: displacement)
    }
}

/// A resolution in a reply of the daemon.
struct ResolutionReply: Decodable {
    var priority: String
    /// Milliseconds.
    var interval: Int64
    /// Metres.
    var displacement: Double

    enum CodingKeys: String, CodingKey {
        case priority, displacement
        case interval = "interval_ms"
    }

    /// `balanced, 3 s, 10 m`
    var text: String { "\(priority), \(Self.plain(Double(interval) / 1000)) s, \(Self.plain(displacement)) m" }

    private static func plain(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }
}

/// What the daemon says to a request that it may refuse.
struct DaemonReply<Answer: Decodable>: Decodable {
    struct Refusal: Decodable {
        var message: String
        var hint: String?
    }

    var error: Refusal?

    /// - Throws: `ExitCode` 1 when the daemon refuses, which has been said.
    static func read(_ reply: [UInt8]) throws -> Answer {
        let data = Data(reply)
        if let answer = try? JSONDecoder().decode(Answer.self, from: data) { return answer }
        guard let refusal = (try? JSONDecoder().decode(Self.self, from: data))?.error else {
            throw fail("unexpected reply from the daemon", exitCode: 76)  // EX_PROTOCOL
        }
        throw fail(refusal.message + (refusal.hint.map { " (\($0))" } ?? ""), exitCode: 1)
    }
}
