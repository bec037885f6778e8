@testable import Sensors
@testable import WaypostCore
@testable import WaypostNMEA
@testable import WaypostTracking

/// libFuzzer entry: whatever gpsd, or who answers in its place, tells in whatever order and pieces, what is kept of its texts
/// stays within a number of bytes, each epoch is told once with values that a receiver can have, and the tracker takes them.
/// The last two bytes are the seed of the pieces and pauses, so that a recording is an input as it stands.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzGPSD(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 2 else { return 0 }
    var dice = Dice(state: UInt64(data[size - 2]) << 8 | UInt64(data[size - 1]))
    var session = Session(&dice)
    session.run(Array(UnsafeBufferPointer(start: data, count: size - 2)), &dice)
    return 0
}

private struct Dice {
    var state: UInt64

    mutating func below(_ limit: UInt64) -> Int64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int64((state >> 33) % limit)
    }
}

private struct Session {
    /// 32 devices with a path and a driver of 256 bytes, some texts more, and the words around them.
    private static let textMax = 32 * 512 + 64 * 512
    private static let longestLine = 2048

    private var stream: GPSDStream
    private var run: TrackerRun
    private var now = EventTime(nanoseconds: 1_000_000_000)
    private var epochs = 0

    init(_ dice: inout Dice) {
        let device = dice.below(3) == 0 ? "/dev/ttyACM0" : nil
        let isLocal = dice.below(2) == 0
        stream = GPSDStream(
            settings: .init(live: true), device: device, staleness: .seconds(5),
            isUnplugged: { isLocal && $0.hasSuffix("9") })
        var settings = Tracker.Settings(trackables: [Trackable(id: "van")])
        settings.tripSummary = true
        settings.keepEngineFixes = true
        run = TrackerRun(tracker: Tracker(settings: settings, restored: nil))
    }

    mutating func run(_ bytes: [UInt8], _ dice: inout Dice) {
        tell { stream, now, events in
            stream.opening(&events)
            stream.opened(at: now, &events)
        }
        var buffer = LineBuffer(longestLine: Self.longestLine)
        var rest = bytes[...]
        var lines: [[UInt8]] = []
        while true {
            while let line = buffer.nextLine() {
                lines.append(line)
                received(line, &dice)
                if lines.count % 16 == 0 { checkTexts() }
            }
            let piece = dice.below(4) == 0 ? 1 + dice.below(8) : 1 + dice.below(1500)
            let isTaken = buffer.fill { space in
                let part = rest.prefix(min(space.count, Int(piece)))
                space.copyBytes(from: part)
                rest = rest.dropFirst(part.count)
                return part.count
            }
            guard let count = isTaken, count > 0 else { break }
        }
        demand(
            lines == whole(bytes), "the lines depend on the pieces: \(lines.count) of \(whole(bytes).count)")
        checkTexts()
        tell { stream, now, events in stream.lost("gpsd closed the connection", at: now, &events) }
        run.ended { Self.check($0, $1) }
        let counters = stream.decoder.counters
        demand(counters.fixes + counters.voidEpochs == epochs, "epochs are not counted")
        demand(counters.sentences + counters.badBytes == lines.count, "lines are not counted")
        let state = run.tracker.state
        demand(StoredState(bytes: state.bytes) == state, "the state does not come back")
        demand(state.isUsable, "a state that cannot be used")
    }

    /// The lines up to one that is too long.
    private func whole(_ bytes: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
            guard line.count < Self.longestLine else { break }
            lines.append(Array(line.last == 0x0D ? line.dropLast() : line))
        }
        return lines
    }

    private mutating func received(_ line: [UInt8], _ dice: inout Dice) {
        tell { stream, now, events in stream.received(line, at: now, &events) }
        let pauses: [Int64] = [0, 0, 10, 120, 350, 1000, 7000, 100_000]
        now = now + .milliseconds(pauses[Int(dice.below(8))])
        var turns = 0
        while let due = stream.nextDeadline, due <= now {
            turns += 1
            demand(turns < 10, "a deadline that does not move")
            tell { stream, now, events in
                stream.restEnded(at: now)
                stream.deadlineReached(at: now, &events)
                if stream.wantsDevices { stream.askedForDevices() }
            }
        }
    }

    private mutating func tell(_ change: (inout GPSDStream, EventTime, inout [SourceEvent]) -> Void) {
        var events: [SourceEvent] = []
        change(&stream, now, &events)
        for event in events {
            switch event {
            case .epoch(let epoch, let clock, _):
                epochs += 1
                guard case .arrival(let at) = clock else { fatalError("an epoch on another clock") }
                demand(at <= now, "an epoch of later")
                if case .fix(let fix) = epoch { demandPossible(fix) }
                run.epochReceived(epoch, at: at) { Self.check($0, $1) }
            case .stateChanged(let state):
                if case .lost(let reason) = state { demand(reason.utf8.count < 20_000, "a reason without end") }
                run.handle(.sourceStateChanged(state), at: now) { Self.check($0, $1) }
            case .notice(let words): demand(words.utf8.count < 2000, "words without end")
            case .caughtUp: fatalError("there is no file")
            }
        }
    }

    private static func check(_ effect: Effect, _ time: UTCTime?) {
        guard case .record(let location) = effect else { return }
        demand(location.odometer.isFinite && location.odometer >= 0, "an odometer of \(location.odometer)")
        demand(abs(Int(location.coordinate.latitudeE7)) <= 900_000_000, "a record that is not on Earth")
    }

    private func checkTexts() {
        var text = 0
        count(Mirror(reflecting: stream), &text)
        demand(text <= Self.textMax, "\(text) bytes of text are kept")
    }

    /// Bytes of all texts that something keeps.
    private func count(_ mirror: Mirror, _ bytes: inout Int) {
        for (_, value) in mirror.children {
            if let text = value as? String {
                bytes += text.utf8.count
            } else {
                count(Mirror(reflecting: value), &bytes)
            }
        }
    }
}
