/// When to misbehave, and how. All conditions that are given must hold.
struct FaultPlan {
    enum Fault {
        case answer(status: Int, retryAfter: String?, body: String)
        case hang
        case close
        case closeAfterStore

        /// For people.
        var name: String {
            switch self {
            case .answer(let status, _, _): "answer \(status)"
            case .hang: "hang"
            case .close: "close"
            case .closeAfterStore: "close after store"
            }
        }
    }

    var fault: Fault
    /// Only this many of the first batches.
    var first: Int?
    /// Only this long after the start.
    var period: Duration?
    /// Only every so manieth batch, beginning with that one.
    var every: Int?
    /// Only with this probability, 0…1.
    var probability: Double?
    /// Only bodies above this size in bytes, as they come over the wire.
    var aboveBytes: Int?
    /// Only batches with one of these seqs.
    var seqs: Set<Int64> = []

    private var seen = 0
    private var random: UInt64

    init(_ fault: Fault, seed: UInt64) {
        self.fault = fault
        random = seed
    }

    mutating func fault(bodyBytes: Int, seqs rows: [Int64], sinceStart: Duration) -> Fault? {
        seen += 1
        // Drawn for every batch, so that the other conditions do not shift the sequence.
        let draw = nextFraction()
        if let first, seen > first { return nil }
        if let period, sinceStart >= period { return nil }
        if let every, seen % every != 0 { return nil }
        if let probability, draw >= probability { return nil }
        if let aboveBytes, bodyBytes <= aboveBytes { return nil }
        if !seqs.isEmpty, seqs.isDisjoint(with: rows) { return nil }
        return fault
    }

    /// SplitMix64.
    private mutating func nextFraction() -> Double {
        random &+= 0x9E37_79B9_7F4A_7C15
        var mixed = random
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((mixed ^ (mixed >> 31)) >> 11) / Double(1 << 53)
    }
}
