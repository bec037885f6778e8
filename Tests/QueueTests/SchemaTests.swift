import Testing
import WaypostCore

@testable import Queue

/// The tables of the queue, and files of other versions.
@Suite struct SchemaTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    @Test func knowsTheTablesThatItHasMade() throws {
        let connection = try Connection(inMemoryFor: scratch.path, medium: SystemMedium())
        try connection.execute("PRAGMA page_size = \(DatabaseFile.pageSize)")
        try connection.execute(Schema.tables)
        let sum = try Schema.sumOfTables(connection)
        #expect(sum == Schema.sumOfFirstTables)
    }

    @Test(arguments: [1, 4])
    func refusesAQueueFromBeforeTheFirstReleaseWithoutTouchingIt(version: Int) throws {
        try Outbox.open(scratch).close()
        try scratch.execute(
            "ALTER TABLE state DROP COLUMN sum; PRAGMA user_version = \(version); PRAGMA wal_checkpoint")
        let before = CrashImage(of: scratch.path)
        let error = #expect(throws: OutboxError.self) { try Outbox.open(scratch) }
        #expect(error?.cause == .otherSchema(found: version, known: Schema.version()))
        #expect(error?.description.contains("move the file away") == true)
        #expect(CrashImage(of: scratch.path) == before)
        #expect(throws: OutboxError.self) { try OutboxReader(path: scratch.path) }
    }

    @Test func aStatementThatIsUsedAgainHasForgottenItsParameters() throws {
        Scratch.write([], to: scratch.path)
        let connection = try Connection(path: scratch.path, access: .readWrite)
        let found = try connection.reusingStatements { () throws(OutboxError) in
            [try connection.optionalInteger("SELECT ?", 7), try connection.optionalInteger("SELECT ?")]
        }
        #expect(found == [7, nil])
    }
}
