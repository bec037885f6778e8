import Inspect
import WaypostControl
import WaypostCore

/// The screen of `waypost top`: a pure function of what is known, the size of the screen, and the time.
struct TopPage {
    /// A line, and how readily it gives way on a small screen: 0 stays, the highest goes first.
    private struct Row {
        var line: StyledLine
        var yields: Int
    }

    /// How readily lines give way.
    private enum Yields {
        static let never = 0
        static let problem = 10
        static let detail = 30
        static let endpoint = 40
        static let reason = 60
        static let decision = 80
        static let lesser = 110
        static let blank = 120
    }

    /// Columns of the words on the left.
    private static let indent = 10

    let model: TopModel
    let columns: Int
    /// nil = as many as it takes, without a line for keys.
    let rows: Int?
    let isASCII: Bool
    /// Wall clock of this host.
    let now: UTCTime
    /// Monotonic, as in the model.
    let seconds: Double
    /// Of local time, in seconds east of UTC.
    var offset = 0

    private var units: DisplayUnits { model.status?.displayUnits ?? .metric }
    /// `UTC`, `+01:00`
    private var zone: String { offset == 0 ? "UTC" : LocalTime.zone(offset: offset) }

    private func clock(_ time: UTCTime) -> String {
        TopFigures.clock(UTCTime(milliseconds: time.milliseconds + Int64(offset) * 1000))
    }

    private func clock(_ iso8601: String) -> String {
        UTCTime.milliseconds(iso8601: iso8601).map { clock(UTCTime(milliseconds: $0)) } ?? TopFigures.clock(iso8601)
    }

    /// As many lines as the screen has, none wider than it.
    var lines: [StyledLine] {
        let head = head
        var page = model.showsAllEndpoints ? allEndpoints(rows: rows.map { $0 - 1 - head.count }) : overview
        // What was read before the daemon went away is still shown, but not as if it were so now.
        if model.absence != nil { page = page.map { Row(line: $0.line.styled(.faint), yields: $0.yields) } }
        page = head + page
        if let rows { page = Self.fitted(page, rows: max(0, rows - 1)) }
        var lines = page.map(\.line)
        if let rows {
            lines += Array(repeating: line(), count: max(0, rows - 1 - lines.count))
            if rows > 0 { lines.append(keys) }
        }
        return lines.map { line in
            var line = line
            line.cut(to: columns)
            return line
        }
    }

    /// Of lines that yield alike the last goes first.
    private static func fitted(_ page: [Row], rows: Int) -> [Row] {
        let kept = page.indices.sorted { (page[$0].yields, $0) < (page[$1].yields, $1) }.prefix(rows)
        var page = kept.sorted().map { page[$0] }
        // Nothing to separate at the end.
        while page.last?.yields == Yields.blank { page.removeLast() }
        return page
    }

    // MARK: Pieces

    private func line() -> StyledLine { StyledLine(isASCII: isASCII) }

    private func line(_ text: String, _ style: StyledLine.Style = .plain) -> StyledLine {
        var line = line()
        line.add(text, style)
        return line
    }

    /// A line with its word on the left; none = it goes on with the one above.
    private func line(of word: String = "") -> StyledLine {
        var line = line()
        line.add(word, .strong, width: Self.indent)
        return line
    }

    /// Words behind the indent, of which the last may be cut.
    private func faint(_ words: [String?]) -> StyledLine {
        var line = line(of: "")
        line.add(words.compactMap { $0 }.joined(separator: "  "), .faint)
        return line
    }

    private var blank: Row { Row(line: line(), yields: Yields.blank) }

    private var keys: StyledLine {
        if model.asksForFlush, let question = model.message(at: seconds) { return line(question, .warning) }
        var keys = line()
        let pause = model.isPaused ? "p go on" : "p pause"
        let other = model.showsAllEndpoints ? "e overview" : "e endpoints"
        for key in ["q quit", pause, "f flush", other] + (model.showsAllEndpoints ? ["arrows scroll"] : []) {
            keys.addIfItFits(key, .faint, columns: columns)
        }
        if model.isPaused { keys.addIfItFits("paused", .warning, columns: columns) }
        guard let message = model.message(at: seconds) else { return keys }
        let before = keys.columns
        keys.addIfItFits(message, .warning, columns: columns)
        return keys.columns > before ? keys : line(message, .warning)
    }

