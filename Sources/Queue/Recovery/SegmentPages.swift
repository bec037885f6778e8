/// Segments that are found by looking at each page of a file and of its log, whatever its tables say.
///
/// Where a page is damaged that leads to others, what is on those is sound, and SQLite cannot find it. A segment has a page
/// of its own, and its checksum tells it from anything else. Of one that was written again and no longer fits on one page
/// nothing is found.
struct SegmentPages {
    /// The last number of each segment, and the page, or from -1 on down the frame of the log; in falling order. Of one that is
    /// there several times, the newest comes last.
    private var found: [(last: Int64, page: Int64)] = []
    /// Some of it could not be read.
    private(set) var hasFailedReads = false
    /// Each segment whose last number is one of these is in `found`, but for those that were passed.
    private var known: ClosedRange<Int64>?

    private let knownMax: Int
    private static let pagesAtOnce: Int64 = 128

    /// - Parameter knownMax: so many segments are kept in mind, 16 bytes each; for the next ones the file is read once more.
    init(knownMax: Int = 16_384) { self.knownMax = knownMax }

    /// Rows of a range, oldest first. Each call begins where the one before ended, or later.
    mutating func rows(from first: Int64, before end: Int64, limit: Int, of connection: Connection) -> [StoredRow] {
        let file = DatabaseFile(connection)
        var rows: [StoredRow] = []
        var next = first
        while next < end {
            if known?.contains(next) != true {
                look(from: next, in: file)
            }
            guard let (last, page) = found.last else {
                // No more of them are known.
                guard let known, known.upperBound < Ledger.highestSeq else { return rows }
                next = max(next, known.upperBound + 1)
                continue
            }
            if last >= next, let segment = segment(last, on: page, of: file) {
                for index in segment.indices where segment[index].seq >= next && segment[index].seq < end {
                    if rows.count == limit { return rows }
                    rows.append(segment[index])
                    next = segment[index].seq + 1
                }
                // What follows begins behind the range.
                if last >= end { return rows }
            }
            found.removeLast()
        }
        return rows
    }

    /// Goes through the whole file.
    private mutating func look(from first: Int64, in file: DatabaseFile) {
        found = []
        var highest = Ledger.highestSeq
        let isWhole = Self.eachPage(of: file) { bytes, place in
            Self.eachSegment(on: bytes) { last, _ in
                if last >= first, last <= highest { found.append((last, place)) }
            }
            guard found.count >= 2 * knownMax else { return }
            found.sort(by: Self.isBefore)
            found.removeFirst(found.count - knownMax)
            highest = found[0].last
        }
        found.sort(by: Self.isBefore)
        if !isWhole { hasFailedReads = true }
        known = first...max(first, highest)
    }

    /// The last number of all segments that are there; nil = there is none.
    ///
    /// - Parameter isPatient: throws what the medium cannot read just now.
    static func last(of connection: Connection, isPatient: Bool) throws(OutboxError) -> Int64? {
        var highest: Int64?
        let isWhole = eachPage(of: DatabaseFile(connection)) { bytes, _ in
            eachSegment(on: bytes) { last, _ in highest = max(highest ?? last, last) }
        }
        if !isWhole, isPatient { throw OutboxError(failedRead: connection.medium.failedReads, path: connection.path) }
        return highest
    }

