import Glibc
import WaypostCore
import WaypostNMEA

/// The lines of logs: sentences of NMEA and objects of gpsd, mixed as they may be, behind time stamps and prefixes, between
/// comments, NULs and lines that were cut. Each line is judged by itself.
///
/// Sentences are decoded where they stand, in pieces as they come. From a `{` on, which sentences hardly ever have, a line is
/// held until the bracket that closes it. Where that is no object of gpsd, the rest of the line is searched for one. A `{` at
/// the end of a line begins an object over several lines, as `jq` writes it.
struct LogLines {
    /// Of an object or line that is held: gpsd's own have at most 10 240 bytes.
    private static let heldMax = 65_536
    /// Beginnings of objects in a row that are tried in one line and are none.
    private static let objectsMax = 8

    private let settings: NMEADecoder.Settings
    private var nmea: NMEADecoder
    /// nil before the first object of gpsd of a log.
    private var gpsd: GPSDLog?
    /// Of gpsd in the logs before.
    private var finished = NMEACounters()
    private var pairing = EpochPairing()
    private var misread = Misread()
    /// An object of gpsd was read in any log.
    private(set) var hasObjects = false
    private var bytes = 0

    private enum Place {
        /// Outside of what may be an object.
        case open
        /// After a `{`, up to the bracket that closes it; the bytes since are in `held`.
        case object(Brackets)
        /// The same up to the end of the line: the object that began first is none of gpsd's.
        case holding
        /// The rest of a line that is too long to be held.
        case overlong
    }
    private var place = Place.open
    private var held: [UInt8] = []

    /// What is held is a bracket that ended a line, or goes on from one.
    private var isOverLines: Bool {
        held.dropFirst().first { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }.map { $0 == 0x0A } ?? !held.isEmpty
    }

    init(settings: NMEADecoder.Settings) {
        self.settings = settings
        nmea = NMEADecoder(settings: settings)
    }

    var counters: NMEACounters {
        var total = nmea.counters
        total.add(finished)
        if let gpsd { total.add(gpsd.counters) }
        total.bytes = bytes
        total.unknownLines = misread.unknownLines
        pairing.correct(&total)
        return total
    }

    /// Another log follows.
    mutating func begin() {
        misread.begin(nmea.counters)
        pairing.begin()
    }

    mutating func read(_ bytes: Span<UInt8>, _ emit: (Epoch) -> Void) {
        self.bytes += bytes.count
        var position = 0
        while position < bytes.count {
            switch place {
            case .open:
                let end = bytes.first(UInt8(ascii: "{"), from: position) ?? bytes.count
                if end > position { pass(bytes.extracting(position..<end), emit) }
                position = end
                if end < bytes.count { place = .object(Brackets()) }
            case .object(var brackets):
                var (index, isClosed) = (position, false)
                let end = min(bytes.count, position + Self.heldMax - held.count)
                while index < end, !isClosed, bytes[index] != 0x0A || isOverLines {
                    isClosed = brackets.closed(by: bytes[index])
                    held.append(bytes[index])
                    index += 1
                }
                position = index
                place = .object(brackets)
                if isClosed {
                    endObject(emit)
                } else if index < bytes.count {
                    place = .holding
                }
            case .holding:
                let lineEnd = bytes.first(0x0A, from: position)
                let end = min(lineEnd ?? bytes.count, position + Self.heldMax - held.count)
                for index in position..<end { held.append(bytes[index]) }
                position = end
                if end == lineEnd {
                    endHeld(emit)
                } else if held.count == Self.heldMax {
                    passHeld(emit)
                    place = .overlong
                }
            case .overlong:
                let end = bytes.first(0x0A, from: position) ?? bytes.count
                if end > position { pass(bytes.extracting(position..<end), emit) }
                position = end
                if end < bytes.count { place = .open }
            }
        }
    }

    /// The log is over.
    /// - Returns: what of it was not understood.
    mutating func finish(_ emit: (Epoch) -> Void) -> [Misread.Finding] {
        switch place {
        case .object, .holding: endHeld(emit)
        case .open, .overlong: place = .open
        }
        misread.endLine()
        if pairing.newest == .gpsd { flushNMEA(emit) }
        flushGPSD(emit)
        if let gpsd {
            finished.add(gpsd.counters)
            misread.count(.member, gpsd.counters.badFields)
        }
        gpsd = nil
        return misread.findings(nmea.counters, pairing.notice)
    }

    /// No log follows.
    mutating func end(_ emit: (Epoch) -> Void) { flushNMEA(emit) }

    // MARK: Sentences

    /// Bytes that are no object of gpsd, in order.
    private mutating func pass(_ bytes: Span<UInt8>, _ emit: (Epoch) -> Void) {
        let before = nmea
        if hasObjects {
            var epochs: [Epoch] = []
            nmea.decode(bytes, at: .zero) { epoch, _ in epochs.append(epoch) }
            for epoch in epochs {
                if !pairing.heard(.gpsd) { flushGPSD(emit) }
                tell(epoch, .nmea, emit)
            }
            if nmea.counters.sentences > before.counters.sentences { pairing.spoke(.nmea) }
        } else {
            nmea.decode(bytes, at: .zero) { epoch, _ in emit(epoch) }
        }
        misread.passed(bytes, before, nmea.counters)
    }

