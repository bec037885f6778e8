import Configuration
import Delivery
import EventLoop
import Glibc
import JSON
import NMEA
import Positioning
import Tracking

/// Runs logs through decoding and tracking as the daemon would, as fast as they can be read: no disk, no network.
public struct ReplayLog {
    /// What is printed.
    public enum Format: String, Sendable, CaseIterable {
        /// The story of the drive.
        case text
        /// One object per effect in event-time order, and a summary.
        case jsonl
    }

    private let decoding: NMEADecoder.Settings
    private let tracking: Tracker.Settings
    private let timetable: Timetable

    public init(decoding: NMEADecoder.Settings, tracking: Tracker.Settings, timetable: Timetable = Timetable()) {
        self.decoding = decoding
        self.tracking = tracking
        self.timetable = timetable
    }

    /// - Parameter loaded: whose settings decide; nil = the defaults.
    public init(_ loaded: LoadedConfiguration?) {
        var decoding = loaded?.config.source.decoding ?? NMEADecoder.Settings()
        decoding.live = false
        // Logs are legitimately old: what suits the receiver by default does not suit them.
        if let loaded, !loaded.effective.isWritten("rollover", in: "[source]") { decoding.rollover = .off }
        self.init(
            decoding: decoding,
            tracking: loaded?.config.tracking ?? Tracker.Settings(trackables: [Trackable(id: "device")]),
            timetable: loaded?.config.timetable ?? Timetable())
    }

    /// Reads one log after the other as one stream.
    /// - Throws: `SystemError` when a log cannot be read or the output cannot be written.
    public func run(logs: [String], format: Format, to descriptor: Int32 = STDOUT_FILENO) throws(SystemError) {
        var decoder = NMEADecoder(settings: decoding)
        var clock = LogClock()
        var run = TrackerRun(tracker: Tracker(settings: tracking, restored: nil), timetable: timetable)
        let printer = ReplayPrinter(
            format: format, namesTrackables: tracking.trackables.count > 1, descriptor: descriptor)

        func receive(_ epoch: Epoch) {
            printer.decoded(epoch)
            let at = clock.time(of: epoch)
            // Before the first date the log has no time that anything could run on.
            guard at > .zero else { return }
            run.epochReceived(epoch, at: at) { printer.effect($0, decided: $1) }
        }

        for log in logs {
            try LogFile.read(log) { bytes in
                decoder.decode(bytes, at: .zero) { epoch, _ in receive(epoch) }
                return printer.passOn()
            }
            if let failure = printer.failure { throw failure }
        }
        decoder.endOfInput { epoch, _ in receive(epoch) }
        run.ended { printer.effect($0, decided: $1) }
        printer.end(decoder.counters, run.tracker)
        if let failure = printer.failure { throw failure }
    }
}

/// Renders what a replay yields and passes it on in large pieces.
final class ReplayPrinter {
    private let format: ReplayLog.Format
    private var json: TraceJSON
    private var story = ReplayStory()
    private let output: OutputBuffer
    private var published = 0
    private var first: UTCTime?
    private var last: UTCTime?
    /// The fix that is being handled: what is refused is always it.
    private var fix: Fix?
    /// Writing failed: nothing more is printed.
    private(set) var failure: SystemError?

    init(format: ReplayLog.Format, namesTrackables: Bool, descriptor: Int32) {
        self.format = format
        json = TraceJSON(namesTrackables: namesTrackables)
        output = OutputBuffer(descriptor: descriptor)
    }

    func decoded(_ epoch: Epoch) {
        guard case .fix(let fix) = epoch else { return }
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
            }
            return true
        } catch {
            failure = error
            return false
        }
    }

    func end(_ decoded: NMEACounters, _ tracker: Tracker) {
        switch format {
        case .text: story.end(decoded, tracker.counters, published: published)
        case .jsonl: summary(decoded, tracker.counters, odometer: tracker.state.odometer)
        }
        _ = passOn()
    }

    private func summary(_ decoded: NMEACounters, _ tracked: TrackerCounters, odometer: Double) {
        json.writer.beginObject()
        json.writer.field("type", word: "summary")
        json.writer.field("sentences", decoded.sentences)
        json.writer.field("bytes", decoded.bytes)
        json.writer.field("fixes", decoded.fixes)
        json.writer.field("void_epochs", decoded.voidEpochs)
        json.writer.field("dateless", decoded.dateless)
        json.writer.field("checksum_errors", decoded.checksumErrors)
        json.writer.field("too_long", decoded.tooLong)
        json.writer.field("bad_fields", decoded.badFields)
        json.writer.field("late", decoded.late)
        json.writer.field("admitted", tracked.admitted)
        json.writer.key("rejected")
        json.writer.beginObject()
        for reason in FixFilter.Rejection.allCases where tracked.rejected(reason) > 0 {
            json.writer.key(reason.rawValue)
            json.writer.value(Int64(tracked.rejected(reason)))
        }
        json.writer.endObject()
        json.writer.field("trips", tracked.trips)
        json.writer.field("stops", tracked.stops)
        json.writer.field("halts", tracked.halts)
        json.writer.field("gaps", tracked.gaps)
        json.writer.field("locations", tracked.records)
        json.writer.field("published", published)
        json.writer.field("odometer", odometer, places: 1)
        json.writer.field("first_ms", first?.milliseconds)
        json.writer.field("last_ms", last?.milliseconds)
        json.writer.endObject()
        json.writer.newline()
    }
}
