import Configuration
import EventLoop
import NMEA
import Positioning
import Replay
import Tracking

/// Makes a page of logs that shows what the daemon would have decided, why, and what other settings would have kept.
public struct ReportLog {
    /// Why there is no page.
    public enum Failure: Error, CustomStringConvertible {
        case unreadable(LogFailure)
        /// The logs have no fix with a date.
        case empty
        case memory

        public var description: String {
            switch self {
            case .unreadable(.system(let error)): "\(error)"
            case .unreadable(.content(let problem)): "\(problem)"
            case .empty: "no fix with a date in the log: there is nothing to show"
            case .memory: "memory is short"
            }
        }
    }

    private static let profiles = ["waypost", "waypost-compact"]
    /// Keys of these tables and of those within decide what is kept.
    private static let tables = ["tracking", "sampling", "resolution", "schedule"]

    private let settings: ReplaySettings
    private let entries: [EffectiveConfiguration.Entry]
    private let compared: [(name: String, tracking: Tracker.Settings)]
    private let options: ReportOptions

    /// - Parameters:
    ///   - loaded: whose settings decide; nil = the defaults.
    ///   - compared: configurations of the user's own to compare with, and their names.
    public init(
        _ loaded: LoadedConfiguration?, comparedWith compared: [(name: String, loaded: LoadedConfiguration)] = [],
        options: ReportOptions = ReportOptions()
    ) {
        settings = ReplaySettings(loaded)
        entries = (loaded?.effective.entries ?? []).filter { entry in
            let table = entry.table.drop { $0 == "[" }.prefix { $0 != "." && $0 != "]" }
            return entry.value != nil && Self.tables.contains(String(table))
        }
        self.compared = compared.map { ($0.name, $0.loaded.config.tracking) }
        self.options = options
    }

    /// - Parameters:
    ///   - logs: read one after the other as one stream; `-` is standard input.
    ///   - made: now, Unix milliseconds.
    ///   - advanced: gets how many bytes more were read.
    /// - Returns: an HTML document, and what of the logs was skipped, for people.
    public func page(
        of logs: [String], made: Int64, advanced: (Int) -> Void = { _ in }
    ) throws(Failure) -> (html: [UInt8], notices: [LogProblem]) {
        let (data, notices) = try read(logs, advanced)
        guard let html = ReportPage().html(data, made: made) else { throw .memory }
        return (html, notices)
    }

    func data(of logs: [String]) throws(Failure) -> ReportData { try read(logs) { _ in }.data }

    private func read(
        _ logs: [String], _ advanced: (Int) -> Void
    ) throws(Failure) -> (data: ReportData, notices: [LogProblem]) {
        let whatIfs = WhatIf.list(around: settings.tracking, compared: compared)
        let timeouts = WhatIf.stopTimeouts(around: settings.tracking)
        var runs = whatIfs.map { LogRun($0.tracking, settings.timetable, upload: UploadSize(Self.profiles)) }
        runs += timeouts.map { LogRun($0, settings.timetable) }
        var decoder = LogDecoder(settings: settings.decoding)
        var clock = LogClock()
        var table = EpochTable()

        func receive(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            let row = table.append(epoch)
            // Before the first date the log has no time that anything could run on.
            guard at > .zero else { return }
            for index in runs.indices { runs[index].received(epoch, at: at) }
            if let row, let refusal = runs[0].refusal {
                table.judge(row, EpochTable.Verdict(kind: .refused, reason: refusal.rawValue))
            }
        }

        for log in logs {
            do throws(LogFailure) {
                try decoder.read(log, receive) { count in
                    advanced(count)
                    return true
                }
            } catch { throw .unreadable(error) }
        }
        decoder.end(receive)
        for index in runs.indices { runs[index].ended() }
        guard let last = table.times.last else { throw .empty }
        for point in runs[0].kept {
            guard let row = table.row(at: point.time) else { continue }
            table.judge(row, EpochTable.Verdict(kind: .kept, reason: point.reason))
        }
        let journeys = runs.map { $0.builder.finished(last: last, table) }
        var data = ReportData(
            name: options.title ?? Self.name(of: logs), options: options, table: table, journey: journeys[0],
            outcomes: zip(whatIfs, runs).map { whatIf, run in
                ReportData.Outcome(
                    label: whatIf, kept: run.kept, error: LineError(of: table, along: run.kept, journeys[0].trips),
                    bytes: run.upload?.bytes.first ?? 0, compact: run.upload?.bytes.last ?? 0)
            },
            stopTimeouts: [], decoded: decoder.counters, tracked: runs[0].tracker.counters,
            odometer: runs[0].tracker.state.odometer, geofences: settings.tracking.geofences.fences,
            settings: entries)
        let inForce = (settings.tracking, runs[0], journeys[0])
        let others = zip(timeouts, zip(runs[whatIfs.count...], journeys[whatIfs.count...])).map { ($0, $1.0, $1.1) }
        if !others.isEmpty {
            data.stopTimeouts = ([inForce] + others).map { tracking, run, journey in
                Self.timeout(tracking, run, journey, inForce: settings.tracking.motion.stopTimeout)
            }.sorted { $0.value < $1.value }
        }
        if let radius = options.hideEnds { data.hideEnds(within: radius) }
        return (data, decoder.notices)
    }

    private static func timeout(
        _ tracking: Tracker.Settings, _ run: LogRun, _ journey: Journey, inForce: Duration
    ) -> ReportData.StopTimeout {
        ReportData.StopTimeout(
            value: tracking.motion.stopTimeout, isInForce: tracking.motion.stopTimeout == inForce,
            trips: run.tracker.counters.trips, stops: run.tracker.counters.stops, moving: journey.moving,
            kept: run.kept.count)
    }

    /// `drive` of `/var/log/drive.nmea`.
    private static func name(of logs: [String]) -> String {
        guard let log = logs.first, log != "-" else { return "standard input" }
        let file = log.split(separator: "/").last.map(String.init) ?? log
        let stem = file.lastIndex(of: ".").map { String(file[..<$0]) } ?? file
        return logs.count > 1 ? "\(stem) and \(logs.count - 1) more" : stem
    }
}

extension ReportData {
    /// Leaves out all positions near the ends of trips and the places of stops, and what may name them.
    fileprivate mutating func hideEnds(within radius: Double) {
        var ends = journey.stops.compactMap(\.place)
        for trip in journey.trips {
            for time in [trip.start, trip.end] {
                let row = min(table.row(from: time), table.count - 1)
                if row >= 0 { ends.append(table.coordinate(row)) }
            }
        }
        table.hide { coordinate in ends.contains { $0.distance(to: coordinate) <= radius } }
        for index in journey.stops.indices { journey.stops[index].place = nil }
        geofences = []
        journey.crossings = []
    }
}
