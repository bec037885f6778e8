/// Equal answers in a row.
struct Streak: Hashable, Sendable {
    var word = ""
    var count = 0

    mutating func add(_ word: String) {
        count = word == self.word ? min(count + 1, 1_000_000) : 1
        self.word = word
    }
}
