import Delivery
import Glibc
import Positioning
import TestSupport
import Testing

@testable import Outbox

/// A directory of one test, removed with it.
final class Scratch: Sendable {
    let directory: String

    init() throws {
        // What is tested here is what was written, not what a disk does with it, and memory flushes at once.
        directory = try makeTemporaryDirectory(in: access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp")
    }

    deinit { Self.remove(directory) }

    var path: String { directory + "/outbox.db" }

    private static func remove(_ directory: String) {
        for name in contents(of: directory) { unlink(directory + "/" + name) }
        rmdir(directory)
    }

    static func contents(of directory: String) -> [String] {
        guard let handle = opendir(directory) else { return [] }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    static func read(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var info = stat()
        fstat(descriptor, &info)
        var bytes = [UInt8](repeating: 0, count: Int(info.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + done, $0.count - done, off_t(done))
            }
            if count <= 0 { break }
            done += count
        }
        return Array(bytes.prefix(done))
    }

    static func write(_ bytes: [UInt8], to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(descriptor) }
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress! + done, $0.count - done, off_t(done))
            }
            if count <= 0 { break }
            done += count
        }
    }
}

/// What the medium held at one instant: database and log as they were, without the shared memory.
struct CrashImage {
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
}

extension Outbox {
    /// Drops the cursor of an endpoint that is no longer configured, and with it its claim on rows.
    func forget(endpoint name: String) throws(OutboxError) {
        _ = try commit(Commit(orders: [.forget(endpoint: name)]))
    }

    static func open(
        _ scratch: Scratch, _ endpoints: [EndpointSettings] = [.test()], maxRecords: Int? = nil,
        bootID: String? = testBoot, random: [UInt8] = testUUID, worksWithoutDisk: Bool = false
    ) throws(OutboxError) -> Outbox {
        try Outbox(
            OutboxSettings(path: scratch.path, maxRecords: maxRecords), endpoints: endpoints, bootID: bootID,
            newUUID: random, worksWithoutDisk: worksWithoutDisk)
    }

    @discardableResult
    func append(_ numbers: Range<Int>) throws(OutboxError) -> CommitReply {
        try commit(Commit(rows: numbers.map { NewRow(.sample($0)) }))
    }

    func form(_ limit: Int, endpoint: String = "main", sentMs: Int64? = nil) throws(OutboxError) -> Batch? {
        try commit(Commit(forms: [FormRequest(endpoint: endpoint, limit: limit, sentMs: sentMs)])).formed.first
    }

    @discardableResult
    func acknowledge(_ batch: Batch, _ how: BatchAnswer.Outcome = .accepted) throws(OutboxError) -> CommitReply {
        try commit(Commit(answers: [BatchAnswer(endpoint: batch.endpoint, batchID: batch.id, outcome: how)]))
    }
}

/// Makes every descriptor of this file useless for writing, as a failing medium does.
func breakDescriptors(of path: String) throws {
    let void = Glibc.open("/dev/null", O_RDONLY)
    defer { close(void) }
    var broken = 0
    for name in Scratch.contents(of: "/proc/self/fd") {
        guard let descriptor = Int32(name) else { continue }
        var target = [UInt8](repeating: 0, count: 512)
        let count = target.withUnsafeMutableBytes {
            readlink("/proc/self/fd/\(name)", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        guard count > 0, String(decoding: target[..<count], as: UTF8.self) == path else { continue }
        dup2(void, descriptor)
        broken += 1
    }
    try #require(broken > 0)
}
