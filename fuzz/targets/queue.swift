import CSQLite
import CSimDisk

@testable import Delivery
@testable import Profiles
@testable import Queue
@testable import WaypostCore

/// libFuzzer entry: whatever stands in the files of a queue, the daemon opens it or says that it is none, and goes on: it
/// takes rows, forms batches and settles them, keeps what it has taken over a restart, reads and writes no more than a
/// number of times, and changes no file that is not the queue's.
///
/// The input is a script: how the files that a good queue leaves are changed (bytes, parts cut off, SQL, a journal, other files
/// in their place), and what is done then.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzQueue(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    let choice = input.byte()
    simdisk_reset(0)
    QueueImage.plant(log: choice & 1 == 0 ? QueueImage.good.log : nil, QueueImage.good)
    simdisk_plant("/etc/other", Bystander.text, Int64(Bystander.text.count))
    simdisk_plant("/etc/journal", Bystander.text, Int64(Bystander.text.count))
    var lines = Int(input.byte() % 8)
    while lines > 0, !input.isOver {
        lines -= 1
        change(&input)
    }
    simdisk_kill()
    simdisk_home(path)
    var daemon = Daemon(choice, &input)
    daemon.run()
    demand(simdisk_counter(Int32(simdisk_strays)) == 0, "a file of others was changed")
    for name in ["/etc/other", "/etc/journal"] { demand(Bystander.stands(at: name), "\(name) was changed") }
    let work = simdisk_counter(Int32(simdisk_reads)) + simdisk_counter(Int32(simdisk_writes))
    demand(work < 300_000, "\(work) reads and writes")
    return 0
}

private let path = "/var/queue.db"

/// A file that is none of the queue's business.
private enum Bystander {
    static let text = Array("/var/queue.db-journal\0/var/nothing\0".utf8)

    static func stands(at name: String) -> Bool {
        guard simdisk_size(name) == Int64(text.count), let bytes = simdisk_contents(name) else { return false }
        return UnsafeBufferPointer(start: bytes, count: text.count).elementsEqual(text)
    }
}

/// The files of a queue with all that one can hold.
private struct QueueImage {
    var database: [UInt8]
    var log: [UInt8]
    /// The same rows with all of the log copied back.
    var settled: [UInt8]

    static let good = make()

    static func plant(log: [UInt8]?, _ image: QueueImage) {
        let database = log == nil ? image.settled : image.database
        simdisk_plant(path, database, Int64(database.count))
        if let log { simdisk_plant(path + "-wal", log, Int64(log.count)) }
    }

    private static func contents(_ name: String) -> [UInt8] {
        Array(UnsafeBufferPointer(start: simdisk_contents(name), count: Int(simdisk_size(name))))
    }

    private static func make() -> QueueImage {
        simdisk_reset(0)
        do throws(OutboxError) {
            var random = [UInt8](repeating: 7, count: 16)
            let outbox = try Outbox(
                OutboxSettings(path: path), endpoints: Daemon.endpoints + [Daemon.endpoint("old")], bootID: "boot",
                newUUID: random, medium: SimulatedMedium { 0 })
            _ = try outbox.commit(
                Commit(rows: (0..<30).map { NewRow(.numbered($0)) }, parts: .init(tracker: [1, 2], source: [3])))
            let forms = ["main", "late"].map { FormRequest(endpoint: $0, limit: 8, sentMs: 1_700_000_000_000) }
            let formed = try outbox.commit(Commit(forms: forms)).formed
            _ = try outbox.commit(
                Commit(answers: [BatchAnswer(endpoint: "main", batchID: formed[0].id, outcome: .split)]))
            let refusal = Refusal(reason: "a rule", status: 400, reply: [0x7B])
            if let batch = outbox.inFlight().first(where: { $0.endpoint == "main" }) {
                _ = try outbox.commit(
                    Commit(answers: [
                        BatchAnswer(
                            endpoint: "main", batchID: batch.id,
                            outcome: .partly(refused: [batch.rows[0].seq: refusal], again: [batch.rows[2].seq]))
                    ]))
            }
            outbox.close()
            simdisk_kill()
            // Another start: a new boot, and an endpoint that is there no more.
            random[0] = 9
            let later = try Outbox(
                OutboxSettings(path: path), endpoints: Daemon.endpoints, bootID: "boot-2", newUUID: random,
                medium: SimulatedMedium { 0 })
            _ = try later.commit(Commit(rows: (30..<40).map { NewRow(.numbered($0)) }))
            later.close()
            let (database, log) = (contents(path), contents(path + "-wal"))
            simdisk_kill()
            let connection = try Connection(path: path, access: .readWrite, medium: SimulatedMedium { 0 })
            _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
            return QueueImage(database: database, log: log, settled: contents(path))
        } catch {
            fatalError("\(error)")
        }
    }
}

