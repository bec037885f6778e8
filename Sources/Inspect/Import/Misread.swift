import Glibc
import WaypostCore
import WaypostNMEA

/// What of the lines of a log was not understood: how often, and the first example of each kind.
struct Misread {
    /// For people.
    struct Finding {
        var line: Int
        var words: String
        var count: Int
        /// Of all of them, if there are several.
        var rest: String
    }

    enum Kind: Int, CaseIterable {
        case line, object, member, checksum, noChecksum, tooLong, cut, field

        fileprivate var words: (example: String, all: String) {
            switch self {
            case .line: ("neither a sentence nor an object of gpsd", "such lines were skipped")
            case .object: ("no JSON object of gpsd", "such lines were skipped")
            case .member: ("an unreadable member", "such members were left out")
            case .checksum: ("a bad checksum", "such sentences were skipped")
            case .noChecksum: ("no checksum", "such sentences were skipped")
            case .tooLong: ("too long for a sentence", "such sentences were skipped")
            case .cut: ("cut off", "such sentences were skipped")
            case .field: ("an unreadable field", "such fields were left out")
            }
        }

        /// Those that the decoder of sentences counts.
        fileprivate static let counted: [(Kind, KeyPath<NMEACounters, Int> & Sendable)] = [
            (.checksum, \.checksumErrors), (.noChecksum, \.missingChecksums), (.tooLong, \.tooLong), (.cut, \.badBytes),
            (.field, \.badFields),
        ]
    }

    /// Bytes of an example that are shown.
    private static let exampleMax = 100

    /// The line that is being read, from 1.
    private(set) var number = 1
    /// Lines that were no sentence and no object, of all logs.
    private(set) var unknownLines = 0
    private var examples = [(line: Int, text: String)?](repeating: nil, count: Kind.allCases.count)
    /// Kinds of which the line that is being read is the first example: it is shown as a whole.
    private var pending: [Kind] = []
    private var counts = [Int](repeating: 0, count: Kind.allCases.count)
    /// Of the decoder of sentences when the log began.
    private var base = NMEACounters()
    /// The beginning of the line that is being read, from the pieces before.
    private var head: [UInt8] = []
    private var isEmpty = true
    /// Something in the line is known, or counted as something else.
    private var isKnown = false
    private var isObject = false
    /// The log ended within a line of sentences: the next log may go on with it.
    private var continues = false
    private var isComment = false

    mutating func begin(_ counters: NMEACounters) {
        let before = self
        self = Misread()
        unknownLines = before.unknownLines
        isKnown = before.continues
        base = counters
    }

    /// An object of gpsd has so many ends of lines in it.
    mutating func isOver(lines: Int) { number += lines }

    /// The line has an object of gpsd.
    mutating func isUnderstood() { isKnown = true }

    /// The line has what begins like an object, and is none.
    mutating func mayBeObject() { isObject = true }

    mutating func count(_ kind: Kind, _ count: Int) { counts[kind.rawValue] += count }

    /// The first one counts.
    mutating func example(_ kind: Kind, _ bytes: Span<UInt8>) {
        guard examples[kind.rawValue] == nil else { return }
        var text: [UInt8] = []
        for index in 0..<min(bytes.count, Self.exampleMax + 1) { text.append(bytes[index]) }
        while let last = text.last, last == 0x0D || last == 0x20 { text.removeLast() }
        examples[kind.rawValue] = (number, String(decoding: text, as: UTF8.self).visible(bytesMax: Self.exampleMax))
    }

