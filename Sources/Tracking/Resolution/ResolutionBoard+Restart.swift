import Positioning

// Across a restart.
extension ResolutionBoard {
    private enum Mark {
        static let spatial = 1
        static let temporal = 2
        static let sticky = 4
        static let bits = 3
    }

    /// Who is near, as a small number: 0 = far. With a check of destination and threshold, so that the flag of another
    /// destination is not taken over.
    func proximityMark(at index: Int) -> Int {
        let entry = entries[index]
        var flags = 0
        if entry.near.spatial { flags |= Mark.spatial }
        if entry.near.temporal { flags |= Mark.temporal }
        if isNearForAll, entry.trackable.id == active { flags |= Mark.sticky }
        return flags == 0 ? 0 : check(entry) << Mark.bits | flags
    }

    mutating func restoreProximity(_ mark: Int, at index: Int) {
        let entry = entries[index]
        guard mark != 0, mark >> Mark.bits == check(entry) else { return }
        if settings.proximity == .sticky {
            guard mark & Mark.sticky != 0, entry.trackable.id == active, armed != nil else { return }
            isNearForAll = true
        } else {
            guard entry.watched != nil else { return }
            entries[index].near.spatial = mark & Mark.spatial != 0
            entries[index].near.temporal = mark & Mark.temporal != 0
            guard entries[index].near.isNear else { return }
        }
        apply(policy.proximityChanged(of: entry.trackable, near: true))
    }

    /// FNV-1a, folded to 16 bits: it must be the same in every run, which the hashes of the language are not.
    private func check(_ entry: Entry) -> Int {
        let threshold = settings.proximity == .sticky ? armed : entry.watched
        let words = [
            UInt64(UInt32(bitPattern: entry.trackable.destination?.latitudeE7 ?? 0)),
            UInt64(UInt32(bitPattern: entry.trackable.destination?.longitudeE7 ?? 0)),
            (threshold?.spatial ?? 0).bitPattern,
            UInt64(bitPattern: threshold?.temporal?.nanoseconds ?? 0),
        ]
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for word in words {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                hash = (hash ^ (word >> shift & 0xFF)) &* 0x100_0000_01b3
            }
        }
        return Int((hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48) & 0xFFFF)
    }
}
