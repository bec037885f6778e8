import WaypostCore

/// One run of the program: what its rows and batches are named by.
struct ProcessRun {
    /// Of the running system; nil when it has no id, or none is known.
    let bootID: String?
    /// Numbers to skip before the first row of this run; 0 after it.
    ///
    /// An earlier run may have given numbers that the queue does not know of: the flash lost what it had confirmed, the
    /// disk refused the rows, an older copy of the queue was put back. A server that has rows under those numbers would
    /// take new ones for repeats.
    var leap: Int64
    /// Generation of batches that are formed while the disk refuses. If this run ends before the disk knows of them,
    /// the next one forms other batches of the same rows, under other ids.
    private(set) var memoryGeneration: Int
    /// Between the generations of two runs that continue the same batches.
    private let generationStep: Int
    /// Keeps apart runs that no disk knows of.
    private let wideLeap: Int64
    /// Since the disk refused.
    private var givenInMemory = 0
    /// The disk knows none of this run's numbers.
    private var isUnknown = false
    /// The fewest numbers that the next run skips.
    private static let leastLeap = 10_000

    /// - Parameter random: 8 bytes or more, different for each run, so that two lost runs in a row do not give the
    ///   same numbers.
    init(bootID: String?, random: [UInt8]) {
        self.bootID = bootID
        func number(_ bytes: some Sequence<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }
        // 20 bits: far more numbers than a run gives before its first rows are safe.
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

    /// Rows in memory get numbers. Those beyond what the next run skips are placed far ahead, and so are all but those
    /// of the first commit if no disk has stored anything of this run.
    mutating func gives(_ rows: Int) {
        let isLater = isUnknown && givenInMemory > 0
        let exceeds = givenInMemory <= Self.leastLeap && givenInMemory + rows > Self.leastLeap
        if isLater || exceeds { leap += wideLeap }
        if isLater { isUnknown = false }
        givenInMemory += rows
        invariant(leap >= 0, "the next run skips \(leap) numbers")
        invariant(memoryGeneration > generationStep, "generation \(memoryGeneration) in memory")
        invariant(givenInMemory >= 0, "\(givenInMemory) numbers were given in memory")
    }
}