    /// - Parameter note: called with each page and its place, as in `found`.
    /// - Returns: whether all of it could be read.
    private static func eachPage(of file: DatabaseFile, _ note: (UnsafeRawBufferPointer, Int64) -> Void) -> Bool {
        var hasFailed = false
        let pages = file.pageCount
        withUnsafeTemporaryAllocation(byteCount: Int(pagesAtOnce) * DatabaseFile.pageSize, alignment: 8) { buffer in
            func look(at page: Int64, _ count: Int64) {
                let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(Int(count) * DatabaseFile.pageSize)])
                guard file.read(page, into: bytes) else {
                    // One sector may be to blame for all of them.
                    if count > 1 { for one in 0..<count { look(at: page + one, 1) } } else { hasFailed = true }
                    return
                }
                for one in 0..<Int(count) {
                    let begin = one * DatabaseFile.pageSize
                    note(
                        UnsafeRawBufferPointer(rebasing: bytes[begin..<begin + DatabaseFile.pageSize]),
                        page + Int64(one))
                }
            }
            for page in stride(from: 0, to: pages, by: Int(pagesAtOnce)) {
                look(at: page, min(pagesAtOnce, pages - page))
            }
            let frames = file.frameCount
            guard frames > 0 else { return }
            guard let salts = file.logSalts() else { return hasFailed = true }
            let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<DatabaseFile.pageSize])
            for frame in 0..<frames {
                switch file.read(frame: frame, of: salts, into: bytes) {
                case true?: note(UnsafeRawBufferPointer(bytes), -1 - frame)
                case false?: continue
                case nil: hasFailed = true
                }
            }
        }
        return !hasFailed
    }

    /// Pages of the file are older than frames of the log.
    private static func isBefore(_ one: (last: Int64, page: Int64), _ other: (last: Int64, page: Int64)) -> Bool {
        one.last != other.last ? one.last > other.last : one.page > other.page
    }

    private mutating func segment(_ last: Int64, on page: Int64, of file: DatabaseFile) -> [StoredRow]? {
        withUnsafeTemporaryAllocation(byteCount: DatabaseFile.pageSize, alignment: 8) { bytes in
            var segment: [StoredRow]?
            let isRead =
                page < 0
                ? file.logSalts().flatMap { file.read(frame: -1 - page, of: $0, into: bytes) } ?? false
                : file.read(page, into: bytes)
            if isRead {
                Self.eachSegment(on: UnsafeRawBufferPointer(bytes)) { if $0 == last { segment = $1 } }
            } else {
                hasFailedReads = true
            }
            return segment
        }
    }

    /// Calls `work` with the last number and the rows of each segment on a page, which may be anything.
    private static func eachSegment(on page: UnsafeRawBufferPointer, _ work: (Int64, [StoredRow]) -> Void) {
        for record in TableLeaf.records(of: page) {
            guard record.values.count == 5, case .integer(let first) = record.values[1],
                case .integer(let count) = record.values[2], case .bytes(let data) = record.values[4],
                (0...Ledger.highestSeq).contains(first),
                let rows = SegmentCoding.decode(data, first: first, rows: Int(clamping: count)),
                rows[0].seq == first, rows[rows.count - 1].seq == record.key
            else { continue }
            work(record.key, rows)
        }
    }
}

/// A page with rows of a table, as SQLite lays it out: https://www.sqlite.org/fileformat2.html
private enum TableLeaf {
    enum Value {
        case null, real
        case integer(Int64)
        /// A text or a blob.
        case bytes(UnsafeRawBufferPointer)
    }

    struct Record {
        var key: Int64
        var values: [Value]
    }

    private static let kind: UInt8 = 13

    /// The rows that are whole on this page; none of a page that is no such leaf.
    static func records(of page: UnsafeRawBufferPointer) -> [Record] {
        guard page.count >= 8, page[0] == kind else { return [] }
        let count = Int(page[3]) << 8 | Int(page[4])
        guard 8 + 2 * count <= page.count else { return [] }
        return (0..<count).compactMap { cell in
            let place = 8 + 2 * cell
            return record(at: Int(page[place]) << 8 | Int(page[place + 1]), of: page)
        }
    }

    private static func record(at place: Int, of page: UnsafeRawBufferPointer) -> Record? {
        var cell = Reader(bytes: page, next: place)
        guard let size = cell.varint(), let key = cell.varint(), var body = cell.take(size) else { return nil }
        guard let headerSize = body.varint(), var types = body.take(headerSize - Int64(body.next)) else { return nil }
        var values: [Value] = []
        while let type = types.varint() {
            guard let value = value(type, &body) else { return nil }
            values.append(value)
        }
        return Record(key: key, values: values)
    }

    private static func value(_ type: Int64, _ body: inout Reader) -> Value? {
        switch type {
        case 0: return .null
        case 1...4: return body.integer(bytes: Int(type)).map(Value.integer)
        case 5: return body.integer(bytes: 6).map(Value.integer)
        case 6: return body.integer(bytes: 8).map(Value.integer)
        case 7: return body.integer(bytes: 8).map { _ in .real }
        case 8, 9: return .integer(type - 8)
        case 12...: return body.take((type - 12) / 2).map { .bytes($0.bytes) }
        default: return nil
        }
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var next = 0

        /// The next bytes, to be read from their beginning; nil where there are not so many.
        mutating func take(_ count: Int64) -> Reader? {
            guard count >= 0, count <= Int64(bytes.count - next) else { return nil }
            defer { next += Int(count) }
            return Reader(bytes: UnsafeRawBufferPointer(rebasing: bytes[next..<next + Int(count)]))
        }

        /// The highest bits first: seven in each of eight bytes, eight in a ninth.
        mutating func varint() -> Int64? {
            var value: Int64 = 0
            for place in 0..<9 {
                guard next < bytes.count else { return nil }
                let byte = bytes[next]
                next += 1
                if place == 8 { return value << 8 | Int64(byte) }
                value = value << 7 | Int64(byte & 0x7F)
                if byte & 0x80 == 0 { return value }
            }
            return nil
        }

        mutating func integer(bytes count: Int) -> Int64? {
            guard let taken = take(Int64(count)) else { return nil }
            let negative: Int64 = taken.bytes[0] & 0x80 == 0 ? 0 : -1
            return taken.bytes.reduce(negative) { $0 << 8 | Int64($1) }
        }
    }
}
