import Profiles
import Testing
import WaypostCore

@testable import Queue

/// Files of older versions.
@Suite struct MigrationTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// - Parameter mark: as of which row the counts were written: the file counts on from there.
    @Test(arguments: [0, 2, 4, 7])
    func opensAFileOfTheFirstVersionWithItsBatches(mark: Int64) throws {
        try writeFirstVersion(mark: mark)
        var settings = EndpointSettings.test()
        settings.profile.rendering = "waypost/1"
        let outbox = try Outbox.open(scratch, [settings])
        let batch = try #require(outbox.inFlight().first)
        #expect(batch.id == "7f3a91c2-main-3-5-g2")
        #expect(batch.rows.map(\.seq) == [3, 4, 5])
        #expect(batch.sentMs == 1_700_000_000_000)
        let depth = outbox.current.depths[0]
        #expect(depth.waiting == 4 && depth.inFlight == 3)
        #expect(depth.ackedThrough == 2 && depth.acceptedBefore)
        #expect(try outbox.acknowledge(batch).rows == 4)
        #expect(try outbox.form(9)?.id == "7f3a91c2-main-6-9")
        #expect(try outbox.append(9..<10).lastSeq == 10 + testLeap)
    }

    @Test func givesABatchOfTheFirstVersionThatIsRenderedOtherwiseAnotherID() throws {
        try writeFirstVersion(mark: 7)
        #expect(try Outbox.open(scratch).inFlight().map(\.id) == ["7f3a91c2-main-3-5-g3"])
    }

    @Test func aBlankFileGetsTheTablesThatTheStepsLeadTo() throws {
        func tables(_ statements: [String]) throws -> [String] {
            let connection = try Connection(inMemoryFor: scratch.path, medium: SystemMedium())
            try connection.execute("PRAGMA page_size = \(DatabaseFile.pageSize)")
            for statement in statements { try connection.execute(statement) }
            // Also those that the steps have made count as known.
            #expect(try Schema.hasNewestTables(connection))
            return try connection.rows("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name") { row in
                (0..<4 as Range<Int32>).map { row.text($0).filter { !$0.isWhitespace } }.joined(separator: " ")
            }
        }
        let made = try tables([Schema.newest])
        #expect(try made == tables(Schema.migrations) && made.count == 16)
    }

    @Test func aStatementThatIsUsedAgainHasForgottenItsParameters() throws {
        Scratch.write([], to: scratch.path)
        let connection = try Connection(path: scratch.path, access: .readWrite)
        let found = try connection.reusingStatements { () throws(OutboxError) in
            [try connection.optionalInteger("SELECT ?", 7), try connection.optionalInteger("SELECT ?")]
        }
        #expect(found == [7, nil])
    }

    /// Rows 3 to 9 with a batch of the first three, as the first version left them.
    private func writeFirstVersion(mark: Int64) throws {
        Scratch.write([], to: scratch.path)
        let connection = try Connection(path: scratch.path, access: .readWrite)
        try Schema.migrate(connection, steps: [Schema.migrations[0]])
        let uuid = String(hexOf: testUUID)
        try connection.execute(
            """
            BEGIN;
            INSERT INTO state VALUES (1, 'uuid', x'\(uuid)'), (2, 'mark', \(mark)), (3, 'rows', \(max(0, mark - 2)));
            INSERT INTO endpoint VALUES (1, 'main', '\(EndpointSettings.test().fingerprint)', 2, \(max(0, mark - 2)),
                1, 0, 'active', NULL, NULL, 0, 1);
            INSERT INTO batch VALUES (1, 3, 5, 3, NULL, 0, 1700000000000, 9, 2, 'waypost/1');
            """)
        for seq in 3...9 {
            try connection.execute(
                """
                INSERT INTO location VALUES (\(seq), NULL, NULL, \(1_700_000_000_000 + seq * 1000), NULL, 525200066,
                134049540, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 1, 0, 0)
                """)
        }
        try connection.execute("COMMIT")
    }
}