/// One change of the files.
private func change(_ input: inout Input) {
    let kind = input.byte()
    let part = ["", "", "-wal", "-journal"][Int(kind >> 6)]
    switch kind & 7 {
    case 0, 1:
        guard let before = simdisk_contents(path + part) else { return }
        var bytes = Array(UnsafeBufferPointer(start: before, count: Int(simdisk_size(path + part))))
        let offset = Int(input.number(bytes: 2))
        for (index, byte) in input.bytes(Int(input.byte())).enumerated() where offset + index < bytes.count {
            bytes[offset + index] = byte
        }
        simdisk_plant(path + part, bytes, Int64(bytes.count))
    case 2:
        guard let before = simdisk_contents(path + part) else { return }
        let count = min(Int(input.number(bytes: 2)), Int(simdisk_size(path + part)))
        simdisk_plant(path + part, Array(UnsafeBufferPointer(start: before, count: count)), Int64(count))
    case 3:
        let bytes = input.bytes(Int(input.number(bytes: 2)))
        simdisk_plant(path + part, bytes, Int64(bytes.count))
    case 4:
        let journal = journal(naming: ["/etc/other", "/etc/journal", path, "/var/queue.db-wal"][Int(kind >> 3 & 3)])
        simdisk_plant(path + "-journal", journal, Int64(journal.count))
    case 5:
        let number = 1 + Int(input.byte() % 3)
        for part in ["", "-wal", "-journal"] where simdisk_exists(path + part) {
            _ = simdisk_rename(path + part, "\(path).corrupt-\(number)\(part)")
        }
    default: run(String(decoding: input.line(), as: UTF8.self))
    }
}

/// What a hand, or another program, does to the queue.
private func run(_ sql: String) {
    simdisk_kill()
    // What this takes is not the daemon's.
    guard let connection = try? Connection(path: path, access: .readWrite, medium: SimulatedMedium { 0 }) else {
        return
    }
    sqlite3_limit(connection.handle, SQLITE_LIMIT_LENGTH, 100_000)
    var left = 50
    withUnsafeMutablePointer(to: &left) { left in
        sqlite3_progress_handler(
            connection.handle, 1000,
            { context in
                let left = context!.assumingMemoryBound(to: Int.self)
                left.pointee -= 1
                return left.pointee < 0 ? 1 : 0
            }, left)
        _ = try? connection.execute(sql)
        sqlite3_progress_handler(connection.handle, 0, nil, nil)
    }
}

