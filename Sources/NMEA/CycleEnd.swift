/// Learns which sentence of a live receiver ends its cycle, so that an epoch need not wait for silence.
///
/// Only sentences that an epoch is made of count, not GSV or vendor lines that may follow now and then. A sentence that
/// comes several times an epoch (GSA of each constellation) is distinguished by its number.
struct CycleEnd: Sendable {
    /// Epochs in a row that must end alike.
    static let epochsToLearn = 5

    private var seen = InlineArray<16, UInt64>(repeating: 0)
    private var seenCount = 0
    /// The newest sentence of the open epoch: its address, and in the top byte which one of that address it is.
    private var newest: UInt64 = 0
    private var candidate: UInt64 = 0
    private var streak = 0

    var isLearned: Bool { streak >= Self.epochsToLearn }

    /// - Parameter address: up to seven letters as a number.
    /// - Returns: true when this is the learnt last one.
    mutating func sentenceAdded(_ address: UInt64) -> Bool {
        let address = address & 0xFF_FFFF_FFFF_FFFF
        var number: UInt64 = 1
        for i in 0..<seenCount where seen[i] == address { number += 1 }
        if seenCount < 16 {
            seen[seenCount] = address
            seenCount += 1
        }
        newest = number << 56 | address
        return isLearned && newest == candidate
    }

    mutating func epochClosed() {
        if newest != 0 {
            if newest == candidate {
                streak = min(streak + 1, Self.epochsToLearn)
            } else {
                candidate = newest
                streak = 1
            }
        }
        newest = 0
        seenCount = 0
    }

    /// A sentence came after the learnt last one: learn again.
    mutating func forget() {
        candidate = 0
        streak = 0
    }
}
