import Profiles
import Protocols
import WaypostCore
import WaypostHost

/// Tells brokers whose profile has a topic for it (`mqtt.status`) whether something is wrong with this device, and what: at
/// the start, and when other things are wrong than before. The message has no position.
final class ProblemReports {
    /// Between two messages.
    private static let interval = Duration.seconds(60)
    private static let problemsMax = 10
    /// Characters of one problem.
    private static let lengthMax = 300

    private let endpoints: [(topic: String, delivery: EndpointDelivery)]
    private let loop: EventLoop
    private let problems: (EventTime) -> [String]
    private var alarm: EventLoop.Alarm?
    /// Not while the receiver opens and nothing was tried yet.
    private var earliest: EventTime
    /// What a broker was told that problems are about, by endpoint.
    private var told: [String: Set<String>] = [:]

    /// - Parameter problems: the problems of the status, in words.
    init(_ deliveries: [EndpointDelivery], loop: EventLoop, problems: @escaping (EventTime) -> [String]) {
        self.loop = loop
        self.problems = problems
        earliest = loop.now + Self.interval
        endpoints = deliveries.compactMap { delivery in
            RequestRenderer(delivery.settings, in: RenderContext()).statusTopic.map { ($0, delivery) }
        }
        alarm = loop.alarm { [unowned self] in tell(at: $0) }
    }

    /// The status may be another one.
    func statusChanged() {
        guard !endpoints.isEmpty else { return }
        if earliest <= loop.now { tell(at: loop.now) } else { alarm?.deadline = earliest }
    }

    private func tell(at now: EventTime) {
        alarm?.deadline = nil
        let problems = problems(now)
        // The rest of a problem has figures that change.
        let subjects = Set(problems.map { String($0.prefix { $0 != ":" }) })
        for (topic, delivery) in endpoints where told[delivery.settings.name] != subjects {
            earliest = now + Self.interval
            let name = delivery.settings.name
            var message = MQTTMessage(topic: topic, payload: Self.payload(problems), isRetained: true)
            message.contentType = "application/json"
            delivery.publish(message) { [weak self] result in
                guard case .published(let reply) = result, let reason = reply.reasons.first ?? nil,
                    reason.meaning != .retry, reason.meaning != .slowDown
                else { return }
                self?.told[name] = subjects
            }
        }
    }

    static func payload(_ problems: [String]) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.field("problem", !problems.isEmpty)
        json.key("problems")
        json.beginArray()
        for problem in problems.prefix(problemsMax) { json.value(String(problem.prefix(lengthMax))) }
        json.endArray()
        json.endObject()
        return json.bytes
    }
}
