import Configuration
import Delivery
import Network
import Profiles
import Protocols
import Queue
import WaypostCore

/// Profiles in words: which there are, the content of one, and the requests that it makes.
package struct ProfileReport {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        /// Of sysexits.h.
        package let exitCode: Int32

        init(_ description: String, exitCode: Int32 = 64) {
            self.description = description
            self.exitCode = exitCode
        }
    }

    /// Where the locations of a request come from.
    package enum Source: Sendable {
        case sample(ProfileSample)
        /// What waits for the endpoint in the queue at this path.
        case queue(path: String)
    }

    private let profiles: ProfileLibrary
    private let endpoints: [EndpointConfig]

    /// - Parameter config: nil = the profiles of waypost alone.
    package init(_ config: AgentConfig?) {
        profiles = config?.profiles ?? ProfileLibrary()
        endpoints = config?.endpoints ?? []
    }

    /// One line for each profile: its name, and what it is for.
    package func list() -> [String] {
        let width = summaries.map(\.name.count).max() ?? 0
        return summaries.map { name, summary in
            name + String(repeating: " ", count: width - name.count + 2) + summary
        }
    }

    /// The same, an object of JSON for each.
    func json() -> [String] {
        summaries.map { name, summary in
            var writer = JSONWriter()
            writer.beginObject()
            writer.field("name", name)
            writer.field("summary", summary)
            writer.endObject()
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }

    private var summaries: [(name: String, summary: String)] {
        let own = profiles.own.map { profile in
            let base = profile.tree["extends"]?.node.text
            return (profile.name, base.map { "own, extends \($0)" } ?? "own")
        }
        return own + BuiltInProfiles.names.map { ($0, BuiltInProfiles.summary($0)) }
    }

    /// The profile with what it extends, as TOML.
    package func show(_ name: String) throws(Failure) -> String {
        var text = "# profile \(name)\n"
        if BuiltInProfiles.names.contains(name) { text = "# \(BuiltInProfiles.summary(name))\n" }
        return try text + tree(name).sections()
    }

    /// The requests as they would go out, every secret as `***`; between two of them a line `###`.
    ///
    /// - Parameters:
    ///   - name: of the profile; nil = that of the endpoint.
    ///   - endpoint: nil = the first with that profile, and without one something in each place that it would fill.
    package func render(_ name: String?, for endpoint: String?, _ source: Source) throws(Failure) -> [String] {
        let subject = try subject(name, endpoint)
        let waiting: Waiting
        switch source {
        case .sample(let sample):
            waiting = Waiting(rows: sample.rows, outbox: ProfileSample.outbox, sentMs: sample.sentMs, isWhole: true)
        case .queue(let path): waiting = try Self.waiting(path, subject.settings)
        }
        if waiting.rows.isEmpty { return ["# nothing waits for \(subject.settings.name)"] }
        return Self.requests(of: waiting, subject)
    }

    private func tree(_ name: String) throws(Failure) -> ProfileNode {
        switch profiles.resolve(name) {
        case .success(let tree): return tree
        case .failure(let problems): throw Failure(problems.list.map(Self.words).joined(separator: "\n"))
        }
    }

    /// What requests are made for.
    private struct Subject {
        var settings: EndpointSettings
        /// What is not the profile's: `Authorization`.
        var headers: [UplinkRequest.Header]
        /// Constants that nobody filled in stand as `<name>`, also in the URL.
        var isPlaceholder = false
    }

    private func subject(_ name: String?, _ endpoint: String?) throws(Failure) -> Subject {
        if let endpoint {
            guard let found = endpoints.first(where: { $0.settings.name == endpoint }) else {
                throw Failure("no endpoint has the name \(endpoint)")
            }
            if let name, found.settings.profile.name != name {
                throw Failure("endpoint \(endpoint) has the profile \(found.settings.profile.name), not \(name)")
            }
            return Subject(settings: found.settings, headers: found.shownHeaders)
        }
        guard let name else {
            guard endpoints.count == 1 else { throw Failure("name a profile, or an endpoint with --endpoint") }
            return Subject(settings: endpoints[0].settings, headers: endpoints[0].shownHeaders)
        }
        if let found = endpoints.first(where: { $0.settings.profile.name == name }) {
            return Subject(settings: found.settings, headers: found.shownHeaders)
        }
        return try placeholder(name)
    }

    private func placeholder(_ name: String) throws(Failure) -> Subject {
        let tree = try tree(name)
        var constants = ProfileConstants.placeholders(for: tree)
        // A server with rules for names gets one that fits them.
        constants.device = "van-7"
        switch Profiles.Profile.compile(name, tree: tree, constants: constants) {
        case .failure(let problems): throw Failure(problems.list.map(Self.words).joined(separator: "\n"))
        case .success(let profile):
            var settings = EndpointSettings(baseURL: constants.baseURL, device: constants.device, profile: profile)
            settings.batchSize = min(100, profile.maxRecords ?? 100)
            settings.gzip = tree["compress"]?.node.text == "gzip"
            settings.delivery = tree["delivery"]?.node.text.flatMap { .init(rawValue: $0) } ?? .all
            return Subject(
                settings: settings, headers: Self.authorization(tree["auth"]?.node), isPlaceholder: true)
        }
    }

    private static func authorization(_ auth: ProfileNode?) -> [UplinkRequest.Header] {
        switch auth?["kind"]?.node.text {
        case "basic": [.init("Authorization", "Basic ***")]
        case "bearer", "token_command": [.init("Authorization", "Bearer ***")]
        default: []
        }
    }

    private static func words(_ problem: ProfileProblem) -> String {
        let place = problem.position.map { "\($0.file):\($0.line):\($0.column): " } ?? ""
        let path = problem.keyPath.isEmpty ? "" : "\(problem.keyPath): "
        return place + path + problem.message + (problem.suggestion.map { " (did you mean \($0)?)" } ?? "")
    }
}

