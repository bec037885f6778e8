import Foundation
import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

/// A directory of one test, removed with it.
final class Scratch: Sendable {
    let directory: String

    init() throws {
        // What is tested here is what was written, not what a disk does with it, and memory flushes at once.
        directory = try makeTemporaryDirectory()
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    var path: String { directory + "/outbox.db" }

    static func contents(of directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    static func read(_ path: String) -> [UInt8] { FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? [] }

    static func write(_ bytes: [UInt8], to path: String) { try? Data(bytes).write(to: URL(fileURLWithPath: path)) }

    /// Database and log are elsewhere for a while.
    /// - Parameter isBlocked: a directory is in the place of the database, so that no other one can be made there.
    func hide(isBlocked: Bool = false) {
        for part in ["", "-wal"] { rename(path + part, path + "-hidden" + part) }
        if isBlocked { mkdir(path, 0o700) }
    }

    func show() {
        rmdir(path)
        for part in ["", "-wal"] { rename(path + "-hidden" + part, path + part) }
    }

    /// - Returns: what the medium holds once this process has ended. The files hold what they did before.
    func image(after process: () throws -> Outbox) throws -> CrashImage {
        let before = CrashImage(of: path)
        defer {
            before.write(to: path)
            // What the process has left there is of its own files.
            unlink(path + "-lock")
        }
        try process().close()
        return CrashImage(of: path)
    }

    /// - Parameter tables: whose rows get their checksums again.
    func execute(_ sql: String, changing tables: [Schema.Summed] = []) throws(OutboxError) {
        let connection = try Connection(path: path, access: .readWrite)
        try connection.execute(sql)
        for table in tables { try connection.execute("UPDATE \(table.table) SET sum = \(table.sum)") }
    }
}

/// What the medium held at one instant: database and log as they were, without the shared memory.
struct CrashImage: Equatable {
    var database: [UInt8]
    var log: [UInt8]

    init(of path: String) {
        database = Scratch.read(path)
        log = Scratch.read(path + "-wal")
    }

    init(database: [UInt8], log: [UInt8]) {
        self.database = database
        self.log = log
    }

    /// Where in the log the first byte is that was written since.
    func firstDifference(from before: CrashImage) -> Int? {
        let common = min(log.count, before.log.count)
        for start in stride(from: 0, to: common, by: 1024) {
            let end = min(start + 1024, common)
            if memcmp(Array(log[start..<end]), Array(before.log[start..<end]), end - start) == 0 { continue }
            return (start..<end).first { log[$0] != before.log[$0] }
        }
        return log.count > common ? common : nil
    }

    func write(to path: String) {
        unlink(path + "-shm")
        Scratch.write(database, to: path)
        Scratch.write(log, to: path + "-wal")
    }
}

let testUUID: [UInt8] = [
    0x7f, 0x3a, 0x91, 0xc2, 0x5b, 0x0e, 0x4d, 0x19, 0x8c, 0x27, 0x61, 0xe4, 0xa0, 0xd3, 0xf5, 0x92,
]
/// How far `testUUID` makes the numbers leap at a start: 10,000 and its first 20 bits.
let testLeap: Int64 = 10_000 + 0x7f3a9
let testBoot = "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"

extension Location {
    /// A fix whose values survive the scaled integers of the queue exactly.
    static func sample(
        _ number: Int, trackable: String? = "van-7", event: LocationEvent = .none, published: Bool = true
    ) -> Location {
        // Values that change as a receiver's do, so that a row takes as many bytes as one.
        let noise = number &* 7919 % 1000
        return Location(
            trackable: trackable, time: UTCTime(milliseconds: 1_700_000_000_123 + Int64(number) * 1000), at: .zero,
            coordinate: Coordinate(latitudeE7: 525_200_066 &+ Int32(number), longitudeE7: 134_049_540 &- Int32(number)),
            altitudeMSL: Double(3410 + noise) / 100, horizontalAccuracy: 4.5, speed: 12.3, course: Double(noise % 360),
            satellitesUsed: 9, mode: .threeD,
            quality: .dgps, moving: true, event: event, reason: "displacement", odometer: Double(number),
            power: PowerState(batteryPercent: 87, charging: true, externalPower: nil), published: published)
    }
}

extension Location {
    /// A crossing and a trip with all that rows can have, and characters that are no plain text.
    static var awkward: [Location] {
        var full = Location.sample(1, event: .geofence)
        full.altitudeHAE = 73.7
        full.hdop = 0.9
        full.coordinate = Coordinate(latitudeE7: -337_654_321, longitudeE7: -1_800_000_000)
        full.power.externalPower = false
        full.geofence = GeofenceCrossing(
            id: "venue/é/1", name: "Dépôt \"Nord\"", action: .dwell, source: .beacon, serverID: "é/1")
        full.geofence?.entryIsUnplaced = true
        var trip = Location.sample(2, trackable: "", event: .trip)
        trip.reason = ""
        trip.trip = TripSummary(
            start: UTCTime(milliseconds: -5), startCoordinate: full.coordinate, end: UTCTime(milliseconds: 7),
            distance: 15_230.4, idle: 61.25, maxSpeed: 33.33)
        return [full, trip]
    }
}

func samples(_ numbers: Range<Int>) -> [Location] { numbers.map { Location.sample($0) } }
func samples(_ numbers: Int...) -> [Location] { numbers.map { Location.sample($0) } }

extension NewRow {
    static func samples(_ numbers: Range<Int>) -> [NewRow] { numbers.map { NewRow(Location.sample($0)) } }

    static func crossing(_ number: Int, _ fence: String, _ action: GeofenceCrossing.Action) -> NewRow {
        var location = Location.sample(number, event: .geofence)
        location.geofence = GeofenceCrossing(id: fence, name: nil, action: action)
        return NewRow(location)
    }
}

extension Scratch {
    /// Removes rows behind the back of whoever has the queue.
    func removeRows(_ seqs: Set<Int64>) throws(OutboxError) {
        try Database(path: path).rows.change(RowRange(0, .max)) { seqs.contains($0.seq) ? .removal : .none }
    }
}

extension EndpointSettings {
    static func test(
        _ name: String = "main", baseURL: String = "http://127.0.0.1:1", feed: Feed = .network, required: Bool = true,
        backfill: Bool = false
    ) -> EndpointSettings {
        EndpointSettings(
            name: name, baseURL: baseURL, device: "van-7", feed: feed, required: required, backfill: backfill)
    }

    /// A backup for `main`.
    static var spare: EndpointSettings {
        var spare = EndpointSettings.test("spare")
        spare.backupFor = "main"
        return spare
    }

    static var both: [EndpointSettings] { [.test("a"), .test("b")] }
}

extension FormRequest {
    static func of(_ limit: Int, _ endpoint: String = "main", route: String? = nil) -> FormRequest {
        FormRequest(endpoint: endpoint, route: route, limit: limit, sentMs: nil)
    }
}

extension Outbox {
    /// Drops the cursor of an endpoint that is no longer configured, and with it its claim on rows.
    func forget(endpoint name: String) throws(OutboxError) {
        _ = try commit(Commit(orders: [.forget(endpoint: name)]))
    }

    /// - Parameter rows: recorded at once.
    static func open(
        _ scratch: Scratch, _ endpoints: [EndpointSettings] = [.test()], rows: Int = 0, maxRecords: Int? = nil,
        maxAge: Duration? = .seconds(30 * 86_400), maxBytes: Int64? = 256 << 20,
        onFull: OutboxSettings.OnFull = .dropOldest,
        bootID: String? = testBoot, random: [UInt8] = testUUID, worksWithoutDisk: Bool = false
    ) throws(OutboxError) -> Outbox {
        let settings = OutboxSettings(
            path: scratch.path, maxRecords: maxRecords, maxAge: maxAge, maxBytes: maxBytes, onFull: onFull)
        let outbox = try Outbox(
            settings, endpoints: endpoints, bootID: bootID, newUUID: random, worksWithoutDisk: worksWithoutDisk)
        if rows > 0 { try outbox.append(0..<rows) }
        return outbox
    }

    @discardableResult
    func append(_ numbers: Range<Int>) throws(OutboxError) -> CommitReply {
        try commit(Commit(rows: NewRow.samples(numbers)))
    }

    /// Carries a commit out in memory.
    @discardableResult
    func keep(_ commit: Commit) throws(OutboxError) -> CommitReply {
        var commit = commit
        commit.asksDisk = false
        return try self.commit(commit)
    }

    /// A batch of the quarantine: of two rows that the server refused, and that an operator wants sent again.
    func retried() throws -> Batch {
        try append(0..<2)
        try acknowledge(try #require(try form(2)), .refused(Refusal(reason: "bad")))
        _ = try commit(Commit(orders: [.retryQuarantined(endpoint: nil, ids: [])]))
        return try #require(try form(2))
    }

    func form(_ limit: Int, endpoint: String = "main", sentMs: Int64? = nil) throws(OutboxError) -> Batch? {
        try commit(Commit(forms: [FormRequest(endpoint: endpoint, limit: limit, sentMs: sentMs)])).formed.first
    }

    @discardableResult
    func acknowledge(_ batch: Batch, _ how: BatchAnswer.Outcome = .accepted) throws(OutboxError) -> CommitReply {
        try commit(Commit(answers: [BatchAnswer(endpoint: batch.endpoint, batchID: batch.id, outcome: how)]))
    }
}

extension OutboxWriter {
    /// Takes answers until there are enough.
    func drain(until isDone: () -> Bool) throws {
        while !isDone() {
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            try #require(poll(&ready, 1, 60_000) == 1)
            drain()
        }
    }
}

/// Makes every descriptor of this file useless for writing, as a failing medium does.
func breakDescriptors(of path: String) throws { try replaceDescriptors(of: path, by: "/dev/null", O_RDONLY) }

/// Makes every descriptor of this file lead to another one.
func replaceDescriptors(of path: String, by other: String, _ flags: Int32) throws {
    let void = Glibc.open(other, flags)
    defer { close(void) }
    var broken = 0
    for name in Scratch.contents(of: "/proc/self/fd") {
        guard let descriptor = Int32(name), descriptor != void else { continue }
        guard (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) == path else {
            continue
        }
        dup2(void, descriptor)
        broken += 1
    }
    try #require(broken > 0)
}
