import CSQLite

/// How far the write-ahead log of a queue has to reach, so that nothing that was committed is missing.
///
/// Recovery takes a frame that is not as it was written for the end of the log, without an error, and the next commit
/// overwrites what follows. A process knows how far its own commits reached.
struct LogEnd: Equatable {
    /// They name a log: it gets others each time that it begins again.
    var salts: UInt64
    /// Of the last commit.
    var frames: Int

    init(salts: UInt64, frames: Int) { (self.salts, self.frames) = (salts, frames) }

    /// Of the log that a connection has just written; nil where it cannot be read.
    init?(of connection: Connection, frames: Int) {
        guard let header = try? LogFile(connection).header() else { return nil }
        self.init(salts: header.salts, frames: frames)
    }

    /// - Returns: whether the log has all frames; nil: there is none, or another one, which begins only once the database has
    ///   everything.
    func isThere(in connection: Connection) throws(OutboxError) -> Bool? {
        guard waypost_sqlite_log_size(connection.handle) > 0 else { return nil }
        let log = LogFile(connection)
        guard let header = try log.header(), header.isWhole else { return false }
        guard salts == header.salts else { return nil }
        var sum = header.sum
        var isCommitted = false
        for number in 0..<frames {
            guard let frame = try log.frame(number), frame.salts == salts, sum.isContinued(by: frame) else {
                // Where a write may touch bytes beside its own, copies of the last frame fill the sector, and the end of the
                // last copy is not flushed.
                return number == frames - 1 && isCommitted && waypost_sqlite_pads_log(connection.handle) != 0
            }
            sum = LogChecksum(continuing: frame, isBigEndian: sum.isBigEndian)
            isCommitted = frame.isCommit
        }
        return true
    }
}

/// What recovery finds of a log, and what it does not.
///
/// A commit is flushed before the next one begins, and what one leaves that was never flushed is cut off before anything else is
/// written. Behind the frame at which recovery ends there is therefore at most one commit. Where there are more, the log was changed
/// after it was flushed.
struct LogTail: Equatable {
    var salts: UInt64 = 0
    var isHeaderWhole = true
    /// The database has everything that the log has. Only looked at where nothing is found of what is there: the log begins again once
    /// the database has everything, and of its first commit anything may have been written.
    var isInDatabase = false
    /// Up to the last commit that recovery finds.
    var frames = 0
    /// Commits that it does not find, because a frame before them is not as it was written.
    var commits = 0
    /// Up to the last commit of which all frames are as they were written, wherever one before it is not.
    var wholeFrames = 0
    /// Pages of the database as of that commit.
    var pages = 0
    /// Frames of this log follow the last commit that recovery finds.
    var isThere = false

    /// What is wrong with the log, in words; nil: nothing, or it cannot be told.
    ///
    /// - Parameter known: how far a process that ended in order had written it.
    func problem(known: LogEnd? = nil) -> String? {
        let isKnown = known.map { $0.salts == salts && $0.frames > frames } ?? false
        let lost =
            if isInDatabase {
                0
            } else if isHeaderWhole {
                // An older copy of the log has nothing behind its end.
                isKnown && isThere ? max(1, commits) : commits - 1
            } else {
                isThere ? max(1, commits) : 0
            }
        return lost > 0 ? "its log is damaged before at least \(lost) of its commits" : nil
    }
}

/// The frames of a log as they are on the medium, past SQLite, some read at a time.
final class LogFile {
    struct Header {
        /// As it was written.
        var isWhole: Bool
        /// As they stand there.
        var salts: UInt64
        /// What the first frame continues.
        var sum: LogChecksum
        /// How often the log has begun again.
        var sequence: ArraySlice<UInt8>
    }

    static let headerSize = 32
    static func size(ofFrames frames: Int) -> Int64 { Int64(headerSize + frames * LogFrame.size) }
    private static let framesAtOnce = 64

    private let connection: Connection
    private var bytes: [UInt8] = []
    /// With which `bytes` begins.
    private var first = 0

    init(_ connection: Connection) { self.connection = connection }

    /// - Returns: nil where the log is shorter, and where its pages are not those of a queue.
    func header() throws(OutboxError) -> Header? {
        guard let bytes = try connection.readLog(Self.headerSize, at: 0) else { return nil }
        var sum = LogChecksum(isBigEndian: bytes[3] & 1 == 1)
        sum.add(bytes[..<24])
        let isWhole = bytes[..<3] == [0x37, 0x7F, 0x06] && bytes[3] & 0xFE == 0x82 && sum.value == bytes[24...].word
        guard !isWhole || bytes[8..<16].word >> 32 == DatabaseFile.pageSize else { return nil }
        return Header(
            isWhole: isWhole, salts: bytes[16..<24].word, sum: isWhole ? sum : LogChecksum(), sequence: bytes[12..<16])
    }

