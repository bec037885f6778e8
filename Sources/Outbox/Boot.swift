/// The running system, as the queue names it.
struct Boot {
    /// nil: it has no id, or none is known.
    let id: String?
    /// So many numbers are passed over when the queue does not know this boot.
    ///
    /// Flash that lost what it had confirmed shows an old queue after a power cut, and a receiver may have had rows that
    /// it does not know of: with their numbers, new rows would be taken for repeated ones.
    let leap: Int64

    /// A boot whose rows are brought back.
    init(id: String?) {
        self.id = id
        leap = 0
    }

    /// - Parameter random: other bytes at each start, so that two boots that were lost one after the other do not meet.
    init(id: String?, random: [UInt8]) {
        self.id = id
        // 20 bits: far more numbers than a boot gives before its first rows are safe.
        leap = 10_000 + random.prefix(3).reduce(0) { $0 << 8 | Int64($1) } >> 4
    }
}
