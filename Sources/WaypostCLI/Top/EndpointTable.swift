import WaypostControl

/// The endpoints as a table, the worst first.
struct EndpointTable {
    private struct Column {
        var title: String
        var width: Int
        var value: (EndpointStatus) -> String?
    }

    private static let stateWidth = 9
    private static let nameMin = 8
    private static let nameMax = 32

    /// Those that need a person, then those that fail, then those with the most to send.
    let endpoints: [EndpointStatus]
    private let columns: Int
    private let isASCII: Bool
    private let shown: [Column]
    private let nameWidth: Int

    init(endpoints: [EndpointStatus], columns: Int, isASCII: Bool) {
        self.endpoints = endpoints.sorted {
            ($1.badness, $1.waiting, $0.name) < ($0.badness, $0.waiting, $1.name)
        }
        self.columns = columns
        self.isASCII = isASCII
        shown = Self.shown(in: columns)
        nameWidth = max(
            Self.nameMin, min(Self.nameMax, columns - Self.width(of: shown) - Self.stateWidth - 1))
    }

    private static func shown(in columns: Int) -> [Column] {
        var shown = [
            Column(title: "WAITING", width: 9) { String($0.waiting) },
            Column(title: "OLDEST", width: 9) { $0.waiting > 0 ? $0.oldestAge.map(TopFigures.span) : nil },
            Column(title: "SENT", width: 9) { $0.accepted.map(String.init) },
            Column(title: "LAST OK", width: 9) { $0.lastSuccessAge.map(TopFigures.span) },
            Column(title: "B/FIX", width: 7) { $0.bytesPerFix.map { TopFigures.fixed($0, 0) } },
            Column(title: "NEXT", width: 8) { $0.nextAttempt.map(TopFigures.wait) },
        ]
        // What gives way where there is no room for all.
        let room = columns - nameMin - 1 - stateWidth
        for title in ["SENT", "B/FIX", "OLDEST", "LAST OK"] where width(of: shown) > room {
            shown.removeAll { $0.title == title }
        }
        return shown
    }

    private static func width(of columns: [Column]) -> Int { columns.reduce(0) { $0 + $1.width } }

    var heading: StyledLine {
        var line = StyledLine(isASCII: isASCII)
        line.add("ENDPOINT", .heading, width: nameWidth)
        line.add(" ")
        line.add("STATE", width: Self.stateWidth)
        for column in shown { line.add(column.title, width: column.width, right: true) }
        line.pad(to: columns)
        return line.styled(.heading)
    }

    func row(of endpoint: EndpointStatus) -> StyledLine {
        let style: StyledLine.Style = endpoint.badness >= 2 ? .bad : endpoint.badness == 1 ? .warning : .plain
        var line = StyledLine(isASCII: isASCII)
        line.add(endpoint.name, style, width: nameWidth)
        line.add(" ")
        line.add(endpoint.word, style, width: Self.stateWidth)
        for column in shown { line.add(column.value(endpoint) ?? "-", width: column.width, right: true) }
        return line
    }

    /// nil = not more than one.
    func failures(of endpoint: EndpointStatus) -> String? {
        endpoint.consecutiveFailures.flatMap { $0 > 1 ? "\($0) failures in a row" : nil }
    }

    /// Why it does not send, in words; nil = it does.
    func reason(of endpoint: EndpointStatus) -> String? {
        if let problem = endpoint.problem {
            return problem.withoutWait + (failures(of: endpoint).map { " (\($0))" } ?? "")
        }
        if let sentBy = endpoint.sentBy { return "cannot be reached: \(sentBy) stands in" }
        if let other = endpoint.standsInFor { return "stands in for \(other)" }
        return endpoint.held ?? endpoint.reason
    }
}

extension String {
    /// A problem says when the next attempt was due when it occurred: the table has the time from now.
    var withoutWait: String {
        for mark in ["; retry in ", "; next try in "] {
            guard let range = firstRange(of: mark) else { continue }
            return String(self[..<range.lowerBound])
        }
        return self
    }
}

extension EndpointStatus {
    /// 3 = it waits for a person, 2 = it fails, 1 = it is held, 0 = it is well.
    var badness: Int {
        if state != "active" { return 3 }
        if problem != nil || consecutiveFailures ?? 0 > 0 { return 2 }
        return held == nil ? 0 : 1
    }

    fileprivate var word: String {
        guard state == "active" else { return state }
        return consecutiveFailures ?? 0 > 0 ? "retrying" : held != nil ? "held" : state
    }
}
