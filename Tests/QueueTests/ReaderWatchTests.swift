import Glibc
import Profiles
import Testing

@testable import Queue

/// A queue that the daemon has to itself, and programs that read it all the same.
@Suite struct ReaderWatchTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func open() throws -> OutboxWriter {
        let outbox = try Outbox(
            OutboxSettings(path: scratch.path), endpoints: [.test()], bootID: nil, newUUID: testUUID,
            locksExclusively: true)
        return try OutboxWriter(outbox)
    }

    private func commit(_ numbers: Range<Int>, to writer: OutboxWriter) throws -> CommitReply {
        var result: Result<CommitReply, OutboxError>?
        writer.submit(Commit(rows: NewRow.samples(numbers))) { result = $0 }
        try writer.drain { result != nil }
        return try #require(result).get()
    }

    @Test func nobodyElseCausesAnIndexOnDisk() throws {
        let writer = try open()
        for number in 0..<20 { _ = try commit(number..<number + 1, to: writer) }
        #expect(access(scratch.path + "-wal", F_OK) == 0)
        #expect(access(scratch.path + "-shm", F_OK) != 0)
    }

    /// Its own reading of the rows needs no permission.
    @Test func readersAreLetInAndSeeAllThatIsCommitted() throws {
        let writer = try open()
        for round in 0..<5 {
            _ = try commit(round..<round + 1, to: writer)
            let reader = try OutboxReader(path: scratch.path)
            #expect(try reader.rowCount() == round + 1)
            _ = try commit(100..<100, to: writer)
            // Rows of later commits are seen by a reader that stays, too.
            #expect(try reader.depths().map(\.waiting) == [round + 1])
        }
        #expect(writer.close())
        #expect(try Outbox.open(scratch).current.rows == 5)
    }
}
