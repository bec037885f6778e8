import Glibc
import Testing

@testable import Queue

@Suite struct OutboxWriterTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func answersInOrderOnTheCallersThread() throws {
        let writer = try OutboxWriter(try Outbox.open(scratch))
        let thread = pthread_self()
        var answers: [Int64] = []
        for number in 0..<50 {
            writer.submit(Commit(rows: [NewRow(.sample(number))])) { result in
                #expect(pthread_equal(thread, pthread_self()) != 0)
                answers.append((try? result.get().lastSeq) ?? -1)
            }
        }
        try writer.drain { answers.count == 50 }
        #expect(answers == Array(1...50 as ClosedRange<Int64>))
    }

    @Test func carriesOutWhatWasSubmittedBeforeItCloses() throws {
        let writer = try OutboxWriter(try Outbox.open(scratch))
        var last: Int64 = 0
        for number in 0..<20 {
            writer.submit(Commit(rows: [NewRow(.sample(number))])) { last = (try? $0.get().lastSeq) ?? -1 }
        }
        writer.close()
        #expect(last == 20)
        writer.submit(Commit(rows: [NewRow(.sample(20))])) { result in
            if case .success = result { Issue.record("a closed writer took a commit") }
            last = 0
        }
        writer.close()
        #expect(last == 0)
        #expect(try Outbox.open(scratch).current.rows == 20)
    }

    /// A disk that hangs must not keep the daemon from ending.
    @Test func waitsForACommitThatHangsNoLongerThanItIsTold() throws {
        let writer = try OutboxWriter(try Outbox.open(scratch))
        // SQLite waits two seconds for this one.
        let other = try Connection(path: scratch.path, access: .readWrite)
        try other.execute("BEGIN IMMEDIATE")
        var answered = false
        writer.submit(Commit(rows: [NewRow(.sample(1))])) { _ in answered = true }
        #expect(!writer.close(timeout: .milliseconds(20)))
        #expect(!answered)
    }

    @Test func submitsFromACompletion() throws {
        let writer = try OutboxWriter(try Outbox.open(scratch))
        var done = 0
        func next(_ number: Int) {
            writer.submit(Commit(rows: [NewRow(.sample(number))])) { _ in
                done += 1
                if number < 5 { next(number + 1) }
            }
        }
        next(1)
        try writer.drain { done == 5 }
        #expect(done == 5)
    }
}
