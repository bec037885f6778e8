import Foundation
import TestSupport
import Testing

@testable import WaypostControl

/// What Prometheus reads is what docs/operations.md and the manual say.
@Suite struct MetricsTests {
    /// A dashboard or an alert of a number that is gone shows nothing, and warns of nothing.
    @Test(arguments: ["grafana-dashboard.json", "prometheus-alerts.yml"])
    func whatIsShippedForMonitoringNamesNumbersThatExist(file: String) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(
            path: "../../packaging/monitoring")
        let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        let named = Set(text.matches(of: /waypost_[a-z_]+/).map { String($0.output) })
        #expect(named.count > 5 && named.subtracting(Metric.all.map(\.name)) == [])
    }

    /// A row of the table of metrics.
    private struct Row: Hashable {
        var fields: [String]
        var groups: [String]
        var meaning: String
        var action: String

        /// Each field has its part of the meaning, or all have the same.
        func meaning(of field: String) -> String? {
            guard let index = fields.firstIndex(of: field) else { return nil }
            let parts = meaning.components(separatedBy: "; ")
            return parts.count == fields.count ? parts[index] : fields.count == 1 ? meaning : nil
        }
    }

    private static func page(_ path: String) throws -> String {
        try String(contentsOf: BuiltProducts.repository.appendingPathComponent(path), encoding: .utf8)
    }

    private static func rows() throws -> [Row] {
        try page("docs/operations.md").split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 4, cells[0].hasPrefix("`") else { return nil }
            return Row(
                fields: cells[0].components(separatedBy: ", ").map { $0.replacing("`", with: "") },
                groups: cells[1].components(separatedBy: ", "), meaning: cells[2], action: cells[3])
        }
    }

    @Test func theTableHasEachMetricWithItsHelp() throws {
        let rows = try Self.rows()
        var left: Set<String> = []
        for row in rows {
            for group in row.groups { left.formUnion(row.fields.map { "\(group) \($0)" }) }
        }
        for metric in Metric.all {
            let group = metric.group.rawValue
            let place = "\(group) \(metric.field)"
            let row = rows.first { $0.groups.contains(group) && $0.fields.contains(metric.field) }
            #expect(row?.meaning(of: metric.field) == metric.help, "\(place)")
            #expect(left.remove(place) != nil || metric.field.hasPrefix("last_fix"), "\(place) is there twice")
        }
        #expect(left.isEmpty, "without a metric: \(left)")
        #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
    }

    @Test func theManualHasTheTable() throws {
        let page = try Self.page("docs/waypost.8").replacing("\\-", with: "-")
        let start = try #require(page.range(of: ".SH METRICS\n")?.upperBound)
        let section = page[start...].prefix(upTo: try #require(page[start...].range(of: ".SH ")?.lowerBound))
        let entries: [String] = section.components(separatedBy: "\n.TP\n").dropFirst().map {
            $0.trimmingCharacters(in: .newlines)
        }
        let wanted: [String] = try Self.rows().map { row in
            let (fields, groups) = (row.fields.joined(separator: " \", \" "), row.groups.joined(separator: ", "))
            return ".BR \(fields) \" (\(groups))\"\n\(row.meaning):\n\(row.action)."
        }
        #expect(entries == wanted)
    }

    /// One status with everything that a metric can show.
    private var status: Status {
        var status = Status()
        status.version = "1.2.3"
        status.health = "degraded"
        status.configuration = "last-good"
        status.uptime = 12.5
        status.motion.state = "moving"
        status.motion.lastFix = "2026-03-01T08:00:00.250Z"
        status.motion.odometer = 1234.5
        status.motion.rejected = Named([("accuracy", 3)])
        status.source.state = "silent"
        status.source.name = "file /home/user/52.5163,13.3777.nmea"
        status.source.bytes = 7
        status.power.battery = 55
        status.queue.depth = 9
        var fences = ListSourceStatus()
        (fences.name, fences.fences, fences.age) = ("venue", 12, 40)
        status.motion.geofences = GeofencesStatus()
        status.motion.geofences?.sources = [fences]
        var regions = ListSourceStatus()
        (regions.name, regions.regions, regions.failures) = ("venue", 3, 2)
        status.beacons = BeaconStatus()
        status.beacons?.sources = [regions]
        var endpoint = EndpointStatus()
        endpoint.name = "a\"b\\c\nd"
        endpoint.state = "active"
        endpoint.waiting = 4
        endpoint.bytesSent = 1000
        endpoint.failed = Named([("status 503", 2)])
        endpoint.stopped = Named([("gone\u{1B}]0;x\u{07}\u{202E}", 1)])
        status.endpoints = [endpoint]
        return status
    }

    @Test func prometheusReadsIt() {
        let lines = Exposition.prometheus.text(status).split(separator: "\n").map(String.init)
        for line in [
            "# HELP waypost_healthy 1 = ok, 0 = degraded", "# TYPE waypost_healthy gauge", "waypost_healthy 0",
            "waypost_build_info{version=\"1.2.3\"} 1", "waypost_uptime_seconds 12.5",
            "waypost_configuration_state{state=\"current\"} 0", "waypost_configuration_state{state=\"last-good\"} 1",
            "waypost_motion_last_fix_timestamp_seconds 1772352000.25", "waypost_motion_odometer_meters 1234.5",
            "# TYPE waypost_motion_rejected_total counter", "waypost_motion_rejected_total{reason=\"accuracy\"} 3",
            "waypost_source_state{state=\"silent\"} 1", "waypost_source_received_bytes_total 7",
            "waypost_power_battery_ratio 0.55", "waypost_queue_depth 9",
            "waypost_fence_source_fences{source=\"venue\"} 12", "waypost_fence_source_age_seconds{source=\"venue\"} 40",
            "waypost_beacon_source_regions{source=\"venue\"} 3", "waypost_beacon_source_failures{source=\"venue\"} 2",
            "waypost_endpoint_waiting{endpoint=\"a\\\"b\\\\c\\nd\"} 4",
            "waypost_endpoint_sent_bytes_total{endpoint=\"a\\\"b\\\\c\\nd\"} 1000",
            "waypost_endpoint_failed_total{endpoint=\"a\\\"b\\\\c\\nd\",reason=\"status 503\"} 2",
            // What a server has worded cannot steer the terminal that it is printed to.
            "waypost_endpoint_stopped{endpoint=\"a\\\"b\\\\c\\nd\",reason=\"gone\\\\x1b]0;x\\\\x07\\\\u{202e}\"} 1",
        ] { #expect(lines.contains(line), "\(line)") }
        // Unknown numbers are left out; no timestamp, place, or name of a file.
        #expect(!lines.contains { $0.contains("last_success") || $0.contains("52.5163") || $0.contains("EOF") })
        #expect(lines.allSatisfy { $0.hasPrefix("# HELP ") || $0.hasPrefix("# TYPE ") || $0.hasPrefix("waypost_") })
    }

    @Test func openMetricsNamesFamiliesWithoutTotal() {
        let text = Exposition.openMetrics.text(status)
        #expect(text.hasSuffix("\n# EOF\n"))
        #expect(
            text.contains(
                """
                # HELP waypost_source_received_bytes bytes received
                # TYPE waypost_source_received_bytes counter
                # UNIT waypost_source_received_bytes bytes
                waypost_source_received_bytes_total 7

                """))
    }

    @Test func whatPassesWithTheTimeIsLeftOutOfAFile() {
        var later = status
        (later.uptime, later.wakeups, later.motion.lastFixAge) = (99, 1000, 55)
        let texts = [status, later].map { Exposition.prometheus.text($0, fleeting: false) }
        #expect(texts[0] == texts[1] && texts[0].contains("waypost_queue_depth 9"))
        #expect(Exposition.prometheus.text(status) != Exposition.prometheus.text(later))
    }
}