    // MARK: Head

    private var head: [Row] {
        var title = line()
        title.add("waypost", .strong)
        if let status = model.status { title.add(" " + status.version, .strong) }
        title.add("  ")
        if let absence = model.absence {
            title.add("daemon away since \(clock(absence.since)) \(zone)", .bad)
        } else if let status = model.status {
            title.add(status.health, status.health == "ok" ? .good : .bad)
        }
        var right = line()
        if model.absence == nil, let uptime = model.status?.uptime {
            right.add("up \(TopFigures.span(uptime))   ", .faint)
        }
        right.add("\(clock(now)) \(zone)", .faint)
        if title.columns + 2 + right.columns <= columns {
            title.pad(to: columns - right.columns)
            title.add(right.text, .faint)
        }
        return [Row(line: title, yields: Yields.never)] + absenceRows + problems
    }

    private var absenceRows: [Row] {
        guard let absence = model.absence else { return [] }
        let advice = line("sudo waypost doctor says why", .faint)
        return wrapped(absence.problem).map { Row(line: $0, yields: Yields.never) }
            + [Row(line: advice, yields: Yields.detail), blank]
    }

    private var shownProblems: ArraySlice<String> {
        let problems = model.absence == nil ? model.status?.problems ?? [] : []
        return problems.prefix(rows.map { max(1, $0 / 8) } ?? problems.count)
    }

    private var problems: [Row] {
        guard model.absence == nil, let problems = model.status?.problems else { return [] }
        let shown = shownProblems
        var page = shown.enumerated().flatMap { index, problem in
            wrapped(problem.withoutWait).enumerated().map { part, line in
                Row(line: line, yields: part == 0 && index == 0 ? Yields.never : Yields.problem + part)
            }
        }
        let more = problems.count - shown.count
        if more > 0 {
            page.append(Row(line: line("  and \(more) more: waypost status", .faint), yields: Yields.detail))
        }
        return page + [blank]
    }

    /// On two lines at most.
    private func wrapped(_ text: String) -> [StyledLine] {
        var lines: [StyledLine] = []
        var present = line("! ", .bad)
        for word in text.split(separator: " ") {
            let size = line(String(word)).columns
            if present.columns > 2, present.columns + 1 + size > columns, lines.isEmpty {
                lines.append(present)
                present = line("  ")
            }
            present.add((present.columns > 2 ? " " : "") + String(word))
        }
        return lines + [present]
    }

    // MARK: Overview

    private var overview: [Row] {
        guard let status = model.status else { return [] }
        return receiver(status.source) + motion(status) + track(status) + queue(status) + [blank]
            + endpoints(status) + decisions
    }

    private func receiver(_ source: SourceStatus) -> [Row] {
        var first = line(of: "RECEIVER")
        let (fix, age) = (model.presentFix, model.status?.motion.lastFixAge)
        let isPresent = age.map(model.isPresent) ?? false
        let isAsleep = source.state == "asleep"
        first.add(source.state, Self.style(source.state, hasFix: isPresent))
        if age == nil { first.addIfItFits("no fix yet", .warning, columns: columns) }
        if let age, !isPresent {
            let words = "last fix \(TopFigures.span(age)) ago"
            first.addIfItFits(words, isAsleep ? .faint : .bad, columns: columns)
        }
        if let look = model.look, look.refused > 0 {
            first.addIfItFits("\(look.refused) refused: \(look.refusedReason ?? "?")", .bad, columns: columns)
        }
        let facts: [String?] = [
            model.fixRate.map { "\(TopFigures.fixed($0, 1)) fix/s" },
            fix?.accuracy.map { "±\(TopFigures.metres($0))" },
            Self.satellites(used: fix?.satellites, inView: source.satellitesInView),
            source.medianCN0.map { "\($0) dB-Hz" },
            fix?.hdop.map { "hdop \(TopFigures.fixed($0, 1))" },
            fix?.quality, age.flatMap { isPresent ? "\(TopFigures.fixed($0, 1)) s ago" : nil },
        ]
        for fact in facts { if let fact { first.addIfItFits(fact, columns: columns) } }
        let at = fix == nil ? "last at" : "at"
        let place = model.look?.fix.map {
            "\(at) \(TopFigures.fixed($0.latitude, 5)), \(TopFigures.fixed($0.longitude, 5))"
        }
        let second = faint([place, source.reason, source.gpsd.map(Self.gpsd), source.name])
        return [Row(line: first, yields: Yields.never), Row(line: second, yields: Yields.detail)]
    }