    /// - Parameter number: 0 is the first.
    /// - Returns: nil where the log has no more.
    func frame(_ number: Int) throws(OutboxError) -> LogFrame? {
        if number < first || (number + 1 - first) * LogFrame.size > bytes.count { try load(number) }
        let place = (number - first) * LogFrame.size
        return place + LogFrame.size <= bytes.count ? LogFrame(bytes: bytes[place..<place + LogFrame.size]) : nil
    }

    private func load(_ number: Int) throws(OutboxError) {
        let offset = Self.headerSize + number * LogFrame.size
        let there = (Int(waypost_sqlite_log_size(connection.handle)) - offset) / LogFrame.size
        let count = max(0, min(there, Self.framesAtOnce)) * LogFrame.size
        first = number
        bytes = count > 0 ? try connection.readLog(count, at: offset) ?? [] : []
    }

    /// The salts of the frames, also where the header is damaged, and frames behind it are. Those of an earlier log follow the others.
    func salts(_ header: Header) throws(OutboxError) -> UInt64 {
        guard !header.isWhole else { return header.salts }
        let (first, second) = (try frame(0)?.salts, try frame(1)?.salts)
        // Zeros and ones are of no log.
        func areOfALog(_ salts: UInt64) -> Bool { salts != 0 && salts != .max }
        if areOfALog(header.salts), header.salts == first || header.salts == second { return header.salts }
        var sum: LogChecksum?
        var number = 0
        while let frame = try frame(number) {
            if areOfALog(frame.salts), sum?.isContinued(by: frame) == true { return frame.salts }
            sum = LogChecksum(continuing: frame, isBigEndian: header.sum.isBigEndian)
            number += 1
        }
        return second ?? first ?? header.salts
    }

    /// Goes through all of it.
    func tail() throws(OutboxError) -> LogTail {
        var tail = LogTail()
        guard waypost_sqlite_log_size(connection.handle) > 0, let header = try header() else { return tail }
        tail.salts = try salts(header)
        tail.isHeaderWhole = header.isWhole
        var sum = header.sum
        // Up to here, and in the commit at hand.
        var (isFound, isWhole) = (header.isWhole, header.isWhole)
        // Copies of the last frame of a commit may fill a sector.
        var last: LogFrame?
        func count(_ commit: LogFrame) {
            guard commit.content != last?.content else { return }
            tail.commits += 1
            last = commit
        }
        // A checksum does not cover the salts: where only the sector with these reached the medium, a frame of an earlier log seems to
        // be of this one. It is, if the next one continues it.
        var (isBehindEarlier, uncertain) = (false, nil as LogFrame?)
        var (number, end) = (0, 0)
        while let frame = try frame(number) {
            number += 1
            guard frame.salts == tail.salts else {
                // Its checksum may be right all the same.
                if isWhole { isWhole = sum.isContinued(by: frame) }
                (isFound, isBehindEarlier, uncertain) = (false, true, nil)
                sum = LogChecksum(continuing: frame, isBigEndian: sum.isBigEndian)
                continue
            }
            let isNext = sum.isContinued(by: frame)
            if !isNext { (isFound, isWhole) = (false, false) }
            if !isFound || !frame.isCommit { tail.isThere = true }
            if isNext, let uncertain { count(uncertain) }
            uncertain = nil
            if frame.isCommit {
                end = number
                if isFound { (tail.frames, tail.isThere) = (number, false) }
                if isWhole { (tail.wholeFrames, tail.pages) = (number, frame.pagesAfterCommit) }
                if !isFound, isNext {
                    if isBehindEarlier { uncertain = frame } else { count(frame) }
                }
                isWhole = true
            }
            isBehindEarlier = false
            sum = LogChecksum(continuing: frame, isBigEndian: sum.isBigEndian)
        }
        if !header.isWhole || tail.frames == 0 && tail.isThere {
            tail.isInDatabase = try isInDatabase(header, tail.salts, upTo: end)
        }
        return tail
    }

