import WaypostCore

/// Rows that went to quarantine within the last hour.
struct RecentRefusals: Sendable {
    static let most = 100
    private var times: [EventTime] = []

    /// - Returns: whether there are too many.
    mutating func refused(at now: EventTime) -> Bool {
        times.removeAll { $0 + .seconds(3600) <= now }
        times.append(now)
        if times.count > Self.most + 1 { times.removeFirst() }
        return times.count > Self.most
    }
}

/// How often a server refuses rows that are alone, and how much such refusals prove.
struct RefusalOdds: Sendable {
    private var acceptances = 0
    private var refusals = 0
    /// What was long ago counts half, and less and less.
    private static let most = 64
    static let refusalsLeast = 3
    private static let refusalsMost = 10
    /// Chance that a row without fault is set aside by a server that refuses at random.
    private static let chance = 0.001

    mutating func accepted() { count(\.acceptances) }
    mutating func refused() { count(\.refusals) }

    private mutating func count(_ kind: WritableKeyPath<Self, Int>) {
        self[keyPath: kind] += 1
        guard acceptances + refusals > Self.most else { return }
        (acceptances, refusals) = (acceptances / 2, refusals / 2)
    }

    /// Refusals of a row alone after which it is to blame: by chance they would hardly ever be so many. Three where others are
    /// accepted as a rule, ten where each second row is refused; never more, since a server that has begun to refuse everything
    /// would be asked as often for each row.
    var proof: Int {
        let share = Double(refusals + 1) / Double(acceptances + refusals + 2)
        var (count, left) = (0, 1.0)
        while left > Self.chance && count < Self.refusalsMost || count < Self.refusalsLeast {
            left *= share
            count += 1
        }
        return count
    }
}