    private static func style(_ state: String, hasFix: Bool) -> StyledLine.Style {
        switch state {
        case "receiving": hasFix ? .good : .warning
        case "ended": .good
        // It is meant to be.
        case "asleep": .plain
        default: .bad
        }
    }

    private static func satellites(used: Int?, inView: Int?) -> String? {
        guard let used else { return inView.map { "\(InWords.count($0, "satellite")) in view" } }
        return inView.map { "\(used) of \(InWords.count($0, "satellite"))" } ?? InWords.count(used, "satellite")
    }

    private static func gpsd(_ gpsd: GPSDStatus) -> String {
        guard let path = gpsd.device ?? gpsd.devices.first?.path else { return "gpsd \(gpsd.release)" }
        let driver = gpsd.devices.first { $0.path == path }?.driver
        return "gpsd \(gpsd.release) with \(path)\(driver.map { " (\($0))" } ?? "")"
    }

    private func motion(_ status: Status) -> [Row] {
        var first = line(of: "MOTION")
        first.add(Self.words(ofMotion: status.motion.state), .strong)
        if let since = status.motion.since { first.addIfItFits("since \(clock(since))", columns: columns) }
        if let activity = status.motion.activityText, status.motion.state != "stationary" {
            first.addIfItFits(activity, columns: columns)
        }
        let fix = model.presentFix
        if let speed = fix?.speed { first.addIfItFits(TopFigures.speed(speed, in: units), columns: columns) }
        if let course = fix?.course, status.motion.state == "moving" {
            first.addIfItFits("course \(TopFigures.fixed(course, 0))°", columns: columns)
        }
        addSpeeds(to: &first)
        let motion = status.motion
        var totals = [
            InWords.count(motion.trips, "trip"), InWords.count(motion.stops, "stop"),
            InWords.count(motion.gaps, "gap"), "odometer \(TopFigures.distance(motion.odometer))",
        ]
        if let fences = motion.geofences, fences.inside > 0 {
            totals.append("inside \(fences.ids.joined(separator: ", "))")
        }
        return [Row(line: first, yields: Yields.never)]
            + (model.look.map { outlook($0.motion) } ?? []).map { Row(line: $0, yields: Yields.never) }
            + [Row(line: faint([totals.joined(separator: ", ")]), yields: Yields.lesser)]
    }

    private static func words(ofMotion state: String) -> String {
        switch state {
        case "stationary": "parked"
        case "stopping": "halted"
        default: state
        }
    }

    private func addSpeeds(to line: inout StyledLine) {
        let room = min(60, columns - line.columns - 2)
        let shown = model.speeds.suffix(max(0, room))
        guard room >= 8, shown.count > 1, shown.contains(where: { $0 != nil }) else { return }
        // Below a brisk walk all is standing.
        let top = max(2, shown.compactMap { $0 }.filter(\.isFinite).max() ?? 0)
        line.add("  ")
        line.add(TopFigures.sparkline(shown, top: top), .good)
    }

    /// What the motion state waits for, and how near that is.
    private func outlook(_ motion: MotionLook) -> [StyledLine] {
        var lines: [StyledLine] = []
        if let parks = motion.parksIn, let because = motion.parksBecause, motion.stands != nil || parks < 1500 {
            lines.append(countdown(parks, because, stood: motion.stands))
        }
        var line = line(of: "")
        if let needed = motion.evidenceNeeded {
            let then = motion.stands == nil ? "begin a trip" : "end the halt"
            let part = needed > 0 ? motion.evidence / needed : 0
            line.add(
                "\(TopFigures.fixed(motion.evidence, 0)) m of the \(TopFigures.fixed(needed, 0)) m that \(then)")
            if line.columns + 12 <= columns {
                line.add("  ")
                line.add(TopFigures.bar(part, width: 10), part >= 0.5 ? .warning : .faint)
            }
        }
        if let distance = motion.distance, let radius = motion.radius {
            line.addIfItFits(
                "\(TopFigures.fixed(distance, 0)) m from its place (radius \(TopFigures.fixed(radius, 0)) m)",
                distance > radius ? .warning : .faint, columns: columns)
        }
        if let still = motion.stillSpeed {
            let now = model.presentFix == nil ? nil : motion.speed
            let speed = now.map { ", now \(TopFigures.speed($0, in: units))" } ?? ""
            line.add("halts below \(TopFigures.speed(still, in: units)) over 5 s\(speed)", .faint)
        }
        if line.columns > Self.indent { lines.append(line) }
        return lines
    }

