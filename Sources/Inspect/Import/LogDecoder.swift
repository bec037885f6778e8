import WaypostCore
import WaypostHost
import WaypostNMEA

/// A log whose content is broken.
package struct LogProblem: Error, Hashable, Sendable, CustomStringConvertible {
    package var file: String
    /// From 1.
    package var line: Int
    package var words: String

    package var description: String { "\(file):\(line): \(words)" }
}

/// Why a log could not be processed.
package enum LogFailure: Error, Sendable {
    /// It cannot be read, or the output cannot be written.
    case system(SystemError)
    case content(LogProblem)
}

/// What is in a log.
enum LogKind: Hashable {
    /// Lines, each of which shows by itself what it is.
    case lines
    /// A document.
    case gpx

    /// The kind shows in the first of these.
    static let bytesMax = 1024

    /// What is no log by its first bytes (nil = any), and how to make one of it; `FILE` stands for its name.
    private static let others: [(beginning: [UInt8?], words: String)] = [
        ([0x1F, 0x8B], "gzip: zcat FILE | waypost replay -"),
        ([0x28, 0xB5, 0x2F, 0xFD], "zstd: zstdcat FILE | waypost replay -"),
        ([0xFD, 0x37, 0x7A, 0x58, 0x5A], "xz: xzcat FILE | waypost replay -"),
        (Array("BZh".utf8), "bzip2: bzcat FILE | waypost replay -"),
        (Array("PK\u{3}\u{4}".utf8), "a ZIP archive: unzip -p FILE | waypost replay -"),
        // A line that was noisy at first, and some receivers, begin with bytes like these: more of the text has to show.
        ([0xFF, 0xFE, 0, 0], "UTF-32 text: iconv -f UTF-32 -t UTF-8 FILE | waypost replay -"),
        ([0, 0, 0xFE, 0xFF], "UTF-32 text: iconv -f UTF-32 -t UTF-8 FILE | waypost replay -"),
        ([0xFF, 0xFE, nil, 0], "UTF-16 text: iconv -f UTF-16 -t UTF-8 FILE | waypost replay -"),
        ([0xFE, 0xFF, 0], "UTF-16 text: iconv -f UTF-16 -t UTF-8 FILE | waypost replay -"),
    ]
    private static let unmarked = (
        little: "UTF-16 text: iconv -f UTF-16LE -t UTF-8 FILE | waypost replay -",
        big: "UTF-16 text: iconv -f UTF-16BE -t UTF-8 FILE | waypost replay -"
    )
    /// Characters of text without a mark, each beside a zero, that show its form.
    private static let unmarkedMin = 6

    /// - Parameter isAll: nothing follows `head`.
    /// - Returns: nil where none of them shows.
    static func foreign(_ head: some Collection<UInt8>, isAll: Bool) -> String? {
        if let found = others.first(where: { head.starts(with: $0.beginning) { $1 == nil || $0 == $1 } }) {
            return found.words
        }
        guard head.count >= (isAll ? 4 : 2 * unmarkedMin) else { return nil }
        let start = head.prefix(2 * unmarkedMin)
        return isWide(start, zeros: 1) ? unmarked.little : isWide(start, zeros: 0) ? unmarked.big : nil
    }

    /// Every other byte is zero, and the rest are characters of ASCII.
    private static func isWide(_ bytes: some Collection<UInt8>, zeros: Int) -> Bool {
        bytes.enumerated().allSatisfy { index, byte in
            index % 2 == zeros ? byte == 0 : (0x20...0x7E).contains(byte) || (0x09...0x0D).contains(byte)
        }
    }

    /// - Parameter isAll: nothing follows `head`.
    /// - Returns: nil = more has to be seen.
    static func recognised(_ head: some Collection<UInt8>, isAll: Bool) -> LogKind? {
        let isUnclear = others.contains {
            $0.beginning.count > head.count && $0.beginning.starts(with: head) { $0 == nil || $0 == $1 }
        }
        let mayBeWide = head.count < 2 * unmarkedMin && (isWide(head, zeros: 1) || isWide(head, zeros: 0))
        if !isAll, isUnclear || mayBeWide { return nil }
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        if !isAll, head.count < mark.count, mark.starts(with: head) { return nil }
        let marked = head.starts(with: mark) ? head.dropFirst(mark.count) : head.dropFirst(0)
        let content = marked.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        let beginnings = ["<?xml", "<gpx", "<!--"]
        if beginnings.contains(where: { content.starts(with: $0.utf8) }) { return .gpx }
        let mayBecome = beginnings.contains { $0.utf8.starts(with: content) }
        return mayBecome && !isAll && head.count < bytesMax ? nil : .lines
    }
}

