import Configuration
import WaypostCore
import WaypostTracking

/// The health of the log, what became of its fixes, and the settings in force. The page shows them as they are here.
struct HealthTables {
    /// Above these shares a line stands out.
    private static let manyVoid = 0.05
    private static let manyStanding = 0.3
    /// Milliseconds.
    private static let longSilence: Int64 = 60_000

    private let data: ReportData

    /// - Parameter made: when, Unix milliseconds.
    static func html(of data: ReportData, made: Int64) -> String {
        let tables = HealthTables(data: data)
        let stamp = InWords.stamp(UTCTime(milliseconds: made)).prefix(16)
        return tables.receiver + tables.fixes + tables.kept + tables.settings
            + "<p>Times are those of the receiver. Made \(stamp) UTC by waypost \(AgentVersion.current).</p>\n"
    }

    private static func section(_ title: String, _ fill: (inout HTMLTable) -> Void) -> String {
        var table = HTMLTable(title, [.words(""), .numbers("")])
        fill(&table)
        return "<h2>\(Markup.text(title))</h2>\n\(table.html)"
    }

    /// Of what is bad, only what there is.
    private static func bad(_ counts: [(String, Int)], _ table: inout HTMLTable) {
        for (name, count) in counts where count > 0 { table.row(name, ReportWords.amount(count), isBad: true) }
    }

    private var receiver: String {
        let decoded = data.decoded
        return Self.section("The log") { table in
            table.row(data.isNMEA ? "sentences" : "records", ReportWords.amount(decoded.sentences))
            table.row("bytes", ReportWords.bytes(decoded.bytes))
            if data.isNMEA {
                table.row(
                    "bad checksums", ReportWords.amount(decoded.checksumErrors), isBad: decoded.checksumErrors > 0)
            }
            Self.bad(
                [
                    ("without a checksum", decoded.missingChecksums), ("cut short", decoded.badBytes),
                    ("too long", decoded.tooLong), ("bad fields", decoded.badFields),
                    ("lines that are not understood", decoded.unknownLines), ("late for their epoch", decoded.late),
                    ("fixes without a date", decoded.dateless),
                    ("out of the order of time", data.table.leftOut),
                ], &table)
            let all = decoded.fixes + decoded.voidEpochs
            table.row(
                "epochs without a fix", ReportWords.amount(decoded.voidEpochs),
                isBad: Double(decoded.voidEpochs) > Double(all) * Self.manyVoid)
            if decoded.voidEpochs > 0 { table.row("satellites in view meanwhile", data.table.satellitesMeanwhile) }
        }
    }

    private var fixes: String {
        let accuracies = data.table.sortedAccuracies
        func accuracy(_ share: Int) -> String {
            "\(ReportWords.tenths(accuracies[(accuracies.count - 1) * share / 100])) m"
        }
        return Self.section("Its fixes") { table in
            table.row("fixes", ReportWords.amount(data.decoded.fixes))
            if let interval = data.table.usualInterval {
                table.row("a fix every", InWords.length(milliseconds: interval))
            }
            if let silence = data.silence {
                let clock = InWords.stamp(UTCTime(milliseconds: silence.from)).dropFirst(11)
                table.row(
                    "longest silence", "\(InWords.length(milliseconds: silence.length)) at \(clock) UTC",
                    isBad: silence.length > Self.longSilence)
            }
            if !accuracies.isEmpty {
                table.row("accuracy, median", accuracy(50))
                table.row("accuracy, 95 %", accuracy(95))
            }
            table.row("admitted", ReportWords.amount(data.tracked.admitted))
            Self.bad(
                FixFilter.Rejection.allCases.map { ("refused: \($0.rawValue)", data.tracked.rejected($0)) }, &table)
        }
    }

    private var kept: String {
        Self.section("What was kept") { table in
            table.row("kept", ReportWords.amount(data.published))
            for (reason, count) in data.kindsByCount { table.row("by \(reason)", ReportWords.amount(count)) }
            let standing = data.keptStanding
            table.row(
                "kept while nothing moved",
                "\(ReportWords.amount(standing)), \(ReportWords.percent(standing, of: data.published))",
                isBad: Double(standing) > Double(data.published) * Self.manyStanding)
            table.row("halts on the way", ReportWords.amount(data.tracked.halts))
            table.row("odometer", InWords.distance(data.odometer))
        }
    }

    private var settings: String {
        let isDefault = { (entry: EffectiveConfiguration.Entry) in
            entry.origin == nil && entry.note?.hasPrefix("preset") != true
        }
        let (chosen, defaults) = (data.settings.filter { !isDefault($0) }, data.settings.filter(isDefault))
        var html = "<h2>Settings in force</h2>\n\(Self.table(chosen))"
        if !defaults.isEmpty {
            let words = InWords.count(defaults.count, "setting has its default", "settings have their default")
            html += "<details class=\"defaults\"><summary>\(words)</summary>\(Self.paragraphs(defaults))</details>\n"
        }
        return html
    }

    private static func table(_ entries: [EffectiveConfiguration.Entry]) -> String {
        var table = HTMLTable("Settings in force", [.words("key"), .words("value"), .words("from")], class: "settings")
        for entry in entries {
            let origin = entry.origin.map { "\($0.file):\($0.line)" } ?? entry.note ?? ""
            table.row("\(entry.table) \(entry.key)", entry.value ?? "not set", origin)
        }
        return table.html
    }

    /// One for each table of the configuration.
    private static func paragraphs(_ entries: [EffectiveConfiguration.Entry]) -> String {
        var (html, table) = ("", "")
        for entry in entries {
            html += entry.table == table ? ", " : "\(table.isEmpty ? "" : "</p>\n")<p>\(Markup.text(entry.table)) "
            html += Markup.text("\(entry.key) = \(entry.value ?? "not set")")
            table = entry.table
        }
        return html + "</p>"
    }
}