    private func countdown(_ parks: Double, _ because: String, stood: Double?) -> StyledLine {
        var line = line(of: "")
        line.add("parks in \(InWords.span(seconds: parks.rounded(.up)))", .warning)
        if let stood {
            line.add("  ")
            line.add(TopFigures.bar(stood / max(1, stood + parks), width: 20), .warning)
            line.addIfItFits("stands for \(InWords.span(seconds: stood))", columns: columns)
        }
        line.addIfItFits("(\(because))", .faint, columns: columns)
        return line
    }

    private func track(_ status: Status) -> [Row] {
        let motion = status.motion
        var first = line(of: "TRACK")
        // Apart: events are kept as well, and each trackable keeps its own.
        first.add("kept \(motion.kept), \(InWords.count(motion.admitted, "fix", "fixes"))")
        if let rate = model.keptRate { first.addIfItFits("\(TopFigures.fixed(rate, 1))/s", columns: columns) }
        if let rule = motion.rule { first.addIfItFits("rule \(rule)", columns: columns) }
        let because = model.look?.engineBecause ?? ""
        let isUsual = ["as published", "the finest of what is published"].contains(because)
        let asked = "\(motion.engine.resolution.brief)\(because.isEmpty ? "" : ": \(because)")"
        first.addIfItFits(isUsual ? "receiver: no special rate" : asked, .faint, columns: columns)
        // The default says nothing where nobody asks for more.
        let published = (model.look?.published ?? []).filter { $0.because != "default" }.prefix(3).enumerated().map {
            index, look in
            Row(
                line: faint(["\(look.trackable): \(look.resolution.brief): \(look.because)"]),
                yields: index == 0 ? Yields.detail : Yields.lesser)
        }
        return [Row(line: first, yields: Yields.never)] + published
    }

    private func queue(_ status: Status) -> [Row] {
        let queue = status.queue
        var first = line(of: "QUEUE")
        first.add(status.waiting == 0 ? "empty" : InWords.count(status.waiting, "location"))
        if let error = queue.diskError { first.addIfItFits(error, .bad, columns: columns) }
        if let bytes = queue.bytes { first.addIfItFits(TopFigures.bytes(bytes), columns: columns) }
        if let held = queue.held, held > 0 { first.addIfItFits("\(held) in memory", columns: columns) }
        if let latency = queue.commitLatency {
            first.addIfItFits("slowest commit \(TopFigures.fixed(latency * 1000, 0)) ms", .faint, columns: columns)
        }
        if queue.clockUntrusted == 1 { first.addIfItFits("host clock not synchronised", .warning, columns: columns) }
        return [Row(line: first, yields: Yields.never)]
    }

    // MARK: Endpoints

    private func endpoints(_ status: Status) -> [Row] {
        let table = EndpointTable(endpoints: status.endpoints, columns: columns, isASCII: isASCII)
        if status.hasNoServer {
            return [
                Row(line: line("no server is configured yet: sudo waypost init", .faint), yields: Yields.never), blank,
            ]
        }
        guard !table.endpoints.isEmpty else { return [] }
        let shown = rows.map { max(1, ($0 - 14) / 4) } ?? Int.max
        var page = [Row(line: table.heading, yields: Yields.never)]
        for (index, entry) in table.endpoints.prefix(shown).enumerated() {
            page.append(
                Row(line: table.row(of: entry), yields: index == 0 ? Yields.never : Yields.endpoint + min(index, 19)))
            // What stands at the top is not repeated.
            let isShown = entry.problem.map { shownProblems.contains("\(entry.name): \($0)") } ?? false
            if let reason = isShown ? table.failures(of: entry) : table.reason(of: entry) {
                let line = line("  " + reason, .faint)
                page.append(Row(line: line, yields: Yields.reason + min(index, 19)))
            }
        }
        let hidden = table.endpoints.count - shown
        if hidden > 0 {
            let failing = table.endpoints.suffix(hidden).count { $0.badness > 0 }
            let words = "  \(hidden) more\(failing > 0 ? " (\(failing) failing)" : ""): press e"
            page.append(Row(line: line(words, .faint), yields: Yields.endpoint))
        }
        return page + unknownEndpoints(status) + [blank]
    }

