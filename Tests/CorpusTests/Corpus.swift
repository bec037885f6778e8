import WaypostCore
import WaypostNMEA

#if canImport(Glibc)
    import Glibc
#endif

/// The recorded logs of `../shared/corpus/nmea`, or of the folder that WAYPOST_CORPUS names.
enum Corpus {
    struct Missing: Error, CustomStringConvertible {
        var description: String
    }

    static let folder: String = {
        if let named = getenv("WAYPOST_CORPUS") { return String(cString: named) }
        let repository = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(repository)/../shared/corpus/nmea"
    }()

    /// Names of all logs, sorted. Empty when there is no corpus: `CorpusPresence` fails then.
    static let logs: [String] = {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasSuffix(".nmea") || name.hasSuffix(".log") { names.append(name) }
        }
        return names.sorted()
    }()

    static func path(_ name: String) throws -> String {
        let path = "\(folder)/\(name)"
        guard access(path, R_OK) == 0 else {
            throw Missing(description: "\(path) cannot be read; set WAYPOST_CORPUS to the folder of the logs")
        }
        return path
    }

    static func bytes(of name: String) throws -> [UInt8] {
        let path = try path(name)
        guard let file = fopen(path, "rb") else { throw Missing(description: "\(path) cannot be opened") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { break }
            bytes.append(contentsOf: buffer[..<count])
        }
        return bytes
    }

    static func expectedRows(of name: String) throws -> [ExpectedRow] {
        let text = String(decoding: try bytes(of: "\(name).expected.tsv"), as: UTF8.self)
        return text.split(separator: "\n").dropFirst().map { ExpectedRow(line: $0) }
    }
}

/// A row of `expected.tsv`; nil = empty column.
struct ExpectedRow {
    var time: String
    var mode: Int
    var latitudeE7: Int?
    var longitudeE7: Int?
    var altitude: Double?
    var speed: Double?
    var track: Double?
    var hdop: Double?
    var quality: Int?
    var gst: Double?

    init(line: Substring) {
        let columns = line.split(separator: "\t", omittingEmptySubsequences: false)
        time = String(columns[0])
        mode = Int(columns[1])!
        latitudeE7 = Double(columns[2]).map { Int(($0 * 1e7).rounded()) }
        longitudeE7 = Double(columns[3]).map { Int(($0 * 1e7).rounded()) }
        altitude = Double(columns[4])
        speed = Double(columns[5])
        track = Double(columns[6])
        hdop = Double(columns[7])
        quality = Int(columns[8])
        gst = Double(columns[9])
    }

    /// `18:14:34.000`
    var clock: Substring { time.split(separator: "T").last!.dropLast() }
    var hasDate: Bool { !time.hasPrefix("T") }
}

/// Decodes a whole log, in chunks of the given length.
func decode(
    _ bytes: [UInt8], chunk: Int = .max, settings: NMEADecoder.Settings = .init(), resume: ResumePoint = .start
) -> (epochs: [Epoch], resumes: [ResumePoint], counters: NMEACounters) {
    var decoder = NMEADecoder(settings: settings, resume: resume)
    var epochs: [Epoch] = []
    var resumes: [ResumePoint] = []
    let emit: (Epoch, ResumePoint) -> Void = {
        epochs.append($0)
        resumes.append($1)
    }
    let span = bytes.span
    var position = Int(resume.offset)
    while position < span.count {
        let end = position + min(chunk, span.count - position)
        decoder.decode(span.extracting(position..<end), at: .zero, emit)
        position = end
    }
    decoder.endOfInput(emit)
    return (epochs, resumes, decoder.counters)
}

extension Epoch {
    /// false for a void epoch whose sentences told no time at all.
    var toldATime: Bool {
        if case .void(let void) = self { void.timeOfDay != nil } else { true }
    }

    var fix: Fix? {
        if case .fix(let fix) = self { fix } else { nil }
    }
}