    private mutating func passHeld(_ emit: (Epoch) -> Void) {
        let bytes = held
        held.removeAll(keepingCapacity: true)
        misread.mayBeObject()
        pass(bytes.span, emit)
    }

    // MARK: Objects

    /// The bracket has come that closes what is held.
    private mutating func endObject(_ emit: (Epoch) -> Void) {
        guard decode(held, emit) else {
            place = .holding
            return
        }
        misread.isOver(lines: held.count { $0 == 0x0A })
        held.removeAll(keepingCapacity: true)
        place = .open
        understood(emit)
    }

    /// The line that is held has ended: it is searched for objects behind one that was cut off.
    private mutating func endHeld(_ emit: (Epoch) -> Void) {
        place = .open
        let line = held
        held.removeAll(keepingCapacity: true)
        var (passed, from, failures) = (0, 0, 0)
        while failures < Self.objectsMax, let start = line[from...].firstIndex(of: UInt8(ascii: "{")) {
            from = start + 1
            failures += 1
            var brackets = Brackets()
            guard let last = line[start...].firstIndex(where: { brackets.closed(by: $0) }) else { continue }
            if start > passed { pass(Array(line[passed..<start]).span, emit) }
            passed = start
            if decode(Array(line[start...last]), emit) {
                misread.isOver(lines: line[start...last].count { $0 == 0x0A })
                understood(emit)
                (passed, from, failures) = (last + 1, last + 1, 0)
            }
        }
        guard passed < line.count else { return }
        misread.mayBeObject()
        pass(Array(line[passed...]).span, emit)
    }

    /// An object was read, which cuts off a sentence before it.
    private mutating func understood(_ emit: (Epoch) -> Void) {
        pass([0].span, emit)
        misread.isUnderstood()
    }

    private mutating func decode(_ object: [UInt8], _ emit: (Epoch) -> Void) -> Bool {
        var log = gpsd ?? GPSDLog(settings: settings)
        gpsd = nil
        let badFields = log.counters.badFields
        var epochs: [Epoch] = []
        let isRead = log.decode(object) { epochs.append($0) }
        if log.counters.badFields > badFields { misread.example(.member, object.span) }
        if isRead || hasObjects { gpsd = log }
        guard isRead else { return false }
        hasObjects = true
        pairing.hasObject(line: misread.number)
        for epoch in epochs {
            if !pairing.heard(.nmea) { flushNMEA(emit) }
            tell(epoch, .gpsd, emit)
        }
        if log.isReport { pairing.spoke(.gpsd) }
        return true
    }

    // MARK: Both

    private mutating func flushNMEA(_ emit: (Epoch) -> Void) {
        var epochs: [Epoch] = []
        nmea.endOfInput { epoch, _ in epochs.append(epoch) }
        for epoch in epochs { tell(epoch, .nmea, emit) }
    }

    private mutating func flushGPSD(_ emit: (Epoch) -> Void) {
        guard var log = gpsd else { return }
        gpsd = nil
        var epochs: [Epoch] = []
        log.end { epochs.append($0) }
        gpsd = log
        for epoch in epochs { tell(epoch, .gpsd, emit) }
    }

    private mutating func tell(_ epoch: Epoch, _ form: EpochPairing.Form, _ emit: (Epoch) -> Void) {
        guard hasObjects else { return emit(epoch) }
        if pairing.isNew(epoch, form) { emit(epoch) }
    }
}

/// Finds the bracket that closes the first one, outside of texts.
private struct Brackets {
    private var depth = 0
    private var isText = false
    private var isEscaped = false

    mutating func closed(by byte: UInt8) -> Bool {
        switch byte {
        case _ where isEscaped: isEscaped = false
        case UInt8(ascii: "\\") where isText: isEscaped = true
        case UInt8(ascii: "\""): isText.toggle()
        case UInt8(ascii: "{") where !isText: depth += 1
        case UInt8(ascii: "}") where !isText:
            depth -= 1
            return depth == 0
        default: break
        }
        return false
    }
}

extension Span<UInt8> {
    /// The first place of `byte` from `position` on.
    func first(_ byte: UInt8, from position: Int) -> Int? {
        withUnsafeBufferPointer { buffer -> Int? in
            guard position < buffer.count, let base = buffer.baseAddress,
                let found = memchr(base + position, Int32(byte), buffer.count - position)
            else { return nil }
            return UnsafeRawPointer(found) - UnsafeRawPointer(base)
        }
    }
}

