import Configuration
import Glibc
import WaypostCore
import WaypostHost
import WaypostNMEA
import WaypostTracking

/// Runs logs through decoding and tracking as the daemon would, as fast as they can be read: no disk, no network.
package struct ReplayLog {
    /// What is printed.
    package enum Format: String, Sendable, CaseIterable {
        /// The story of the drive.
        case text
        /// One object per effect in event-time order, and a summary.
        case jsonl
        /// Kept locations, as in ``TrackFormat``.
        case gpx, geojson, csv, kml
    }

    private let settings: ReplaySettings

    package init(_ settings: ReplaySettings) { self.settings = settings }

    /// - Parameter loaded: whose settings decide; nil = the defaults.
    package init(_ loaded: LoadedConfiguration?) { self.init(ReplaySettings(loaded)) }

    /// Reads one log after the other as one stream.
    /// - Parameters:
    ///   - beacons: what was sighted meanwhile.
    ///   - folder: for temporary files.
    ///   - stamp: see `ReplayStory`.
    /// - Returns: what was skipped, for people, with file and line.
    @discardableResult package func run(
        logs: [String], beacons: BeaconLog? = nil, format: Format, to descriptor: Int32 = STDOUT_FILENO,
        folder: String = "/tmp", stamp: (@Sendable (UTCTime) -> String)? = nil
    ) throws(LogFailure) -> [LogProblem] {
        var decoder = LogDecoder(settings: settings.decoding)
        var clock = LogClock()
        var run = TrackerRun(
            tracker: Tracker(settings: settings.tracking, restored: nil), timetable: settings.timetable)
        var beacons = beacons.map { BeaconReplay($0, settings.beacons) }
        let printer = try ReplayPrinter(
            format: format, namesTrackables: settings.tracking.trackables.count > 1,
            story: ReplayStory(units: settings.units, stamp: stamp), descriptor: descriptor, folder: folder)
        let progress = ProgressLine(.bytes, total: LogFile.bytes(logs), output: descriptor)

        func receive(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            printer.decoded(epoch, at: at)
            // Before the first date the log has no time that anything could run on.
            guard at > .zero else { return }
            beacons?.passed(before: at, clock, &run) { printer.effect($0, decided: $1) }
            run.epochReceived(epoch, at: at) { printer.effect($0, decided: $1) }
        }

        for log in logs {
            try decoder.read(log, receive) {
                progress?.advanced(by: $0)
                return printer.passOn()
            }
            if let failure = printer.failure { throw .system(failure) }
        }
        progress?.end()
        decoder.end(receive)
        if let nothing = decoder.nothing { throw .content(nothing) }
        beacons?.ended()
        run.ended { printer.effect($0, decided: $1) }
        printer.end(decoder.counters, isNMEA: decoder.isNMEA, run.tracker)
        if let failure = printer.failure { throw .system(failure) }
        return decoder.notices + [beacons?.notice].compactMap(\.self)
    }
}

/// Renders what a replay yields and passes it on in large pieces.
final class ReplayPrinter {
    private let format: ReplayLog.Format
    private var json: TraceJSON
    private var story: ReplayStory
    private let output: OutputBuffer
    private let export: TrackExport?
    private var published = 0
    private var first: UTCTime?
    private var last: UTCTime?
    /// The fix that is being handled: what is refused is always it.
    private var fix: Fix?
    private static let faultsMax = 8
    private var watch = ReceiverWatch()
    /// What was wrong with the receiver's fixes.
    private var faults: [ReceiverWatch.Fault] = []
    /// Writing failed: nothing more is printed.
    private(set) var failure: SystemError?

    init(
        format: ReplayLog.Format, namesTrackables: Bool, story: ReplayStory, descriptor: Int32, folder: String
    ) throws(LogFailure) {
        self.format = format
        self.story = story
        json = TraceJSON(namesTrackables: namesTrackables)
        let output = OutputBuffer(descriptor: descriptor)
        self.output = output
        do throws(SystemError) {
            export = try TrackFormat(rawValue: format.rawValue).map { (form) throws(SystemError) in
                try TrackExport(form, to: output, namesTrackables: namesTrackables, folder: folder)
            }
        } catch {
            throw .system(error)
        }
    }

    func decoded(_ epoch: Epoch, at: EventTime) {
        guard case .fix(let fix) = epoch else { return }
        watch.received(fix, at: at)
        if let fault = watch.fault, !faults.contains(where: { $0.words == fault.words }), faults.count < Self.faultsMax
        {
            faults.append(fault)
        }
        self.fix = fix
        guard let time = fix.time else { return }
        if first == nil { first = time }
        last = time
    }

    func effect(_ effect: Effect, decided: UTCTime?) {
        if case .record(let location) = effect, location.published { published += 1 }
        switch format {
        case .jsonl:
            if case .count(.rejected(let reason)) = effect, let fix {
                json.refused(fix, reason, decided: decided)
            } else {
                json.effect(effect, decided: decided)
            }
        case .text: story.effect(effect, decided: decided)
        case .gpx, .geojson, .csv, .kml: exported(effect)
        }
    }

    private func exported(_ effect: Effect) {
        guard failure == nil else { return }
        do throws(SystemError) {
            switch effect {
            case .announceMotion(let change) where !change.moving: export?.stopped(since: change.since)
            case .record(let location): try export?.add(location)
            default: break
            }
        } catch {
            failure = error
        }
    }

    /// Writes what has come together; false when the reader has gone.
    func passOn() -> Bool {
        guard failure == nil else { return false }
        do throws(SystemError) {
            switch format {
            case .jsonl:
                try output.write(json.writer.bytes)
                json.writer.removeAll()
            case .text:
                try output.write(Array(story.text.utf8))
                story.text = ""
            case .gpx, .geojson, .csv, .kml: break
            }
            return true
        } catch {
            failure = error
            return false
        }
    }

    func end(_ decoded: NMEACounters, isNMEA: Bool, _ tracker: Tracker) {
        switch format {
        case .text: story.end(decoded, isNMEA: isNMEA, tracker.counters, published: published, faults: faults)
        case .jsonl:
            TraceJSON.summary(
                decoded, tracker.counters, published: published, odometer: tracker.state.odometer,
                first: first?.milliseconds, last: last?.milliseconds, faults: faults, to: &json.writer)
            json.writer.newline()
        case .gpx, .geojson, .csv, .kml: endExport()
        }
        _ = passOn()
    }

    private func endExport() {
        guard failure == nil else { return }
        do throws(SystemError) { try export?.end() } catch { failure = error }
    }
}