    /// Those that did not fit into the reply: nothing is known of them.
    private func unknownEndpoints(_ status: Status) -> [Row] {
        guard let more = status.endpointsMore, more > 0 else { return [] }
        return [Row(line: line("  and \(more) more: waypost endpoint list", .faint), yields: Yields.endpoint)]
    }

    /// Every endpoint, with what is wrong and what helps, from where the user has scrolled to.
    /// - Parameter rows: how many there is room for; nil = any number.
    private func allEndpoints(rows: Int?) -> [Row] {
        guard let status = model.status else { return [] }
        let table = EndpointTable(endpoints: status.endpoints, columns: columns, isASCII: isASCII)
        let unknown = unknownEndpoints(status)
        // Beside them stand the heading and what is not shown.
        let room = (rows ?? .max) - 2 - unknown.count
        var entries: [Row] = []
        var below = table.endpoints.count - model.endpointsAbove
        for endpoint in table.endpoints.dropFirst(model.endpointsAbove) {
            let words = [table.reason(of: endpoint), endpoint.advice.map { "do: \($0)" }].compactMap { $0 }
            let lines = [table.row(of: endpoint)] + words.map { line("  " + $0, .faint) }
            guard entries.isEmpty || entries.count + lines.count <= room else { break }
            entries += lines.map { Row(line: $0, yields: Yields.endpoint) }
            below -= 1
        }
        let hidden = [(model.endpointsAbove, "above"), (below, "below")].filter { $0.0 > 0 }
            .map { "\($0.0) more \($0.1)" }
        let rest =
            hidden.isEmpty ? [] : [Row(line: line("  " + hidden.joined(separator: ", "), .faint), yields: Yields.never)]
        return [Row(line: table.heading, yields: Yields.never)] + entries + rest + unknown
    }

    // MARK: Decisions

    private var decisions: [Row] {
        // What the receiver is asked for before its first fix is none.
        let decisions = model.decisions.filter { $0.kind != "receiver" || $0.time != nil }
        guard !decisions.isEmpty else { return [] }
        // The newest decision is worth more than the word above it.
        return [Row(line: line("DECISIONS", .strong), yields: Yields.decision + 1)]
            + decisions.enumerated().map { index, decision in
                Row(line: self.line(of: decision), yields: Yields.decision + min(index, 29))
            }
    }

    private func line(of decision: DecisionLook) -> StyledLine {
        var line = line(of: decision.time.map(clock) ?? "undated")
        let subject = decision.kind == "motion" ? "" : "\(decision.kind): "
        line.add("\(subject)\(decision.what)")
        if let reason = decision.reason, reason != decision.what { line.add(" (\(reason))") }
        let facts: [String?] = [
            decision.since.map { "since \(clock($0))" },
            decision.evidence.map { "evidence \(TopFigures.fixed($0, 0)) m" },
            decision.distance.map { "\(TopFigures.fixed($0, 0)) m away" },
            decision.speed.map { TopFigures.speed($0, in: units) },
            decision.accuracy.map { "±\(TopFigures.metres($0))" },
        ]
        for fact in facts { if let fact { line.addIfItFits(fact, .faint, columns: columns) } }
        return line
    }
}

extension ResolutionValue {
    /// `balanced, 3 s or 10 m`
    fileprivate var brief: String {
        let interval = intervalMs % 1000 == 0 ? TopFigures.span(Double(intervalMs) / 1000) : "\(intervalMs) ms"
        return "\(priority), \(interval) or \(TopFigures.distance(displacement))"
    }
}
