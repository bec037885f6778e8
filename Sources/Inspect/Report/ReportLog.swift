import Configuration
import WaypostCore
import WaypostHost
import WaypostNMEA
import WaypostTracking

/// Makes a page of logs that shows what the daemon would have decided, why, and what other settings would have kept.
package struct ReportLog {
    /// Why there is no page.
    package enum Failure: Error, CustomStringConvertible {
        case unreadable(LogFailure)
        /// The logs have no fix with a date.
        case empty
        /// All of it lies within so many metres of the ends of trips.
        case hidden(Double)
        case memory

        package var description: String {
            switch self {
            case .unreadable(.system(let error)): "\(error)"
            case .unreadable(.content(let problem)): "\(problem)"
            case .empty: "no fix with a date in the log: there is nothing to show"
            case .hidden(let radius):
                "every position of the log lies within \(InWords.distance(radius)) of the ends of trips (--hide-ends): "
                    + "there is nothing to show"
            case .memory: "memory is short"
            }
        }
    }

    private static let profiles = ["waypost", "waypost-compact"]
    /// Keys of these tables and of those within decide what is kept.
    private static let tables = ["tracking", "sampling", "resolution", "schedule"]

    private let settings: ReplaySettings
    private let entries: [EffectiveConfiguration.Entry]
    private let compared: [ComparedSettings]
    private let options: ReportOptions

    /// - Parameters:
    ///   - loaded: whose settings decide; nil = the defaults.
    ///   - compared: configurations of the user's own to compare with, and their names.
    package init(
        _ loaded: LoadedConfiguration?, comparedWith compared: [(name: String, loaded: LoadedConfiguration)] = [],
        options: ReportOptions = ReportOptions()
    ) {
        let settings = ReplaySettings(loaded)
        self.settings = settings
        entries = (loaded?.effective.entries ?? []).filter { $0.value != nil && $0.isIn(Self.tables) }
        self.compared = compared.map {
            ComparedSettings($0.name, $0.loaded, with: loaded, settings, Self.tables + ["geofence", "geofences"])
        }
        self.options = options
    }

    /// - Parameters:
    ///   - logs: read one after the other as one stream; `-` is standard input.
    ///   - made: now, Unix milliseconds.
    ///   - advanced: gets how many bytes more were read.
    /// - Returns: an HTML document, and what of the logs was skipped, for people.
    package func page(
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
        let whatIfs = WhatIf.list(around: settings, compared: compared.filter { !$0.isSame })
        var runs = whatIfs.map {
            LogRun($0.settings.tracking, $0.settings.timetable, upload: UploadSize(Self.profiles))
        }
        runs += WhatIf.stopTimeouts(around: settings.tracking).map { LogRun($0, settings.timetable) }
        var table = EpochTable()
        let decoder = try decode(logs, &runs, &table, advanced)
        table.keepLongestRecording()
        guard let first = table.times.first, let last = table.times.last else { throw .empty }
        for point in runs[0].kept {
            guard let row = table.row(at: point.time) else { continue }
            table.judge(row, EpochTable.Verdict(kind: .kept, reason: point.reason))
        }
        let journey = runs[0].journey(in: table)
        var data = ReportData(
            name: options.title ?? Self.name(of: logs), options: options, table: table, first: first, last: last,
            silence: table.longestSilence, journey: journey,
            outcomes: zip(whatIfs, runs).map { Self.outcome($0, $1, table, journey) },
            same: compared.filter(\.isSame).map(\.name),
            stopTimeouts: Self.stopTimeouts([runs[0]] + runs[whatIfs.count...], table), kinds: runs[0].kinds,
            isNMEA: decoder.isNMEA, decoded: decoder.counters, tracked: runs[0].tracker.counters,
            odometer: runs[0].tracker.state.odometer,
            geofences: ShownFences.of(settings.tracking.geofences.fences, table, journey.crossings),
            settings: entries)
        if let radius = options.hideEnds {
            data.hideEnds(within: radius)
            guard data.table.count > 0 else { throw .hidden(radius) }
        }
        return (data, decoder.notices)
    }

    /// Reads the logs once, under the settings of each run; those of the first decide what became of an epoch.
    private func decode(
        _ logs: [String], _ runs: inout [LogRun], _ table: inout EpochTable, _ advanced: (Int) -> Void
    ) throws(Failure) -> LogDecoder {
        var decoding = settings.decoding
        decoding.readsEverySurvey = true
        var decoder = LogDecoder(settings: decoding)
        var clock = LogClock()

        func receive(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            // Before the first date the log has no time that anything could run on.
            guard at > .zero else { return }
            for index in runs.indices { runs[index].received(epoch, at: at) }
            if let time = runs[0].setBackTo { table.rewind(to: time) }
            if let row = table.append(epoch), let verdict = runs[0].verdict { table.judge(row, verdict) }
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
        if let nothing = decoder.nothing { throw .unreadable(.content(nothing)) }
        for index in runs.indices { runs[index].ended() }
        return decoder
    }

    private static func outcome(
        _ whatIf: WhatIf, _ run: LogRun, _ table: EpochTable, _ journey: Journey
    ) -> ReportData.Outcome {
        ReportData.Outcome(
            whatIf: whatIf, kept: run.kept, published: run.published,
            error: LineError(of: table, along: run.kept, in: journey, heldAsIn: run.journey(in: table)),
            bytes: run.upload?.bytes.first ?? 0,
            compact: run.upload?.bytes.last ?? 0)
    }

    /// - Parameter runs: the first is in force; without others there is nothing to compare.
    private static func stopTimeouts(_ runs: [LogRun], _ table: EpochTable) -> [ReportData.StopTimeout] {
        guard runs.count > 1 else { return [] }
        return runs.enumerated().map { index, run in
            ReportData.StopTimeout(
                value: run.settings.motion.stopTimeout, isInForce: index == 0, trips: run.tracker.counters.trips,
                stops: run.tracker.counters.stops, moving: run.journey(in: table).moving, kept: run.published)
        }.sorted { $0.value < $1.value }
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
        var places = journey.stops.compactMap(\.place)
        for trip in journey.trips {
            for time in [trip.start, trip.end] {
                places += table.believedRows(around: time).map(table.coordinate)
            }
        }
        let hidden = HiddenPlaces(places, radius)
        table.hide { hidden.contains($0) }
        for index in journey.stops.indices { journey.stops[index].place = nil }
        geofences = []
        journey.crossings = []
    }
}
