/// Letters to add, drop, replace or swap with a neighbour (optimal string alignment) to turn one word into the other.
package func editDistance(_ a: some StringProtocol, _ b: some StringProtocol) -> Int {
    let a = Array(a.utf8), b = Array(b.utf8)
    var before = [Int](repeating: 0, count: b.count + 1)
    var above = Array(0...b.count)
    for i in a.indices {
        var row = [i + 1]
        for j in b.indices {
            var best = min(above[j] + (a[i] == b[j] ? 0 : 1), above[j + 1] + 1, row[j] + 1)
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
            row.append(best)
        }
        (before, above) = (above, row)
    }
    return above[b.count]
}

/// The word that was probably meant; nil when none is near. Of equally near words the first wins.
///
/// Case, `_` and `-` cost nothing beside letters: `batch-size` is `batch_size`.
package func nearest<Words: Sequence>(_ word: String, in words: Words) -> String? where Words.Element == String {
    guard word.utf8.count <= 64 else { return nil }
    let bare = word.withoutSeparators
    var best: (word: String, distance: Int, bareDistance: Int)?
    for candidate in words where candidate != word {
        let limit = max(1, min(3, candidate.utf8.count / 3))
        let bareCandidate = candidate.withoutSeparators
        // No distance is smaller than the difference in length.
        guard
            abs(word.utf8.count - candidate.utf8.count) <= limit
                || abs(bare.utf8.count - bareCandidate.utf8.count) <= limit
        else { continue }
        let distance = editDistance(word, candidate)
        let bareDistance = editDistance(bare, bareCandidate)
        guard min(distance, bareDistance) <= limit else { continue }
        if best == nil || (bareDistance, distance) < (best!.bareDistance, best!.distance) {
            best = (candidate, distance, bareDistance)
        }
    }
    return best?.word
}

extension String {
    fileprivate var withoutSeparators: String { lowercased().filter { $0 != "_" && $0 != "-" && $0 != " " } }
}
