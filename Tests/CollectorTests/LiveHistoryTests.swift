import Testing

@testable import waypost_collector

/// The events that a page which comes back asks for.
@Suite struct LiveHistoryTests {
    private func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }

    private func history(events: Int, bytesMax: Int = 1 << 20, size: Int = 10) -> LiveHistory {
        var history = LiveHistory(run: "a1", bytesMax: bytesMax)
        for number in 0..<events {
            let digits = String(number)
            history.append("row", Array((String(repeating: "0", count: size - digits.utf8.count) + digits).utf8))
        }
        return history
    }

    /// All that it holds after a position, piece by piece.
    private func rest(of history: LiveHistory, after position: LiveHistory.Position) -> (text: String, pieces: Int) {
        var (all, pieces, position) = ([UInt8](), 0, position)
        while let (bytes, end) = history.events(after: position) {
            all += bytes
            pieces += 1
            position = end
        }
        return (text(all), pieces)
    }

    @Test func continuesAfterTheLastEvent() throws {
        let history = history(events: 3)
        let after = try #require(LiveHistory.Position(id: "a1-2"))
        #expect(history.knows(after))
        let (bytes, end) = try #require(history.events(after: after))
        #expect(text(bytes) == "event: row\nid: a1-3\ndata: 0000000002\n\n")
        #expect(end.id == "a1-3")
        #expect(history.events(after: end) == nil)
    }

    @Test func startsBeforeTheOldest() {
        let empty = LiveHistory(run: "a1", bytesMax: 100)
        #expect(empty.beginning.id == "a1-0")
        #expect(empty.knows(empty.beginning))
        #expect(empty.events(after: empty.beginning) == nil)
        #expect(rest(of: history(events: 3), after: empty.beginning).text.hasPrefix("event: row\nid: a1-1\n"))
    }

    @Test(arguments: ["a1-4", "b2-1", "a1--1", "a1-", "-", "", "a1", "a1-1-1", "a1-99999999999999999999", "a1-x"])
    func whatItDoesNotKnowIsNoPosition(id: String) {
        let history = history(events: 3)
        let position = LiveHistory.Position(id: id)
        #expect(position.map(history.knows) ?? false == false)
    }

    @Test func forgetsTheOldestBeyondItsBytes() {
        let oneEvent = LiveHistory.event("row", Array("0000000000".utf8), at: .init(run: "a1", number: 10)).count
        let history = history(events: 99, bytesMax: 7 * oneEvent)
        #expect(history.beginning.id == "a1-92")
        #expect(history.knows(.init(run: "a1", number: 92)))
        #expect(!history.knows(.init(run: "a1", number: 91)))
        let (text, _) = rest(of: history, after: history.beginning)
        #expect(text.utf8.count == 7 * oneEvent)
        #expect(text.hasPrefix("event: row\nid: a1-93\n"))
        #expect(text.hasSuffix("id: a1-99\ndata: 0000000098\n\n"))
    }

    /// Numbers stay right when the forgotten ones are removed, many at a time.
    @Test func numbersGoOnForEver() {
        let history = history(events: 5000, bytesMax: 1000)
        let (text, _) = rest(of: history, after: history.beginning)
        #expect(text.utf8.count <= 1000)
        #expect(text.hasPrefix("event: row\nid: a1-\(history.beginning.number + 1)\n"))
        #expect(text.hasSuffix("id: a1-5000\ndata: 0000004999\n\n"))
    }

    @Test func anEventLargerThanAllIsForgottenAtOnce() {
        let history = history(events: 1, bytesMax: 100, size: 200)
        #expect(history.beginning.id == "a1-1")
        #expect(history.events(after: history.beginning) == nil)
    }

    @Test func handsOutPieces() {
        let history = history(events: 300, size: 1000)
        let (text, pieces) = rest(of: history, after: history.beginning)
        #expect(text.utf8.count > 300_000)
        #expect(pieces == 5)
    }
}