    /// Bytes went to the decoder of sentences.
    /// - Parameters:
    ///   - before: the decoder before it read them, to find what it found.
    ///   - after: its counters since.
    mutating func passed(_ bytes: Span<UInt8>, _ before: NMEADecoder, _ after: NMEACounters) {
        var missing = Kind.counted.filter { kind, counter in
            examples[kind.rawValue] == nil && !pending.contains(kind)
                && after[keyPath: counter] > before.counters[keyPath: counter]
        }
        var decoder = missing.isEmpty ? nil : before
        var start = 0
        if missing.isEmpty, pending.isEmpty, let lines = sentenceLines(bytes) {
            // Nearly all of nearly all logs.
            number += lines.count
            if lines.count > 0 {
                head.removeAll(keepingCapacity: true)
                (isEmpty, isObject, isComment) = (true, false, false)
            }
            let rest = bytes.extracting(lines.end..<bytes.count)
            isKnown = !rest.isEmpty || (lines.count == 0 && isKnown)
            return keepHead(rest)
        }
        while start < bytes.count {
            let end = bytes.first(0x0A, from: start)
            let line = bytes.extracting(start..<(end ?? bytes.count))
            if !isKnown { look(at: line) }
            if let past = decoder?.counters {
                decoder?.decode(bytes.extracting(start..<min(bytes.count, start + line.count + 1)), at: .zero) { _, _ in
                }
                let now = decoder?.counters ?? past
                missing.removeAll { kind, counter in
                    guard now[keyPath: counter] > past[keyPath: counter] else { return false }
                    pending.append(kind)
                    return true
                }
                if missing.isEmpty { decoder = nil }
            }
            guard end != nil else {
                keepHead(line)
                return
            }
            endLine(line)
            start += line.count + 1
        }
    }

    /// The log ends, maybe in the middle of a line.
    mutating func endLine() {
        continues = isKnown
        endLine([UInt8]().span)
    }

    /// By the line of the first example.
    func findings(_ counters: NMEACounters, _ more: Finding?) -> [Finding] {
        var counts = counts
        for (kind, counter) in Kind.counted {
            counts[kind.rawValue] = counters[keyPath: counter] - base[keyPath: counter]
        }
        var findings = Kind.allCases.compactMap { kind in
            examples[kind.rawValue].map {
                Finding(
                    line: $0.line, words: "\(kind.words.example): \($0.text)", count: counts[kind.rawValue],
                    rest: kind.words.all)
            }
        }
        if let more { findings.append(more) }
        return findings.sorted { $0.line < $1.line }
    }

    /// How many lines end in bytes in which each line begins as a sentence does, and where the last of them ends; nil = in these not
    /// each one does.
    private func sentenceLines(_ bytes: Span<UInt8>) -> (count: Int, end: Int)? {
        guard !bytes.isEmpty, isKnown || Self.beginsSentence(bytes[0]) else { return nil }
        return bytes.withUnsafeBytes { bytes -> (count: Int, end: Int)? in
            guard let base = bytes.baseAddress else { return nil }
            let end = base + bytes.count
            var (count, start) = (0, base)
            while start < end, let found = memchr(start, 0x0A, end - start) {
                start = UnsafeRawPointer(found) + 1
                count += 1
                guard start == end || Self.beginsSentence(start.load(as: UInt8.self)) else { return nil }
            }
            return (count, start - base)
        }
    }

    private static func beginsSentence(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "$") || byte == UInt8(ascii: "!") }

    private var isUnknown: Bool { !isKnown && !isEmpty && !isComment }

    private mutating func endLine(_ line: Span<UInt8>) {
        if isUnknown {
            unknownLines += 1
            let kind = isObject ? Kind.object : .line
            counts[kind.rawValue] += 1
            pending.append(kind)
        }
        for kind in pending { exampleOfLine(kind, line) }
        pending.removeAll(keepingCapacity: true)
        number += 1
        head.removeAll(keepingCapacity: true)
        (isEmpty, isKnown, isObject, isComment) = (true, false, false, false)
    }

    private mutating func exampleOfLine(_ kind: Kind, _ line: Span<UInt8>) {
        guard !head.isEmpty else { return example(kind, line) }
        var whole = head
        for index in 0..<min(line.count, Self.exampleMax) { whole.append(line[index]) }
        example(kind, whole.span)
    }

    private mutating func keepHead(_ line: Span<UInt8>) {
        let room = Self.exampleMax + 1 - head.count
        for index in 0..<max(0, min(room, line.count)) { head.append(line[index]) }
    }

    /// A start of a sentence leaves the line to the decoder of sentences, which counts what is wrong with it.
    private mutating func look(at line: Span<UInt8>) {
        for index in line.indices {
            switch line[index] {
            case UInt8(ascii: "$"), UInt8(ascii: "!"):
                isKnown = true
                return
            case 0, 0x09, 0x0D, 0x20: break
            case UInt8(ascii: "#"), UInt8(ascii: ";"), UInt8(ascii: "%"), UInt8(ascii: "/"):
                if isEmpty { isComment = true }
                isEmpty = false
            default: isEmpty = false
            }
        }
    }
}