/// Logs in, one after the other, epochs out. What a log is shows in its content, not in its name.
///
/// The sentences of all logs are one stream, wherever it was cut; the rest of each log is complete in itself.
package struct LogDecoder {
    private enum Reader {
        /// The beginning of a log, until it shows what it is.
        case undecided([UInt8])
        case lines
        case gpx(GPXDecoder)
        /// The rest of a document with a mistake.
        case ended
    }

    private let settings: NMEADecoder.Settings
    private var lines: LogLines
    private var reader = Reader.undecided([])
    private var file = ""
    /// Of the documents that are finished.
    private var finished = NMEACounters()
    private var hasDocument = false
    /// A document without a track point was read, with the notice of it.
    private var emptyDocument: LogProblem?
    /// What was skipped, for people, with file and line.
    package private(set) var notices: [LogProblem] = []
    private static let noticesMax = 100
    private static let standardInput = "standard input"
    /// Bytes: words quote the log, where a name may be as long as a tag.
    private static let wordsMax = 300

    package init(settings: NMEADecoder.Settings) {
        self.settings = settings
        lines = LogLines(settings: settings)
    }

    /// Whether nothing else than NMEA was read: only sentences have checksums.
    package var isNMEA: Bool { !hasDocument && !lines.hasObjects }

    /// Running totals of all logs; lines of gpsd and points of GPX count as sentences.
    package var counters: NMEACounters {
        var total = lines.counters
        total.add(finished)
        if case .gpx(let decoder) = reader { total.add(decoder.counters) }
        return total
    }

    /// Reads a whole log, or standard input (`-`), in chunks.
    /// - Parameter goesOn: gets the size of each chunk after its epochs; false ends the reading.
    package mutating func read(
        _ path: String, _ emit: (Epoch) -> Void, _ goesOn: (Int) -> Bool
    ) throws(LogFailure) {
        begin(path == "-" ? Self.standardInput : path)
        var problem: LogProblem?
        do throws(SystemError) {
            try LogFile.read(path) { bytes in
                do throws(LogProblem) { try read(bytes, emit) } catch { problem = error }
                return goesOn(bytes.count) && problem == nil
            }
        } catch {
            throw .system(error)
        }
        do throws(LogProblem) {
            if let problem { throw problem }
            try finish(emit)
        } catch {
            throw .content(error)
        }
    }

    /// Another log follows.
    mutating func begin(_ file: String) {
        self.file = file
        reader = .undecided([])
    }

    /// - Throws: where the log cannot be read further.
    mutating func read(_ bytes: Span<UInt8>, _ emit: (Epoch) -> Void) throws(LogProblem) {
        switch reader {
        case .lines: lines.read(bytes, emit)
        case .gpx(var decoder):
            // Not held twice while it changes, or its buffer would be copied.
            reader = .lines
            let problem = Self.problem { () throws(XMLReader.Problem) in try decoder.read(bytes, emit) }
            reader = .gpx(decoder)
            if let problem {
                try ended(decoder, problem)
                reader = .ended
            }
        case .ended: finished.bytes += bytes.count
        case .undecided(let before):
            var head = before
            for index in bytes.indices.prefix(LogKind.bytesMax - before.count) { head.append(bytes[index]) }
            if let words = LogKind.foreign(head, isAll: false) { throw isForeign(words) }
            guard let kind = LogKind.recognised(head, isAll: false) else {
                reader = .undecided(head)
                return
            }
            begin(kind, emit)
            try read(before.span, emit)
            try read(bytes, emit)
        }
    }

    /// The log is over.
    mutating func finish(_ emit: (Epoch) -> Void) throws(LogProblem) {
        if case .undecided(let head) = reader {
            if let words = LogKind.foreign(head, isAll: true) { throw isForeign(words) }
            if let kind = LogKind.recognised(head, isAll: true) {
                begin(kind, emit)
                try read(head.span, emit)
            }
        }
        switch reader {
        case .lines: for defect in lines.finish(emit) { notice((defect.line, defect.words, defect.count), defect.rest) }
        case .gpx(var decoder):
            reader = .lines
            try ended(decoder, Self.problem { () throws(XMLReader.Problem) in try decoder.end() })
        case .undecided, .ended: break
        }
    }

    /// - Parameter problem: nil = to the end of the file.
    private mutating func ended(_ decoder: GPXDecoder, _ problem: XMLReader.Problem?) throws(LogProblem) {
        // Power may have gone while it was written: what came before a mistake counts.
        let isEmpty = decoder.counters.sentences == 0
        if let problem, isEmpty { throw located(problem) }
        finished.add(decoder.counters)
        notice(decoder.defects, "such values were skipped")
        notice(decoder.zoneless.map { ($0, "times without a zone are read as UTC", 1) }, "")
        if let problem {
            notice((problem.line, "\(problem.words); the points before were read", 1), "")
        } else if isEmpty {
            notice((1, "no track points; waypoints and routes are no measurements", 1), "")
            emptyDocument = notices.last
        }
    }

    /// No log follows.
    package mutating func end(_ emit: (Epoch) -> Void) { lines.end(emit) }

    /// That nothing at all could be read of what there was; nil when something was, and for an empty log.
    package var nothing: LogProblem? {
        let counters = counters
        guard counters.bytes > 0, counters.sentences == 0 else { return nil }
        if let emptyDocument { return emptyDocument }
        let defects = ReplayStory.defects(counters).joined(separator: ", ")
        let found = defects.isEmpty ? "" : " (\(defects))"
        let first = notices.first.map { " Line \($0.line): \($0.words)" } ?? ""
        return LogProblem(file: file, line: 1, words: "no sentence, no fix\(found): is it a log of a receiver?\(first)")
    }

    private mutating func begin(_ kind: LogKind, _ emit: (Epoch) -> Void) {
        switch kind {
        case .lines:
            lines.begin()
            reader = .lines
        case .gpx:
            hasDocument = true
            end(emit)
            reader = .gpx(GPXDecoder(settings: settings))
        }
    }

    private static func problem(_ body: () throws(XMLReader.Problem) -> Void) -> XMLReader.Problem? {
        do throws(XMLReader.Problem) { try body() } catch { return error }
        return nil
    }

    /// - Parameter words: what it is, and how to make a log of it.
    private func isForeign(_ words: String) -> LogProblem {
        let isPlain = file.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "'") && $0 < 0x7F }
        let name = file == Self.standardInput ? "" : " " + (isPlain ? file : "FILE")
        let parts = words.split(separator: " FILE", maxSplits: 1)
        return LogProblem(
            file: file, line: 1,
            words: "it is \(parts[0])\(name)\(parts.dropFirst().joined())".cut(toBytes: Self.wordsMax))
    }

    private func located(_ problem: XMLReader.Problem) -> LogProblem {
        LogProblem(file: file, line: problem.line, words: problem.words.cut(toBytes: Self.wordsMax))
    }

    private mutating func notice(_ defects: (line: Int, words: String, count: Int)?, _ rest: String) {
        guard let defects, notices.count < Self.noticesMax else { return }
        let more = defects.count > 1 ? "; \(defects.count) \(rest)" : ""
        let words = defects.words.cut(toBytes: Self.wordsMax) + more
        notices.append(LogProblem(file: file, line: defects.line, words: words))
    }
}

extension NMEACounters {
    mutating func add(_ more: NMEACounters) {
        bytes += more.bytes
        sentences += more.sentences
        fixes += more.fixes
        voidEpochs += more.voidEpochs
        checksumErrors += more.checksumErrors
        missingChecksums += more.missingChecksums
        tooLong += more.tooLong
        badBytes += more.badBytes
        strayBytes += more.strayBytes
        unknownLines += more.unknownLines
        badFields += more.badFields
        unknownTypes += more.unknownTypes
        late += more.late
        dateless += more.dateless
        repeats += more.repeats
        straySentences += more.straySentences
        unknownQualities += more.unknownQualities
        modeConflicts += more.modeConflicts
        datesRefused += more.datesRefused
    }
}
