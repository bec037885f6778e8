import WaypostCore

/// Finds the speed of a receiver by trying one after another until sentences with good checksums arrive.
///
/// In the first round each speed gets its time. After a round without a single byte the hunt waits at its first
/// candidate for one: changing the speed cannot wake a receiver, and a timer would wake the host for nothing.
struct BaudHunt {
    /// Tried after the remembered and the current speed: the speeds that receivers leave the factory with first.
    static let usualSpeeds = [9600, 115_200, 38_400, 4800, 57_600, 19_200, 230_400, 460_800]
    static let timePerSpeed = Duration.seconds(3)
    /// A wrong speed may give one good checksum by chance, but not three within its time.
    static let sentencesToAccept = 3

    private let candidates: [LineSpeed]
    private var index = 0
    private var began: EventTime
    private var firstByte: EventTime?
    private var sentences = 0
    private var bytesInRound = false
    private var isFirstRound = true

    /// nil in `remembered` or `current`: not known.
    init(remembered: LineSpeed?, current: LineSpeed?, at now: EventTime) {
        var order: [LineSpeed] = []
        for speed in [remembered, current] + Self.usualSpeeds.map({ LineSpeed(baud: $0) }) {
            if let speed, !order.contains(speed) { order.append(speed) }
        }
        candidates = order
        began = now
    }

    var speed: LineSpeed { candidates[index] }

    /// When the next speed is due; nil = the hunt waits for a byte.
    var nextDeadline: EventTime? {
        if isFirstRound { return began + Self.timePerSpeed }
        return firstByte.map { $0 + Self.timePerSpeed }
    }

    /// True when the speed is accepted.
    mutating func received(sentences count: Int, at now: EventTime) -> Bool {
        if firstByte == nil { firstByte = now }
        bytesInRound = true
        sentences += count
        return sentences >= Self.sentencesToAccept
    }

    /// The speed to set now; nil = stay.
    mutating func deadlineReached(at now: EventTime) -> LineSpeed? {
        guard let nextDeadline, now >= nextDeadline else { return nil }
        index += 1
        if index == candidates.count {
            index = 0
            isFirstRound = bytesInRound
            bytesInRound = false
        }
        began = now
        firstByte = nil
        sentences = 0
        return speed
    }
}
