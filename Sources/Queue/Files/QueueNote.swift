/// How far a queue had come when a process gave it up in order. It stands in the lock file, for the next process.
///
/// It is not flushed: a power cut may take it, or leave an earlier one, which is true as well.
struct QueueNote: Equatable {
    /// Of the queue.
    var uuid: [UInt8]
    /// The last number that was committed.
    var lastSeq: Int64
    /// nil: the database had everything, or that was not known.
    var log: LogEnd?

    init(uuid: [UInt8], lastSeq: Int64, log: LogEnd?) { (self.uuid, self.lastSeq, self.log) = (uuid, lastSeq, log) }

    var text: String {
        "\(String(hexOf: uuid)) \(lastSeq)" + (log.map { " \(String($0.salts, radix: 16)) \($0.frames)" } ?? "")
    }

    /// nil: nobody has left one.
    init?(_ text: String) {
        let words = text.utf8.split(separator: UInt8(ascii: " ")).map(Substring.init)
        guard words.count == 2 || words.count == 4, words[0].utf8.count == 32, let lastSeq = Int64(words[1]),
            (1...Ledger.seqMax).contains(lastSeq), let high = UInt64(words[0].prefix(16), radix: 16),
            let low = UInt64(words[0].suffix(16), radix: 16)
        else { return nil }
        let uuid = [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
        self.init(uuid: uuid, lastSeq: lastSeq, log: nil)
        guard words.count == 4 else { return }
        guard let salts = UInt64(words[2], radix: 16), let frames = Int(words[3]), frames > 0 else { return nil }
        log = LogEnd(salts: salts, frames: frames)
    }
}