/// Objects of gpsd out of a log, on the clock of the log.
struct GPSDLog {
    private var decoder: GPSDDecoder
    private var clock = LogClock()
    private var now = EventTime.zero
    private var hasStarted = false
    /// The last object was a report of the receiver in use.
    private(set) var isReport = false

    init(settings: NMEADecoder.Settings) { decoder = GPSDDecoder(settings: settings) }

    var counters: NMEACounters { decoder.counters }

    /// - Returns: whether it is an object of gpsd.
    mutating func decode(_ object: [UInt8], _ emit: (Epoch) -> Void) -> Bool {
        let line = decoder.decodeIfReadable(object, at: now) { epoch in
            _ = clock.time(of: epoch)
            emit(epoch)
        }
        isReport = line == .report
        advance()
        return line != .unreadable
    }

    mutating func end(_ emit: (Epoch) -> Void) {
        decoder.endOfInput { epoch in
            _ = clock.time(of: epoch)
            emit(epoch)
        }
    }

    /// While another receiver reports, its time shows how long the one in use has been without a fix.
    private mutating func advance() {
        guard let reached = clock.now else { return }
        if !hasStarted {
            hasStarted = true
            now = reached
            decoder.clockStarted(at: now)
        }
        let others = decoder.othersTime.map { clock.time(of: $0) } ?? reached
        now = max(now, reached, others)
    }
}

/// Finds the epochs that a log has in both forms, as `gpspipe -r -w` writes them: the first of each pair counts.
struct EpochPairing {
    enum Form { case nmea, gpsd }

    private struct Instant {
        var time: UTCTime?
        var timeOfDay: Int
        var isFix: Bool

        func isSame(as other: Instant) -> Bool {
            if let time, let otherTime = other.time { return time == otherTime }
            return timeOfDay == other.timeOfDay
        }
    }

    /// The other form may be this many epochs behind.
    private static let remembered = 8

    private var recent: (nmea: [Instant], gpsd: [Instant]) = ([], [])
    /// Whether each form has said anything since the other one gave an epoch. One that has not is over, and what it has
    /// open comes first.
    private var hasSpoken = (nmea: true, gpsd: true)
    /// The form of the newest line; nil before both were there.
    private(set) var newest: Form?
    private var dropped = NMEACounters()
    /// Epochs that were dropped in the logs before.
    private var droppedBefore = 0
    /// The line of the first object of gpsd in the log.
    private var firstLine: Int?

    func heard(_ form: Form) -> Bool { form == .nmea ? hasSpoken.nmea : hasSpoken.gpsd }

    mutating func spoke(_ form: Form) {
        newest = form
        switch form {
        case .nmea: hasSpoken.nmea = true
        case .gpsd: hasSpoken.gpsd = true
        }
    }

    /// Another log follows.
    mutating func begin() {
        firstLine = nil
        droppedBefore = dropped.fixes + dropped.voidEpochs
    }

    mutating func hasObject(line: Int) { firstLine = firstLine ?? line }

    /// - Returns: false where the other form has given it, with a fix if this one has one.
    mutating func isNew(_ epoch: Epoch, _ form: Form) -> Bool {
        let others: [Instant]
        switch form {
        case .nmea: (others, hasSpoken.gpsd) = (recent.gpsd, false)
        case .gpsd: (others, hasSpoken.nmea) = (recent.nmea, false)
        }
        guard let instant = Self.instant(epoch) else { return true }
        if others.contains(where: { instant.isSame(as: $0) && ($0.isFix || !instant.isFix) }) {
            if instant.isFix { dropped.fixes += 1 } else { dropped.voidEpochs += 1 }
            if instant.isFix, instant.time == nil { dropped.dateless += 1 }
            return false
        }
        switch form {
        case .nmea: Self.remember(instant, &recent.nmea)
        case .gpsd: Self.remember(instant, &recent.gpsd)
        }
        return true
    }

    /// What was dropped is no fix of the log.
    func correct(_ counters: inout NMEACounters) {
        counters.fixes -= dropped.fixes
        counters.voidEpochs -= dropped.voidEpochs
        counters.dateless -= dropped.dateless
    }

    /// For people; nil where no epoch came twice.
    var notice: Misread.Finding? {
        let count = dropped.fixes + dropped.voidEpochs - droppedBefore
        guard let firstLine, count > 0 else { return nil }
        return Misread.Finding(
            line: firstLine, words: "the same measurements in NMEA and in gpsd's JSON, of which one of each counts",
            count: count, rest: "such pairs")
    }

    private static func remember(_ instant: Instant, _ recent: inout [Instant]) {
        if recent.count == remembered { recent.removeFirst() }
        recent.append(instant)
    }

    /// nil for an epoch without a time.
    private static func instant(_ epoch: Epoch) -> Instant? {
        switch epoch {
        case .fix(let fix): Instant(time: fix.time, timeOfDay: fix.timeOfDay, isFix: true)
        case .void(let void): void.timeOfDay.map { Instant(time: void.time, timeOfDay: $0, isFix: false) }
        }
    }
}
