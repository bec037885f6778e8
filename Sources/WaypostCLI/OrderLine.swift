import Agent
import ArgumentParser
import ControlProtocol
import EventLoop
import Glibc

/// A request for the control socket.
struct OrderLine {
    enum Value {
        case text(String)
        case flag(Bool)
        case numbers([Int64])
    }

    let text: String

    init(_ verb: String, _ action: String? = nil, _ members: [(name: String, value: Value?)] = []) {
        var parts = [#""id":1"#, "\"do\":\"\(verb)\""]
        if let action { parts.append("\"action\":\"\(action)\"") }
        for member in members {
            switch member.value {
            case nil: break
            case .text(let text): parts.append("\"\(member.name)\":\(Self.quoted(text))")
            case .flag(let flag): parts.append("\"\(member.name)\":\(flag)")
            case .numbers(let numbers):
                parts.append("\"\(member.name)\":[\(numbers.map(String.init).joined(separator: ","))]")
            }
        }
        text = "{\(parts.joined(separator: ","))}"
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case _ where scalar.value < 0x20:
                let hex = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

/// What an order came to.
struct OrderAnswer: Decodable {
    var ok: Bool
    var rows: Int?
    var firstSeq: Int64?
    var lastSeq: Int64?
    /// Seconds to the next try, where something is in its way.
    var nextAttempt: Double?
    /// What is in its way.
    var because: String?

    enum CodingKeys: String, CodingKey {
        case ok, rows, because
        case nextAttempt = "next_attempt_s"
        case firstSeq = "first_seq"
        case lastSeq = "last_seq"
    }

    /// `3 rows`
    var count: String { "\(rows ?? 0) \(rows == 1 ? "row" : "rows")" }

    /// `; next try in 114 s: the server has asked for that`, empty where nothing is in the way.
    var postponement: String {
        guard let because else { return "" }
        let next = nextAttempt.map { "next try in \(Int(min($0, 1e6).rounded(.up))) s: " }
        return "; \(next ?? "")\(because)"
    }

    /// `3 rows (seq 7 to 9)`
    var words: String {
        let range = firstSeq.flatMap { first in
            lastSeq.map { first == $0 ? " (seq \(first))" : " (seq \(first) to \($0))" }
        }
        return count + (range ?? "")
    }
}

extension DaemonOptions {
    /// Gives an order that concerns the queue: to the daemon, or without one to the queue itself.
    /// - Throws: `ExitCode`, after it has been said why and what to do.
    func order(_ line: OrderLine) throws -> [UInt8] {
        let path = try socket ?? ConfigurationFile.load(config).config.control.socket
        do throws(SystemError) {
            return try ControlClient(path: path, timeoutSeconds: ControlClient.longestSeconds).ask(line.text)
        } catch {
            guard error.code == ENOENT || error.code == ECONNREFUSED else {
                printError("waypost: the daemon does not answer: \(error)")
                throw ExitCode(2)
            }
        }
        let config = try ConfigurationFile.load(config).config
        do {
            return try QueueOwner.acting(on: config.outbox.settings.path) {
                try OfflineOrders.answer(line.text, config: config, environment: ProcessEnvironment.variables)
            }
        } catch let error as QueueReport.Failure {
            throw fail(
                "no daemon answers at \(path), and the queue cannot be used without it: \(error) (where a daemon runs, "
                    + "name its socket with --socket; else be the user it runs as, or root)", exitCode: error.exitCode)
        }
    }
}
