/// One run of the program: what its rows and batches are named by.
struct Life {
    /// Of the running system; nil when it has no id, or none is known.
    let bootID: String?
    /// Numbers that are passed over before the first row of this life; 0 after it.
    ///
    /// A life before this one may have given numbers that the queue does not know of: the flash lost what it had
    /// confirmed, the disk refused the rows, an older copy of the queue was put back. A server that has had rows
    /// under those numbers would take new ones for repeated ones.
    var leap: Int64
    /// Generation of batches that are formed while the disk refuses. Should this life end before the disk knows of them,
    /// the next one forms other batches of the same rows: under other ids.
    private(set) var memoryGeneration: Int
    /// Between those of two lives that go on from the same batches.
    private let generationStep: Int
    /// Keeps lives apart of which no disk knows.
    private let wideLeap: Int64
    /// Since the disk refused.
    private var givenInMemory = 0
    /// The disk knows of none of this life's numbers.
    private var isUnknown = false
    /// Least numbers that the next life passes over.
    private static let leastLeap = 10_000

    /// - Parameter random: 8 bytes or more, different ones for each life, so that two lives that were lost one after the
    ///   other do not meet.
    init(bootID: String?, random: [UInt8]) {
        self.bootID = bootID
        func number(_ bytes: some Sequence<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }
        // 20 bits: far more numbers than a life gives before its first rows are safe.
        leap = Int64(Self.leastLeap) + number(random.prefix(3)) >> 4
        memoryGeneration = Int(1 << 20 | number(random.dropFirst(3).prefix(3)))
        generationStep = memoryGeneration & 0xF_FFFF
        wideLeap = (1 + number(random.dropFirst(6).prefix(2)) >> 4) << 20
    }

    /// The disk refuses once more.
    ///
    /// - Parameters:
    ///   - isStart: it has refused from the start, and may do so at the next ones, which begin at the same number. A disk that
    ///     has worked may have stored the rows of the commit that it calls failed: they keep their numbers.
    ///   - highest: of the generations that the disk knows.
    mutating func beginInMemory(isStart: Bool, above highest: Int) {
        memoryGeneration += 64
        if memoryGeneration < highest + 1024 { memoryGeneration = highest + (1 << 20 | generationStep) }
        givenInMemory = 0
        isUnknown = !isStart && leap > 0
        if isStart { leap += wideLeap }
    }

    /// Rows in memory get numbers. More than the next life passes over are far away from where it begins, and so are all
    /// but those of the first commit where no disk has stored any of this life.
    mutating func gives(_ rows: Int) {
        let isLater = isUnknown && givenInMemory > 0
        let exceeds = givenInMemory <= Self.leastLeap && givenInMemory + rows > Self.leastLeap
        if isLater || exceeds { leap += wideLeap }
        if isLater { isUnknown = false }
        givenInMemory += rows
    }
}