extension ProfileReport {
    /// Rows that wait for an endpoint.
    private struct Waiting {
        var rows: [QueuedLocation]
        var outbox: [UInt8]
        var sentMs: Int64?
        /// No row waits after these, and each request that they give is wanted.
        var isWhole: Bool
    }

    private static func waiting(_ path: String, _ settings: EndpointSettings) throws(Failure) -> Waiting {
        do throws(OutboxError) {
            let found = try OutboxReader(path: path).waiting(
                for: settings.backupFor ?? settings.name, feed: settings.feed,
                limit: BatchPlanner(settings).depth(limit: settings.batchSize))
            return Waiting(rows: found.rows, outbox: found.outbox, sentMs: nil, isWhole: false)
        } catch {
            let failure = QueueReport.Failure(error)
            throw Failure(failure.description, exitCode: failure.exitCode)
        }
    }

    private static func requests(of waiting: Waiting, _ subject: Subject) -> [String] {
        var lines: [String] = []
        var rest = waiting.rows[...]
        var count = 0
        repeat {
            let plan = BatchPlanner(subject.settings).plan(
                Array(rest), limit: subject.settings.batchSize, isEnd: waiting.isWhole, ages: nil)
            for settled in plan.settled {
                let seq = rest[rest.startIndex + settled.index].seq
                lines.append("# seq \(seq) is not sent: \(words(settled.why))")
            }
            for indices in plan.batches where waiting.isWhole || count == 0 {
                if count > 0 { lines.append("###") }
                count += 1
                lines += request(for: indices.map { rest[rest.startIndex + $0] }, waiting, subject)
            }
            if plan.consumed == 0 { break }
            rest = rest.dropFirst(plan.consumed)
        } while !rest.isEmpty && waiting.isWhole
        return lines
    }

    private static func request(
        for rows: [QueuedLocation], _ waiting: Waiting, _ subject: Subject
    ) -> [String] {
        guard let first = rows.first, let last = rows.last else { return [] }
        var batch = Batch(
            endpoint: subject.settings.name, id: "", rows: rows, sentMs: waiting.sentMs, outbox: waiting.outbox)
        batch.id = "\(batch.outboxName)-\(subject.settings.name)-\(first.seq)-\(last.seq)"
        return text(
            of: RequestRenderer(subject.settings, in: RenderContext(identify: RecordID.make, isMasked: true)).request(
                for: batch),
            subject)
    }

    private static func text(of request: UplinkRequest, _ subject: Subject) -> [String] {
        if let broker = request.broker { return text(of: broker, at: request.url) }
        var url = request.url
        if subject.isPlaceholder {
            url = url.split(separator: "%3C", omittingEmptySubsequences: false).joined(separator: "<")
                .split(separator: "%3E", omittingEmptySubsequences: false).joined(separator: ">")
        }
        var lines = ["\(request.method) \(url)"]
        lines += (request.headers + subject.headers).map { "\($0.name): \($0.value)" }
        if request.gzip { lines.append("Content-Encoding: gzip") }
        lines.append("")
        var body = String(decoding: request.body, as: UTF8.self)
        if body.utf8.last == UInt8(ascii: "\n") { body = String(decoding: body.utf8.dropLast(), as: UTF8.self) }
        return lines + [body]
    }

    private static func text(of broker: BrokerRequest, at url: String) -> [String] {
        let session = broker.session
        var lines = ["CONNECT \(url)", "client id: \(session.clientID)"]
        if let user = session.user { lines.append("user: \(user)") }
        if let will = session.will { lines += text(of: will, "will") }
        for birth in session.births { lines += text(of: birth, "on connecting") }
        for message in broker.messages { lines += text(of: message, nil) }
        return lines
    }

    private static func text(of message: MQTTMessage, _ note: String?) -> [String] {
        let notes = [note, "QoS \(message.qos.rawValue)", message.isRetained ? "retained" : nil].compactMap { $0 }
        let payload = String(decoding: message.payload, as: UTF8.self)
        return ["", "PUBLISH \(message.topic)  # \(notes.joined(separator: ", "))", payload]
    }

    private static func words(_ why: BatchPlan.Settled) -> String {
        switch why {
        case .unfit(let name): "\(name) is unknown, and the server needs it"
        case .expired: "older than max_age"
        case .superseded: "a newer location stands for it"
        case .skipped: "the profile leaves such events out"
        case .refused(let rule): "it breaks \(rule)"
        }
    }
}
