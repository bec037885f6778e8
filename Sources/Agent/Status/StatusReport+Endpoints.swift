import ControlProtocol
import Delivery
import JSON
import Outbox
import Positioning

// How each endpoint is. Metrics have the names of the manual's table, which says what to do about each.
extension StatusReport {
    /// Those behind the endpoint `after`, as far as they fit into the frame; `more` when some did not.
    func writeEndpoints(after name: String? = nil, to writer: inout JSONWriter) {
        let known = name.flatMap { name in deliveries.firstIndex { $0.settings.name == name } }
        var rest = deliveries[(known.map { $0 + 1 } ?? 0)...]
        writer.key("endpoints")
        writer.beginArray()
        while writer.bytes.count < ControlFrame.bytesFilled, let delivery = rest.popFirst() {
            endpoint(delivery, &writer)
        }
        writer.endArray()
        if !rest.isEmpty { writer.field("endpoints_more", rest.count) }
    }

    private func endpoint(_ delivery: EndpointDelivery, _ writer: inout JSONWriter) {
        let depth = recorder.latest.depths.first { $0.endpoint == delivery.settings.name }
        let schedule = delivery.schedule
        writer.beginObject()
        writer.field("name", delivery.settings.name)
        writer.field("state", schedule.state.word)
        writer.field("reason", schedule.state.reason)
        writer.field("held", delivery.link.holdReason)
        if schedule.route > 0 { writer.field("sent_by", delivery.routes[schedule.route].settings.name) }
        writer.field("interface", delivery.link.wayOut?.interface)
        writer.field("waiting", delivery.waiting)
        writer.field("queue_oldest_age_s", oldestAge(depth), places: 1)
        writer.field("problem", delivery.lastProblem.map(Self.shortened))
        writer.field("advice", advice(delivery))
        writer.field("consecutive_failures", schedule.failures)
        writer.field("last_success_age_s", delivery.lastSuccess.map { now.seconds(since: $0) }, places: 1)
        writer.field("next_attempt_s", schedule.nextAttemptAt.map { max(0, $0.seconds(since: now)) }, places: 1)
        if case .paused(let reason) = schedule.state { Self.write("paused", [reason: 1], &writer) }
        if let reason = Self.stop(schedule.state) { Self.write("stopped", [reason: 1], &writer) }
        counters(delivery, &writer)
        settled(depth, &writer)
        writer.endObject()
    }

    private func counters(_ delivery: EndpointDelivery, _ writer: inout JSONWriter) {
        let counters = delivery.counters
        writer.field("acked", counters.accepted)
        writer.field("batches", counters.batchesAccepted)
        writer.field("requests", counters.requests)
        writer.field("retries", counters.retries)
        writer.field("stored", counters.stored)
        writer.field("batches_repeated", counters.batchesRepeated)
        writer.field("stray_answers", delivery.schedule.strayAnswers)
        writer.field("retry_after_honoured", counters.retryAfterHonoured)
        writer.field("bisects", delivery.schedule.bisects)
        writer.field("quarantined", counters.quarantined)
        writer.field("preview_sent", counters.previewSent)
        writer.field("connections", counters.connections)
        writer.field("bytes_sent", counters.bytesSent)
        writer.field("bytes_received", counters.bytesReceived)
        if counters.accepted > 0 {
            writer.field("wire_bytes_per_fix", Double(counters.bytesSent) / Double(counters.accepted), places: 1)
        }
        Self.write("failed", counters.failed, &writer)
    }

    private func settled(_ depth: EndpointDepth?, _ writer: inout JSONWriter) {
        guard let depth else { return }
        let unsent = depth.finishedUnsent
        writer.field("quarantine_depth", depth.quarantined)
        writer.field("quarantine_overflow", unsent["overflow"] ?? 0)
        writer.field("expired", unsent["expired"] ?? 0)
        writer.field("coalesced", unsent["superseded"] ?? 0)
        writer.field("dropped", unsent["dropped"] ?? 0)
        writer.field("evicted", unsent["evicted"] ?? 0)
        Self.write(
            "profile_rejected", unsent.filter { ["unfit", "refused", "skipped"].contains($0.key) }, &writer)
    }

    /// Seconds between the record that has waited longest and the newest one; both are receiver time.
    private func oldestAge(_ depth: EndpointDepth?) -> Double? {
        guard let oldest = depth?.oldestTime, let newest = pipeline.tracker.snapshot.lastFixTime else { return nil }
        return max(0, Double(newest.milliseconds - oldest.milliseconds) / 1000)
    }

    /// What to do about its state, in words for people; nil when there is nothing to do.
    func advice(_ delivery: EndpointDelivery) -> String? {
        let name = delivery.settings.name
        switch delivery.schedule.state {
        case .active: return delivery.schedule.failures > 10 ? "waypost profile render shows the request" : nil
        case .rebind:
            return "base_url, device or asset changed while rows waited for the old one: put it back, or waypost "
                + "endpoint bind \(name), or drop \(name)"
        case .taken: return "another device reports this asset: waypost endpoint bind \(name) takes it back"
        case .paused("auth"): return "renew the credential, then waypost endpoint resume \(name)"
        case .paused("not found"), .stopped: return "check base_url and device, then waypost endpoint resume \(name)"
        case .paused("every record refused"), .paused("too many rejected"):
            return "compare waypost profile render with the receiver's rules, then waypost endpoint resume \(name)"
        case .paused: return "look at the problem, then waypost endpoint resume \(name)"
        }
    }

    private static func stop(_ state: EndpointState) -> String? {
        switch state {
        case .stopped(let reason): reason
        case .taken, .rebind: state.word
        case .active, .paused: nil
        }
    }

    /// Counts by reason: `"failed":{"dns":3}`.
    private static func write(_ name: StaticString, _ counts: [String: Int], _ writer: inout JSONWriter) {
        writer.key(name)
        writer.beginObject()
        for (word, count) in counts.sorted(by: { $0.key < $1.key }).prefix(32) {
            writer.key(word)
            writer.value(Int64(count))
        }
        writer.endObject()
    }

    /// Words of a server may be long.
    static func shortened(_ text: String) -> String { text.cut(toBytes: 400) }
}