    /// Whether the database has each page as these frames have it last, without those that are not as they were written.
    private func isInDatabase(_ header: Header, _ salts: UInt64, upTo end: Int) throws(OutboxError) -> Bool {
        var last: [Int: Int] = [:]
        // Without the header it is not known what the first frame continues.
        var sum = header.isWhole ? header.sum : nil
        for number in 0..<end {
            guard let frame = try frame(number) else { break }
            if frame.salts == salts, sum?.isContinued(by: frame) ?? true { last[frame.page] = number }
            sum = LogChecksum(continuing: frame, isBigEndian: header.sum.isBigEndian)
        }
        guard !last.isEmpty else { return false }
        let database = DatabaseFile(connection)
        var page = [UInt8](repeating: 0, count: DatabaseFile.pageSize)
        for number in 0..<end {
            guard let frame = try frame(number), last[frame.page] == number else { continue }
            let failed = connection.medium.failedReads
            let isRead = page.withUnsafeMutableBytes { database.read(Int64(frame.page) - 1, into: $0) }
            let reads = connection.medium.failedReads
            guard isRead || reads.count == failed.count else {
                throw OutboxError(failedRead: reads, path: connection.path)
            }
            guard isRead, frame.content.elementsEqual(page) else { return false }
        }
        return true
    }
}

/// One page of a log: https://www.sqlite.org/fileformat2.html#walformat
struct LogFrame {
    static let headSize = 24
    static let size = headSize + DatabaseFile.pageSize

    let bytes: ArraySlice<UInt8>

    /// Of the database, from 1 on.
    var page: Int { Int(part(0, 8).word >> 32) }
    /// 0: a commit does not end here.
    var pagesAfterCommit: Int { Int(part(0, 8).word & 0xFFFF_FFFF) }
    var isCommit: Bool { pagesAfterCommit != 0 }
    var salts: UInt64 { part(8, 16).word }
    var checksum: UInt64 { part(16, Self.headSize).word }
    var content: ArraySlice<UInt8> { part(Self.headSize, Self.size) }

    /// Without salts and checksum.
    fileprivate var head: ArraySlice<UInt8> { part(0, 8) }

    private func part(_ from: Int, _ to: Int) -> ArraySlice<UInt8> {
        bytes[bytes.startIndex + from..<bytes.startIndex + to]
    }
}

extension Connection {
    /// - Returns: so many bytes; nil where the log is shorter.
    /// - Throws: where it cannot be read.
    fileprivate func readLog(_ count: Int, at offset: Int) throws(OutboxError) -> [UInt8]? {
        var code = SQLITE_OK
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { room, used in
            code = waypost_sqlite_read_log(handle, room.baseAddress, Int32(count), Int64(offset))
            used = code == SQLITE_OK ? count : 0
        }
        if code == SQLITE_OK { return bytes }
        guard code == SQLITE_NOTFOUND || code == SQLITE_IOERR | (2 << 8) else {
            throw OutboxError(failedRead: medium.failedReads, path: path + "-wal", code: code)
        }
        return nil
    }
}

/// The checksum of a write-ahead log, which each frame continues.
struct LogChecksum {
    let isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    /// - Parameter isBigEndian: as the log says; as this host writes them by default.
    init(isBigEndian: Bool = UInt16(1).bigEndian == 1) { self.isBigEndian = isBigEndian }

    /// As a frame says it.
    init(continuing frame: LogFrame, isBigEndian: Bool) {
        self.isBigEndian = isBigEndian
        (first, second) = (UInt32(frame.checksum >> 32), UInt32(truncatingIfNeeded: frame.checksum))
    }

    /// As it stands in the log, the highest byte first.
    var value: UInt64 { UInt64(first) << 32 | UInt64(second) }

    /// Whether a frame has the checksum that its bytes lead to.
    func isContinued(by frame: LogFrame) -> Bool {
        var sum = self
        sum.add(frame)
        return sum.value == frame.checksum
    }

    mutating func add(_ frame: LogFrame) {
        add(frame.head)
        add(frame.content)
    }

    /// - Parameter bytes: a multiple of eight.
    mutating func add(_ bytes: ArraySlice<UInt8>) {
        bytes.withUnsafeBytes { bytes in
            if isBigEndian { add(bytes) { UInt32(bigEndian: $0) } } else { add(bytes) { UInt32(littleEndian: $0) } }
        }
    }

    /// At each start all of a log: the order of the bytes is not asked for at each word.
    @inline(__always)
    private mutating func add(_ bytes: UnsafeRawBufferPointer, _ word: (UInt32) -> UInt32) {
        guard let start = bytes.baseAddress else { return }
        var (first, second) = (first, second)
        for place in stride(from: 0, to: bytes.count & ~7, by: 8) {
            first = first &+ word(start.loadUnaligned(fromByteOffset: place, as: UInt32.self)) &+ second
            second = second &+ word(start.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self)) &+ first
        }
        (self.first, self.second) = (first, second)
    }
}

extension ArraySlice<UInt8> {
    /// The first eight bytes, the highest first.
    fileprivate var word: UInt64 {
        withUnsafeBytes { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
    }
}
