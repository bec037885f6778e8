/// One run of the program: what its rows and batches are named by.
struct Life {
    /// Of the running system; nil when it has no id, or none is known.
    let bootID: String?
    /// Numbers that are passed over before the first row of this life; 0 after it.
    ///
    /// A life before this one may have given numbers that the queue does not know of: the flash lost what it had
    /// confirmed, the disk refused to take the rows, an older copy of the queue was put back. A server that has had rows
    /// under those numbers would take new ones for repeated ones.
    var leap: Int64
    /// Generation of batches that are formed while the disk refuses. Should this life end before the disk knows of them,
    /// the next one forms other batches of the same rows: under other ids.
    private(set) var memoryGeneration: Int
    /// Added to the leap of a life that begins without its disk.
    private let wideLeap: Int64

    /// - Parameter random: 8 bytes or more, different ones for each life, so that two lives that were lost one after the
    ///   other do not meet.
    init(bootID: String?, random: [UInt8]) {
        self.bootID = bootID
        func number(_ bytes: some Sequence<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }
        // 20 bits: far more numbers than a life gives before its first rows are safe.
        leap = 10_000 + number(random.prefix(3)) >> 4
        memoryGeneration = Int(1 << 20 | number(random.dropFirst(3).prefix(3)))
        wideLeap = (number(random.dropFirst(6).prefix(2)) >> 4) << 20
    }

    /// The disk refuses once more.
    ///
    /// Where it never takes a row, each life begins at the same number and may give many: 32 bits keep them apart.
    mutating func beginInMemory() {
        memoryGeneration += 64
        if leap > 0 { leap += wideLeap }
    }
}