/// A rollback journal that would have nothing rolled back, and names another file as that of a transaction over several.
private func journal(naming other: String) -> [UInt8] {
    func word(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    let magic: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    var bytes = magic + word(0) + word(0) + word(Int(simdisk_size(path)) / 512) + word(512) + word(512)
    bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
    let name = Array(other.utf8)
    bytes += word(0x4000_0000 / 512 + 1) + name + word(name.count) + word(name.reduce(0) { $0 + Int($1) }) + magic
    return bytes
}

/// What a daemon does with the queue that it finds.
private struct Daemon {
    private let choice: UInt8
    private var steps: [UInt8]
    private var start: UInt8 = 20
    private var row = 100
    private var at: Int64 = 1_000_000_000

    static func endpoint(_ name: String) -> EndpointSettings {
        EndpointSettings(name: name, baseURL: "http://127.0.0.1:1", device: "van-7")
    }

    static let endpoints: [EndpointSettings] = {
        var late = endpoint("late")
        late.required = false
        late.feed = .engine
        late.delivery = .latest
        var spare = endpoint("spare")
        spare.backupFor = "main"
        return [endpoint("main"), late, spare]
    }()

    init(_ choice: UInt8, _ input: inout Input) {
        self.choice = choice
        steps = input.bytes(24)
    }

    private var settings: OutboxSettings {
        var settings = OutboxSettings(path: path)
        if choice & 2 != 0 { settings.maxRecords = 20 }
        if choice & 4 != 0 { settings.onFull = .thin }
        if choice & 8 != 0 { settings.maxAge = .seconds(60) }
        return settings
    }

    private mutating func open() -> Outbox? {
        start += 1
        var endpoints = Self.endpoints
        if choice & 16 != 0 { endpoints[0].device = "van-8" }
        let now = at
        do throws(OutboxError) {
            return try Outbox(
                settings, endpoints: endpoints, bootID: "boot-\(start)", newUUID: [UInt8](repeating: start, count: 16),
                worksWithoutDisk: true, locksExclusively: choice & 32 != 0, medium: SimulatedMedium { now })
        } catch {
            switch error.cause {
            case .foreign, .otherSchema: return nil
            default: fatalError("it does not start: \(error)")
            }
        }
    }

    mutating func run() {
        // Of the queue, or of a copy that was set aside.
        let namesOther = ([path] + (1...9).map { "\(path).corrupt-\($0)" }).contains {
            waypost_sqlite_journal_names_file(simdisk_vfs, $0 + "-journal") != 0
        }
        guard let outbox = open() else { return }
        // Such a journal has to be removed by hand.
        if namesOther, outbox.refusal?.cause == .cannotOpen { return outbox.close() }
        demand(outbox.refusal == nil, "the disk is said to refuse: \(outbox.refusal!)")
        var last = commit(outbox, Commit())
        for step in steps { last = act(step, outbox, last) }
        settleDown(outbox)
        last = take(outbox, 3)
        outbox.close()
        simdisk_kill()
        guard let again = open() else { fatalError("it is no queue any more") }
        demand(again.current.lastSeq >= last.lastSeq, "\(again.current.lastSeq) is behind \(last.lastSeq)")
        demand(again.current.rows >= 3, "rows are lost: \(again.current.rows)")
        demand(again.current.recovery.corruptRecovered == 0, "what it wrote itself is damaged")
        let reply = take(again, 3)
        demand(reply.lastSeq > last.lastSeq, "numbers are given again")
        again.close()
    }

    private mutating func take(_ outbox: Outbox, _ count: Int) -> CommitReply {
        row += count
        let before = outbox.current.lastSeq
        let reply = commit(
            outbox,
            Commit(rows: (row - count..<row).map { NewRow(.numbered($0)) }, parts: .init(tracker: [UInt8(row & 255)])))
        demand(reply.lastSeq >= before + Int64(count), "\(reply.lastSeq) after \(before) and \(count) rows")
        return reply
    }

    private mutating func commit(_ outbox: Outbox, _ commit: Commit) -> CommitReply {
        at += 100_000_000
        var commit = commit
        commit.ages = AgeReference(now: EventTime(nanoseconds: at), started: EventTime(nanoseconds: 1_000_000_000))
        do throws(OutboxError) {
            let reply = try outbox.commit(commit)
            demand(reply.refusal == nil, "the disk is said to refuse: \(reply.refusal!)")
            demand(reply.rows >= 0 && reply.bytes >= 0, "\(reply.rows) rows, \(reply.bytes) bytes")
            for depth in reply.depths {
                demand(
                    depth.waiting >= 0 && depth.inFlight >= 0, "\(depth.endpoint): \(depth.waiting), \(depth.inFlight)")
            }
            return reply
        } catch {
            fatalError("a commit is refused: \(error)")
        }
    }

    /// Until everything that can be read of a damaged queue is back.
    private mutating func settleDown(_ outbox: Outbox) {
        var rounds = 0
        while outbox.current.recovery.isSalvaging {
            rounds += 1
            demand(rounds < 60, "it is never done")
            _ = commit(outbox, Commit())
        }
    }

    private mutating func act(_ step: UInt8, _ outbox: Outbox, _ last: CommitReply) -> CommitReply {
        let endpoint = ["main", "late", "spare", "old"][Int(step >> 6)]
        let refusal = Refusal(reason: "a rule", status: 422)
        switch step & 15 {
        case 0: return take(outbox, 5)
        case 1, 2: return commit(outbox, Commit(forms: [FormRequest(endpoint: endpoint, limit: 4, sentMs: nil)]))
        case 3:
            let form = FormRequest(endpoint: "main", route: "spare", limit: 4, isProbe: true, sentMs: 1_700_000_000_000)
            return commit(outbox, Commit(forms: [form]))
        case 4...8:
            guard let batch = outbox.inFlight().first else { return last }
            let seqs = batch.rows.map(\.seq)
            demand(!seqs.isEmpty, "a batch without rows")
            demand(zip(seqs, seqs.dropFirst()).allSatisfy { $0 < $1 }, "a batch out of order: \(seqs)")
            let how: BatchAnswer.Outcome =
                switch step & 15 {
                case 4, 5: .accepted
                case 6: .split
                case 7: .refused(refusal)
                default: .partly(refused: [seqs[0]: refusal], again: Set(seqs.dropFirst().prefix(2)))
                }
            return commit(
                outbox, Commit(answers: [BatchAnswer(endpoint: batch.endpoint, batchID: batch.id, outcome: how)]))
        case 9: return order(.bind(endpoint: endpoint), outbox)
        case 10: return order(.drop(endpoint: endpoint), outbox)
        case 11: return order(.quarantine(endpoint: endpoint, refusal), outbox)
        case 12: return order(.retryQuarantined(endpoint: endpoint, ids: []), outbox)
        case 13: return order(.dropQuarantined(endpoint: endpoint, ids: []), outbox)
        case 14: return order(.forget(endpoint: endpoint), outbox)
        default: return order(.clear(endpoint: endpoint), outbox)
        }
    }

    private mutating func order(_ order: QueueOrder, _ outbox: Outbox) -> CommitReply {
        let reply = commit(outbox, Commit(orders: [order]))
        demand(reply.orders.count == 1, "\(reply.orders.count) answers to an order")
        return reply
    }
}

extension Location {
    fileprivate static func numbered(_ number: Int) -> Location {
        var location = Location(
            trackable: "van-7", time: UTCTime(milliseconds: 1_700_000_000_123 + Int64(number) * 1000), at: .zero,
            coordinate: Coordinate(latitudeE7: 525_200_066 + Int32(number), longitudeE7: 134_049_540 - Int32(number)),
            altitudeMSL: 34.1, horizontalAccuracy: 4.5, speed: 12.3, course: 271, satellitesUsed: 9, mode: .threeD,
            quality: .dgps, moving: true, event: .none, reason: "displacement", odometer: Double(number),
            power: PowerState(batteryPercent: 87, charging: true, externalPower: nil), published: number % 3 > 0)
        if number % 10 == 5 {
            location.event = .geofence
            location.geofence = GeofenceCrossing(id: "depot", name: "Depot", action: .enter, source: .device)
        }
        if number % 10 == 7 {
            location.trip = TripSummary(
                start: location.time, startCoordinate: location.coordinate, end: location.time, distance: 1200,
                idle: 12,
                maxSpeed: 13)
        }
        return location
    }
}
