import WaypostCore

/// What all checks came to.
package struct Examination: Sendable {
    package struct Result: Sendable {
        package var check: Check
        package var finding: Finding
    }

    /// A narrower terminal breaks lines itself.
    private static let columnsMin = 40
    private static let textMax = 400
    private static let indent = "    "

    package let results: [Result]
    private let version: String
    private let reaches: [Evidence.Reach]
    /// Who asks may not ask the daemon: what to do about that.
    private let denial: String?

    /// - Parameter version: of waypost, for the first line.
    package init(_ evidence: Evidence, version: String, checks: [Check] = Check.all) {
        self.version = version
        reaches = evidence.reaches ?? []
        denial = if case .unreachable(let reason) = evidence.daemon { reason } else { nil }
        var results: [Result] = []
        // The check that explains the failure of each broken or skipped one: itself where it is the first.
        var roots: [Int: Int] = [:]
        for check in checks {
            var finding = check.examine(evidence)
            // What works works, whatever else is broken.
            if finding.state != .ok, let cause = check.causes.first(where: { roots[$0] != nil }),
                let root = roots[cause]
            {
                finding = .skipped(because: root)
                roots[check.number] = root
            } else if finding.state == .broken {
                roots[check.number] = check.number
            }
            results.append(Result(check: check, finding: finding))
        }
        self.results = results
    }

    /// As `waypost status`: 0 all is well, 1 something needs attention, 2 no daemon answers, 77 it may not be asked.
    package var exitStatus: Int32 {
        if denial != nil { return 77 }
        if results.contains(where: { $0.check.number == 2 && ![.ok, .degraded].contains($0.finding.state) }) {
            return 2
        }
        return failures.isEmpty ? 0 : 1
    }

    private var failures: [Result] { results.filter { [.degraded, .broken].contains($0.finding.state) } }

    /// One line: the first cause, or that there is none.
    package var verdict: String {
        let unknown = count(.unknown)
        let rest = unknown == 0 ? "" : "; \(unknown) not known"
        guard let first = failures.first(where: { $0.finding.state == .broken }) ?? failures.first else {
            return "\(count(.ok)) of \(results.count) checks are good\(rest)"
        }
        let others = failures.count - 1
        return "\(first.finding.state): \(first.check.number) \(first.check.name)"
            + (others == 0 ? "" : ", and \(others) more") + rest
    }

    private func count(_ state: Finding.State) -> Int { results.count { $0.finding.state == state } }

    private func results(_ state: Finding.State) -> [Result] { results.filter { $0.finding.state == state } }

    /// For a terminal, and for a report of a fault: first what needs attention, at the end the verdict.
    ///
    /// - Parameters:
    ///   - listsAll: a line for each check, also for those that are good or skipped.
    ///   - columns: width of the terminal. A command that is longer stays in one piece, to be pasted.
    package func lines(listsAll: Bool = false, columns: Int = 80) -> [String] {
        let columns = max(columns, Self.columnsMin)
        var lines = ["waypost doctor \(version)"] + (denial.map { Self.wrapped($0, columns) } ?? [])
        for result in results {
            switch result.finding.state {
            case .degraded, .broken: lines += Self.lines(result, columns)
            case .unknown: if listsAll || denial == nil { lines += Self.lines(result, columns, withAdvice: listsAll) }
            case .ok, .skipped: if listsAll { lines += Self.lines(result, columns) }
            }
        }
        if !listsAll {
            func list(_ head: String, _ results: [Result]) {
                let names = results.map { "\($0.check.number) \($0.check.name)" }
                if !names.isEmpty { lines += Self.list(head, names, columns) }
            }
            if denial != nil { list("hidden from this user: ", results(.unknown)) }
            list("ok: ", results(.ok))
            let skipped = Dictionary(grouping: results(.skipped)) { $0.finding.cause ?? 0 }.sorted { $0.key < $1.key }
            for (cause, results) in skipped {
                list("skipped because of \(cause): ", results)
            }
        }
        return lines + Self.wrapped("verdict: \(verdict)", columns)
    }

    private static func lines(_ result: Result, _ columns: Int, withAdvice: Bool = true) -> [String] {
        let finding = result.finding
        let head = "\(finding.state): \(result.check.number) \(result.check.name): \(shown(finding.found))"
        guard withAdvice, let advice = finding.advice else { return wrapped(head, columns) }
        return wrapped(head, columns) + self.advice(shown(advice), columns)
    }

    /// A command, or a line for a file, with its comment beside it or, where there is no room, below.
    private static func advice(_ text: String, _ columns: Int) -> [String] {
        let line = "\(indent)> \(text)"
        guard line.count > columns, let mark = line.firstOccurrence(of: "  # ") else { return [line] }
        let comment = wrapped(
            String(line[mark.upperBound...]), columns, first: "\(indent)  # ", further: "\(indent)  # ")
        return [String(line[..<mark.lowerBound])] + comment
    }

    /// Texts of devices and files neither steer the terminal nor begin a line.
    private static func shown(_ text: String) -> String { text.visible(bytesMax: textMax) }

    package static func wrapped(
        _ text: String, _ columns: Int, first: String = "", further: String = indent
    ) -> [String] {
        wrapped(text.split(separator: " ").map { $0 + " " }, columns, first: first, further: further)
    }

    private static func list(_ head: String, _ items: [String], _ columns: Int) -> [String] {
        wrapped([head] + items.dropLast().map { "\($0), " } + items.suffix(1), columns)
    }

    /// Breaks lines between pieces, which end in a blank.
    private static func wrapped(
        _ pieces: [String], _ columns: Int, first: String = "", further: String = indent
    ) -> [String] {
        var lines: [String] = []
        var line = first
        for (index, piece) in pieces.enumerated() {
            if index > 0, line.count + piece.trimming(while: { $0 == " " }).count > columns {
                lines.append(line)
                line = further
            }
            line += piece
        }
        return (lines + [line]).map { line in
            // Blanks at the end alone: those at the beginning are the indent.
            line.lastIndex { $0 != " " }.map { String(line[...$0]) } ?? line
        }
    }

    /// One object: `version`, `verdict`, `exit_status`, `checks` and `endpoints`.
    package var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.field("version", version)
        writer.field("verdict", verdict)
        writer.field("exit_status", Int(exitStatus))
        writer.key("checks" as StaticString)
        writer.beginArray()
        for result in results {
            writer.beginObject()
            writer.field("number", result.check.number)
            writer.field("name", result.check.name)
            writer.field("state", result.finding.state.rawValue)
            writer.field("found", result.finding.found.cut(toBytes: Self.textMax))
            writer.field("advice", result.finding.advice?.cut(toBytes: Self.textMax))
            writer.field("because_of", result.finding.cause)
            writer.endObject()
        }
        writer.endArray()
        write(reaches, to: &writer)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// How far a request to each endpoint came, and what each layer took.
    private func write(_ reaches: [Evidence.Reach], to writer: inout JSONWriter) {
        writer.key("endpoints" as StaticString)
        writer.beginArray()
        for reach in reaches {
            writer.beginObject()
            writer.field("name", reach.endpoint)
            writer.field("server", reach.peer)
            writer.field("failed", reach.failure?.layer)
            writer.field("lookup_ms", reach.stages.lookup?.inMilliseconds, places: 1)
            writer.field("connect_ms", reach.stages.connect?.inMilliseconds, places: 1)
            writer.field("tls_ms", reach.stages.handshake?.inMilliseconds, places: 1)
            writer.field("first_byte_ms", reach.stages.firstByte?.inMilliseconds, places: 1)
            if let end = reach.stages.certificate?.until {
                writer.field("certificate_expires", UTCTime(milliseconds: end &* 1000).iso8601)
            }
            writer.endObject()
        }
        writer.endArray()
    }
}

extension Duration {
    fileprivate var inMilliseconds: Double { Double(nanoseconds) / 1e6 }
}
