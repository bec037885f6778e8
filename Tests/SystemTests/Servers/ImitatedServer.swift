import Foundation
import Synchronization
import TestSupport

/// A server of locations on loopback that answers as the test says, from what was asked before.
final class ImitatedServer: Sendable {
    /// What it does about a request.
    enum Reply: Sendable {
        case status(Int, String = "", headers: [String] = [])
        /// These bytes and then a closed connection.
        case bytes([UInt8])
        /// These bytes again and again, until the client hangs up.
        case endless(head: String, [UInt8])
        /// Closed without a byte, after the request was read.
        case close
        case reset
        /// Nothing, until the client hangs up.
        case silence
    }

    struct Exchange: Sendable {
        var request: ScriptedServer.Request
        var reply: Reply
        var at: Date

        var status: Int? { if case .status(let status, _, _) = reply { status } else { nil } }
        var wasTaken: Bool { status.map { (200...299).contains($0) } ?? false }
    }

    private let scripted: ScriptedServer
    private let log: Log

    private final class Log: Sendable {
        let exchanges = Mutex<[Exchange]>([])
        /// The most bytes that a client took of an endless reply.
        let taken = Mutex(0)
    }

    /// - Parameter answer: the request, and what came before it.
    init(_ answer: @escaping @Sendable (ScriptedServer.Request, [Exchange]) -> Reply) throws {
        let log = Log()
        self.log = log
        scripted = try ScriptedServer { connection in
            while let request = connection.request() {
                let reply = log.exchanges.withLock { exchanges in
                    let reply = answer(request, exchanges)
                    exchanges.append(Exchange(request: request, reply: reply, at: Date()))
                    return reply
                }
                guard Self.carryOut(reply, on: connection, log) else { return }
            }
        }
    }

    /// Answers these one after the other, and the last of them from then on.
    convenience init(answering replies: Reply...) throws {
        try self.init { _, earlier in replies[min(earlier.count, replies.count - 1)] }
    }

    /// - Returns: whether the connection is kept.
    private static func carryOut(_ reply: Reply, on connection: ScriptedConnection, _ log: Log) -> Bool {
        switch reply {
        case .status(let status, let body, let headers):
            let lines = ["HTTP/1.1 \(status) X", "Content-Length: \(body.utf8.count)"] + headers
            return connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
        case .bytes(let bytes):
            connection.send(bytes)
        case .endless(let head, let bytes):
            connection.send(head)
            var taken = 0
            while connection.send(bytes) { taken += bytes.count }
            log.taken.withLock { $0 = max($0, taken) }
        case .close: break
        case .reset: connection.reset()
        case .silence: connection.waitForEnd()
        }
        return false
    }

    var port: Int { scripted.port }
    var exchanges: [Exchange] { log.exchanges.withLock { $0 } }
    var bytesTaken: Int { log.taken.withLock { $0 } }
}

extension ScriptedServer.Request {
    /// Path and query.
    var target: String { head[0].components(separatedBy: " ").dropFirst().first ?? "" }
    var path: String { String(target.prefix { $0 != "?" }) }
    var query: [String: String] { Self.fields(String(target.drop { $0 != "?" }.dropFirst())) }
    var form: [String: String] { Self.fields(String(decoding: body, as: UTF8.self)) }
    var object: [String: Any] { (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:] }
    /// The rows under a key of the body.
    func rows(_ key: String = "locations") -> [[String: Any]] { object[key] as? [[String: Any]] ?? [] }
    func numbers(_ name: String, in key: String = "locations") -> [Int] { rows(key).compactMap { $0[name] as? Int } }

    private static func fields(_ text: String) -> [String: String] {
        let pairs = text.split(separator: "&").map { part in
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            return (sides[0], sides.count > 1 ? sides[1].removingPercentEncoding ?? "?" : "")
        }
        return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
    }
}
