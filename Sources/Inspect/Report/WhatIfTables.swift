import WaypostCore

/// What other settings make of the log. A script replaces the first table by one to choose from.
enum WhatIfTables {
    static func html(of data: ReportData) -> String {
        var html = settings(data)
        for name in data.same { html += "<p>\(Markup.text(name)): the same settings as those in force.</p>\n" }
        html += """
            <p>Error: how far a fix of a trip lies from the straight line between kept locations, at its own time. Fixes of a halt \
            are not judged: there the position is held on purpose.</p>
            <p>Upload: bodies of requests; compact, or below it, with profile waypost-compact.</p>

            """
        return html + stopTimeouts(data)
    }

    private static func settings(_ data: ReportData) -> String {
        var table = HTMLTable(
            "What other settings would keep",
            [
                .words("settings"), .numbers("kept"), .numbers("worst error"), .numbers("error, 95 %"),
                .numbers("upload"), .numbers("compact"),
            ])
        for outcome in data.outcomes {
            table.row(
                "\(outcome.whatIf.label): \(outcome.whatIf.words)", "\(outcome.published)",
                outcome.error.map { "\(ReportWords.tenths($0.worst)) m" } ?? "–",
                outcome.error.map { "\(ReportWords.tenths($0.most)) m" } ?? "–",
                ReportWords.bytes(outcome.bytes), ReportWords.bytes(outcome.compact))
        }
        return "<h2>What other settings would keep of this log</h2>\n\(table.html)"
    }

    private static func stopTimeouts(_ data: ReportData) -> String {
        guard !data.stopTimeouts.isEmpty else { return "" }
        var table = HTMLTable(
            "Other stop timeouts",
            [.words("stop_timeout"), .numbers("trips"), .numbers("stops"), .numbers("under way"), .numbers("kept")])
        for timeout in data.stopTimeouts {
            table.row(
                InWords.span(milliseconds: timeout.value.milliseconds) + (timeout.isInForce ? " (in force)" : ""),
                ReportWords.amount(timeout.trips), ReportWords.amount(timeout.stops),
                InWords.span(milliseconds: timeout.moving), ReportWords.amount(timeout.kept))
        }
        return "<h2>What another stop_timeout would decide</h2>\n\(table.html)"
    }
}
