import FlyingFox
import Foundation
import WaypostCore

/// Judges requests one after the other and keeps the counts.
actor Intake {
    /// Largest body, as sent and when decoded.
    static let bodyLimit = 16 << 20

    /// What becomes of a request.
    enum Answer: Sendable {
        case reply(status: Int, headers: [String: String], body: String)
        case hang
        case cut
    }

    private struct Stats: Codable {
        var requests = 0
        var connections = 0
        var rejected = 0
        var faults = 0
        var bytesBodies = 0
        var bytesHeads = 0
    }

    private var faults: FaultPlan?
    private var store: LocationStore
    private var stats = Stats()
    private var peers: Set<String> = []
    private let started = ContinuousClock.now
    private let feed: LiveFeed
    private let now: @Sendable () -> Int64
    private var settings = SettingsStore()
    private var commands = CommandStore()

    /// - Parameters:
    ///   - feed: gets each request.
    ///   - now: the wall clock, UTC in milliseconds.
    init(faults: FaultPlan?, store: LocationStore, feed: LiveFeed, now: @escaping @Sendable () -> Int64) {
        self.faults = faults
        self.store = store
        self.feed = feed
        self.now = now
    }

    /// - Parameters:
    ///   - peer: address and port of the client, to count connections by.
    ///   - headBytes: size of request line and headers.
    func post(_ body: [UInt8], headers: HTTPHeaders, peer: String, headBytes: Int) -> Answer {
        stats.requests += 1
        stats.bytesBodies += body.count
        stats.bytesHeads += headBytes
        if peers.insert(peer).inserted { stats.connections += 1 }
        var request = LiveRequest(bodyBytes: body.count)
        let answer = judge(body, headers, &request)
        if case .reply(let status, _, _) = answer { request.status = status }
        feed.received(request, counters: statistics)
        return answer
    }

    private func judge(_ body: [UInt8], _ headers: HTTPHeaders, _ request: inout LiveRequest) -> Answer {
        let batch: NativeBatch
        let key: String?
        let plain: [UInt8]
        do {
            plain = try decoded(body, headers[HTTPHeader("Content-Encoding")])
            batch = try Self.batch(plain, headers)
            request.read(batch)
            key = try Self.idempotencyKey(headers[HTTPHeader("Idempotency-Key")], of: batch)
        } catch let problem as Refusal {
            return refuse(problem, &request)
        } catch let problem as NativeBatch.ShapeProblem {
            return refuse(Refusal(status: 400, text: problem.text), &request)
        } catch {
            return refuse(Refusal(status: 400, text: "\(error)"), &request)
        }
        let fault = faults?.fault(
            bodyBytes: body.count, seqs: batch.rows.map(\.seq), sinceStart: .now - started)
        if fault != nil { stats.faults += 1 }
        request.fault = fault?.name
        switch fault {
        case .answer(let status, let retryAfter, let text):
            return .reply(status: status, headers: retryAfter.map { ["Retry-After": $0] } ?? [:], body: text)
        case .hang: return .hang
        case .close: return .cut
        case .closeAfterStore:
            _ = take(batch, key, plain, &request)
            return .cut
        case nil: return take(batch, key, plain, &request)
        }
    }

    /// What a request is about, from a path such as `/settings/DEVICE`; nil where the path is another.
    static func remotePath(_ path: String) -> (subject: String, device: String)? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].isEmpty, !parts[2].isEmpty else { return nil }
        return (String(parts[1]), String(parts[2]))
    }

    /// Settings and commands of devices, and what they say of them.
    /// - Returns: nil where there is no such request.
    func remote(_ method: HTTPMethod, _ path: String, _ body: [UInt8], headers: HTTPHeaders) -> SettingsStore.Answer? {
        guard let (subject, device) = Self.remotePath(path) else { return nil }
        let signature = headers[HTTPHeader("Waypost-Signature")]
        let answer: SettingsStore.Answer
        switch (method, subject) {
        case (.GET, "settings"): return settings.document(of: device, known: headers[HTTPHeader("If-None-Match")])
        case (.GET, "reported"): return settings.report(of: device)
        case (.GET, "commands"): return commands.list(of: device, at: now())
        case (.PUT, "settings"): answer = settings.want(body, for: device, signature: signature)
        case (.PUT, "reported"): answer = settings.report(body, from: device)
        case (.POST, "commands"): answer = commands.send(body, to: device, signature: signature, at: now())
        case (.POST, "reported"): answer = commands.answered(body, by: device)
        default: return nil
        }
        if answer.status < 300 { show(device) }
        return answer
    }

    private func show(_ device: String) {
        feed.changed(
            LiveRemote(
                device: device, desired: settings.desiredVersion(of: device),
                report: settings.reportedState(of: device), commands: commands.commands(of: device)))
    }

    /// For people, one line.
    var summary: String {
        let counts = store.counters
        return "\(counts.locations) locations in \(counts.batches) batches; "
            + "repeated: \(counts.duplicateBatches) batches, \(counts.duplicateLocations) locations; "
            + "out of order: \(counts.inversions); refused: \(stats.rejected); faults: \(stats.faults); "
            + "\(stats.bytesBodies + stats.bytesHeads) bytes received over \(stats.connections) connections"
    }

    var statistics: String { Self.statistics(stats, store.counters) }

    /// Before anything has come.
    static var noStatistics: String { statistics(Stats(), LocationStore.Counters()) }

    private static func statistics(_ stats: Stats, _ counts: LocationStore.Counters) -> String {
        let members: KeyValuePairs = [
            "requests": stats.requests, "connections": stats.connections, "batches": counts.batches,
            "locations": counts.locations, "duplicate_batches": counts.duplicateBatches,
            "duplicate_locations": counts.duplicateLocations, "changed_locations": counts.changedLocations,
            "inversions": counts.inversions, "rejected": stats.rejected, "faults": stats.faults,
            "bytes_bodies": stats.bytesBodies, "bytes_heads": stats.bytesHeads,
        ]
        return "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}\n"
    }

    private struct Refusal: Error {
        var status: Int
        var text: String
    }

    private func decoded(_ body: [UInt8], _ encoding: String?) throws -> [UInt8] {
        switch encoding?.lowercased() {
        case nil, "identity": return body
        case "gzip":
            do {
                return try gunzip(body, limit: Self.bodyLimit)
            } catch {
                throw Refusal(status: 400, text: "Content-Encoding: \(error.text)")
            }
        case .some(let other): throw Refusal(status: 415, text: "Content-Encoding: \(other) is not understood")
        }
    }

    private static func batch(_ plain: [UInt8], _ headers: HTTPHeaders) throws -> NativeBatch {
        let type = headers[.contentType]?.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard type == NativeBatch.compactType else { return try NativeBatch(plain) }
        let id = headers[HTTPHeader("Idempotency-Key")]?.dropFirst().dropLast()
        // It becomes part of a line of JSON as it is.
        guard let id, !id.isEmpty, id.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }) else {
            throw Refusal(status: 400, text: "Idempotency-Key: must be the batch id in double quotes")
        }
        return try NativeBatch(compact: plain, id: String(id))
    }

    /// A structured-field string: in double quotes.
    private static func idempotencyKey(_ header: String?, of batch: NativeBatch) throws -> String? {
        guard let header else { return nil }
        guard header == "\"\(batch.id)\"" else {
            throw Refusal(status: 400, text: "Idempotency-Key: must be the batch_id in double quotes")
        }
        return header
    }

    private func take(
        _ batch: NativeBatch, _ key: String?, _ plain: [UInt8], _ request: inout LiveRequest
    ) -> Answer {
        do {
            switch try store.take(batch, key: key, body: plain) {
            case .stored(let new):
                request.new = new.compactMap(\.location)
                request.repeated = batch.rows.count - new.count
            case .duplicate: request.repeated = batch.rows.count
            case .keyReused:
                let text = "Idempotency-Key: has named another body before"
                return refuse(Refusal(status: 422, text: text), &request)
            }
            return .reply(status: 200, headers: offers(to: batch.device), body: "")
        } catch {
            let text = "the output cannot be written: \(error)"
            request.problem = text.visible(bytesMax: 300)
            return .reply(status: 507, headers: [:], body: Self.json(text))
        }
    }

    /// What there is for a device whose batch was accepted.
    private func offers(to device: String) -> [String: String] {
        let command = commands.next(for: device, at: now())
        if !command.isEmpty { show(device) }
        return settings.announcement(to: device).merging(command) { $1 }
    }

    private func refuse(_ refusal: Refusal, _ request: inout LiveRequest) -> Answer {
        stats.rejected += 1
        request.problem = refusal.text.visible(bytesMax: 300)
        return .reply(
            status: refusal.status, headers: ["Content-Type": "application/json"], body: Self.json(refusal.text))
    }

    private static func json(_ text: String) -> String {
        let escaped = text.unicodeScalars.map { scalar in
            switch scalar {
            case "\"": "\\\""
            case "\\": "\\\\"
            case "\u{0}"..."\u{1F}": " "
            default: String(scalar)
            }
        }
        return "{\"error\":\"\(escaped.joined())\"}\n"
    }
}
