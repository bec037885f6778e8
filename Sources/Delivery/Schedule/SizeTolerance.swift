import WaypostCore

/// The rows of a batch that a server is believed not to refuse as too large (413).
///
/// A refusal halves them, and accepted batches let them grow again: the limit may be that of a proxy which is mended, and a
/// larger batch that is refused costs one request. The next larger one is tried later each time that it is refused.
struct SizeTolerance: Sendable {
    private(set) var rows: Int
    /// Of the last refusal.
    private(set) var status = 413
    private let most: Int
    /// Before refusals that one row among others may account for.
    private var before: Int?
    /// A size that was refused; larger ones since then are neither accepted nor refused. nil = none is being tried.
    private var refusedAbove: Int?
    /// Batches that were accepted since the last refusal or growth.
    private var accepted = 0
    private var growsAfter = Self.growsAfterLeast

    private static let growsAfterLeast = 4
    private static let growsAfterMost = 256

    /// - Parameter most: as the setting says.
    init(most: Int) { (rows, self.most) = (most, most) }

    /// Batches are smaller than the setting says.
    var isLess: Bool { rows < most }

    mutating func accepted(rows count: Int) {
        rows = max(rows, min(count, most))
        if let size = refusedAbove, count > size { (refusedAbove, growsAfter) = (nil, Self.growsAfterLeast) }
        guard isLess else { return }
        accepted += 1
        guard accepted >= growsAfter else { return }
        (refusedAbove, before, accepted) = (rows, nil, 0)
        rows = min(rows * 2, most)
    }

    mutating func refused(rows count: Int, status: Int) {
        if refusedAbove != nil { growsAfter = min(growsAfter * 2, Self.growsAfterMost) }
        before = before ?? rows
        rows = min(rows, (count + 1) / 2)
        (refusedAbove, accepted, self.status) = (nil, 0, status)
    }

    /// A row that is too large even alone accounts for the refusals of all batches that it was in.
    mutating func refusedAlone() {
        guard let before else { return }
        (rows, self.before, accepted) = (max(rows, before), nil, 0)
    }
}

extension SizeTolerance {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(rows >= 1 && rows <= max(1, most), "batches of \(rows) rows of \(most)")
        invariant(accepted >= 0, "\(accepted) accepted")
        invariant(
            growsAfter >= Self.growsAfterLeast && growsAfter <= Self.growsAfterMost, "it grows after \(growsAfter)")
    }
}
