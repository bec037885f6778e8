import Profiles
import TestSupport
import Testing
import WaypostCore

@testable import Queue

/// Random histories, with the power cut at any moment, against the model.
@Suite struct QueueModelTests {
    @Test(arguments: testSeeds([1, 2, 3, 4, 18_219_612_217_441_706_248]))
    func behavesLikeTheModel(seed: UInt64) throws {
        try History(seed: seed).run(steps: 250)
    }
}

private final class History {
    struct Deviation: Error, CustomStringConvertible {
        var description: String
    }

    /// What an id means: these rows for this device, in this rendering.
    struct Named: Equatable {
        var batch: Batch
        /// Device and asset. The address is no part of the bytes: a spare may move and be sent the same rows again.
        var asset: Substring
        var rendering: String
    }

    let seed: UInt64
    var generator: SeededGenerator
    let scratch: Scratch
    let image: Scratch
    var model = QueueModel()
    var outbox: Outbox
    var maxRecords: Int?
    var recorded = 0
    /// Everything that each batch id ever named.
    var batches: [String: Named] = [:]
    /// The ends and generations of the batches of an endpoint that begin with the same row, by their ids.
    var ends: [String: [String: [Int64]]] = [:]
    var wideLeap: Int64 = 0
    /// What is on disk while it refuses; nil = it does not.
    var onDisk: QueueModel?

    init(seed: UInt64) throws {
        self.seed = seed
        generator = SeededGenerator(seed: seed)
        scratch = try Scratch()
        image = try Scratch()
        model.reopen([.test()])
        outbox = try Outbox.open(scratch)
    }

    func run(steps: Int) throws {
        for step in 0..<steps {
            let operation = try perform()
            if let difference = try isInMemory ? differenceInMemory() : difference() {
                throw Deviation(description: "seed \(seed), step \(step), \(operation): \(difference)")
            }
        }
    }

    private func perform() throws -> String {
        switch Int.random(in: 0..<28, using: &generator) {
        case 0..<14: return try commit()
        case 14: return try settleUnknown()
        case 15, 16: return try reopen([.test()] + randomEndpoints(), cut: false)
        case 17...19: return try reopen(configured, cut: true)
        case 20: return try reopen(randomEndpoints(), cut: chance(2))
        case 21, 22: return try order()
        case 23...26: return try refuse()
        default:
            maxRecords = chance(2) ? nil : Int.random(in: 20...60, using: &generator)
            return try reopen(configured, cut: false)
        }
    }

    /// One time in this many.
    private func chance(_ many: Int) -> Bool { Int.random(in: 0..<many, using: &generator) == 0 }

    private var configured: [EndpointSettings] { model.endpoints.filter { $0.removedAt == nil }.map(\.settings) }

    /// Rows, answers and new batches in one commit.
    private func commit() throws -> String {
        var commit = Commit()
        commit.rows = randomRows()
        model.append(commit.rows)
        for batch in outbox.inFlight() where chance(3) {
            let how = randomAnswer(to: batch)
            commit.answers.append(BatchAnswer(endpoint: batch.endpoint, batchID: batch.id, outcome: how))
            let owner = try #require(
                model.endpoints.firstIndex { endpoint in
                    endpoint.batches.contains {
                        ($0.route ?? endpoint.settings.name) == batch.endpoint && $0.rows == batch.rows.map(\.seq)
                    }
                })
            let found = model.endpoints[owner].batches.first { $0.rows == batch.rows.map(\.seq) }!
            model.acknowledge(owner, found, how)
            if how != .split || found.rows.count > 1 { removes = true }
        }
        if removes { model.removeDelivered() }
        removes = false
        for endpoint in model.endpoints where chance(2) {
            let route = chance(3) ? model.endpoints.randomElement(using: &generator)?.settings.name : nil
            commit.forms.append(
                FormRequest(
                    endpoint: endpoint.settings.name, route: route == endpoint.settings.name ? nil : route,
                    limit: Int.random(in: 1...12, using: &generator), sentMs: 1_800_000_000_000))
        }
        // A commit of nothing is none.
        if !(commit.rows.isEmpty && commit.answers.isEmpty && commit.forms.isEmpty) { model.enforceLimit() }
        for form in commit.forms { model.form(form) }
        commit.asksDisk = onDisk != nil && chance(6)
        let reply = try outbox.commit(commit)
        note(reply.formed)
        #expect(reply.lastSeq == model.lastSeq)
        if reply.refusal == nil {
            // What goes back to the disk finds out which rows all have had.
            if onDisk != nil { model.removeDelivered() }
            (onDisk, model.laterLeap) = (nil, 0)
        }
        return "commit of \(commit.rows.count) rows, \(commit.answers.map(\.outcome)), \(commit.forms)"
    }

    private var removes = false

    private func randomAnswer(to batch: Batch) -> BatchAnswer.Outcome {
        let refusal = Refusal(reason: "bad", status: 422, reply: [0x7B, 0x7D], attempts: 1)
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: return .refused(refusal)
        case 1, 2: return .split
        case 3:
            var refused: [Int64: Refusal] = [:]
            var again: Set<Int64> = []
            for row in batch.rows {
                if chance(3) { refused[row.seq] = refusal }
                if chance(2) { again.insert(row.seq) }
            }
            return .partly(refused: refused, again: again)
        default: return .accepted
        }
    }

    /// The disk refuses a commit, which it may have stored all the same.
    private func refuse() throws -> String {
        guard onDisk == nil, maxRecords == nil else { return "nothing" }
        onDisk = model
        let rows = randomRows()
        let isStored = chance(2)
        if isStored { onDisk?.append(rows) }
        try outbox.beginInMemory(
            OutboxError(.io, path: scratch.path, message: "made up"), afterStoring: isStored ? Commit(rows: rows) : nil)
        if model.leap > 0 { model.laterLeap = wideLeap }
        model.append(rows)
        var again = Commit(rows: rows)
        again.asksDisk = false
        _ = try outbox.commit(again)
        return "the disk refuses, and has \(isStored ? "" : "not ")stored \(rows.count) rows"
    }

    private func order() throws -> String {
        guard onDisk == nil else { return "nothing" }
        let names = model.endpoints.map(\.settings.name) + ["unknown"]
        let name = names.randomElement(using: &generator)!
        let anybody = chance(2) ? nil : name
        let orders: [QueueOrder] = [
            .bind(endpoint: name), .drop(endpoint: name), .clear(endpoint: name), .forget(endpoint: name),
            .quarantine(endpoint: name, Refusal(reason: "moved")), .retryQuarantined(endpoint: anybody, ids: []),
            .retryQuarantined(endpoint: anybody, ids: []), .dropQuarantined(endpoint: anybody, ids: []),
        ]
        let order = orders.randomElement(using: &generator)!
        let expected = model.carryOut(order)
        switch order {
        case .drop, .clear, .quarantine, .forget: if expected != nil { model.removeDelivered() }
        case .bind, .retryQuarantined, .dropQuarantined: break
        }
        model.enforceLimit()
        let result = try outbox.commit(Commit(orders: [order])).orders
        if case .done(let rows, _, _) = result.first {
            #expect(rows == expected, "seed \(seed) \(order)")
        } else {
            #expect(expected == nil, "seed \(seed) \(order) \(result)")
        }
        note(outbox.inFlight())
        return "\(order)"
    }

    /// An answer of a batch that is not there changes nothing.
    private func settleUnknown() throws -> String {
        var commit = Commit(answers: [BatchAnswer(endpoint: "main", batchID: "7f3a91c2-main-0-0")])
        commit.asksDisk = onDisk == nil
        _ = try outbox.commit(commit)
        model.enforceLimit()
        return "unknown answer"
    }

    /// - Parameter cut: reopens a copy of the files as they are now; the old process never closes anything.
    private func reopen(_ endpoints: [EndpointSettings], cut: Bool) throws -> String {
        var endpoints = endpoints
        if cut {
            CrashImage(of: scratch.path).write(to: image.path)
            outbox.close()
            CrashImage(of: image.path).write(to: scratch.path)
        } else {
            outbox.close()
        }
        if endpoints.isEmpty { endpoints = [.test()] }
        // What was in memory alone is gone.
        if let onDisk { model = onDisk }
        onDisk = nil
        model.reopen(endpoints)
        model.maxRecords = maxRecords
        let random = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        model.laterLeap = 0
        wideLeap = (1 + Int64(random[6]) << 4 + Int64(random[7]) >> 4) << 20
        model.leap = 10_000 + Int64(random[0]) << 12 + Int64(random[1]) << 4 + Int64(random[2]) >> 4
        if chance(3) { model.boot = "boot \(Int.random(in: 0..<1000, using: &generator))" }
        outbox = try Outbox.open(
            scratch, endpoints, maxRecords: maxRecords, bootID: model.boot, random: random, worksWithoutDisk: true)
        note(outbox.inFlight())
        return "\(cut ? "cut" : "reopen") with \(endpoints.map(\.name))"
    }

    private func randomEndpoints() -> [EndpointSettings] {
        ["spare", "live", "third"].filter { _ in chance(2) }.map { name in
            var settings = EndpointSettings.test(
                name, baseURL: chance(6) ? "http://other" : "http://one", feed: chance(4) ? .engine : .network,
                required: chance(2), backfill: chance(2))
            if name == "spare", !chance(3) { settings.backupFor = "main" }
            if name == "live" {
                settings.profile.usesNewest = chance(2)
                settings.profile.rendering = settings.profile.usesNewest ? "newest/1" : chance(2) ? "live/1" : "live/2"
            }
            return settings
        }
    }

    private func randomRows() -> [NewRow] {
        (0..<Int.random(in: 0...8, using: &generator)).map { _ in
            recorded += 1
            var location = Location.sample(
                recorded, trackable: ["van-7", "van-8"].randomElement(using: &generator),
                event: chance(6) ? LocationEvent.allCases.randomElement(using: &generator)! : .none,
                published: !chance(4))
            if !location.published { location.trackable = nil }
            if location.event == .geofence {
                location.geofence = GeofenceCrossing(id: "f-\(recorded)", name: "Depot", action: .exit, source: .beacon)
            }
            if location.event == .trip {
                location.trip = TripSummary(
                    start: UTCTime(milliseconds: 1), startCoordinate: location.coordinate,
                    end: UTCTime(milliseconds: 2), distance: 1234.5, idle: 0.125, maxSpeed: nil)
            }
            let finished = chance(5) ? ["main", "spare", "live", "unknown"].filter { _ in chance(2) } : []
            var row = NewRow(location, receivedMs: 1_700_000_000_000 + Int64(recorded))
            row.finishedFor = finished
            return row
        }
    }

    /// One id names the same rows and the same bytes for ever.
    private func note(_ formed: [Batch]) {
        for batch in formed {
            let settings = model.endpoints.first { $0.settings.name == batch.endpoint }?.settings
            let named = Named(
                batch: batch, asset: settings?.fingerprint.drop { $0 != "\n" } ?? "",
                rendering: settings?.profile.rendering ?? "")
            if let known = batches[batch.id] { #expect(known == named, "seed \(seed)") }
            batches[batch.id] = named
            guard let first = batch.rows.first?.seq, let last = batch.rows.last?.seq else { continue }
            let (begin, end) = ("\(batch.endpoint) \(first)", [last, Int64(batch.generation)])
            let isNew = ends[begin, default: [:]].allSatisfy { $0.key == batch.id || $0.value != end }
            #expect(isNew, "seed \(seed), \(batch.id)")
            ends[begin, default: [:]][batch.id] = end
        }
    }
}

extension History {
    private var isInMemory: Bool { onDisk != nil }

    /// In what queue and model differ; nil = in nothing.
    private func difference() throws -> String? {
        let reader = try OutboxReader(path: scratch.path)
        let rows = try reader.oldest(100_000)
        if rows.map(\.seq) != model.rows.map(\.seq) { return "rows \(rows.map(\.seq)), not \(model.rows.map(\.seq))" }
        for (row, expected) in zip(rows, model.rows) where row.location != expected.location {
            return "row \(row), not \(expected)"
        }
        let counts = [try reader.rowCount(), outbox.current.rows]
        if counts != [rows.count, rows.count] { return "\(counts) rows, not \(rows.count)" }
        let depths = outbox.current.depths
        let configured = model.endpoints.filter { $0.removedAt == nil }
        if depths.map(\.endpoint) != configured.map(\.settings.name) { return "the endpoints of \(depths)" }
        for (depth, endpoint) in zip(depths, configured) {
            let waiting = model.waiting(endpoint)
            guard depth.waiting == waiting.count + endpoint.retries.count,
                depth.inFlight == endpoint.inFlight, depth.oldestSeq == model.unsent(endpoint, waiting: waiting).first,
                endpoint.isSpare || depth.ackedThrough == endpoint.ackedThrough,
                (depth.state == .rebind) == endpoint.isHeld
            else { return "\(depth), not \(endpoint) with \(waiting) waiting" }
            let records = try reader.quarantined(endpoint: endpoint.settings.name, limit: 10_000)
            guard depth.quarantined == endpoint.quarantine.count(where: { !$0.isRetried }),
                records.map(\.row.seq) == endpoint.quarantine.map(\.seq),
                records.map(\.isRetried) == endpoint.quarantine.map(\.isRetried)
            else { return "quarantine \(records) of \(depth), not \(endpoint.quarantine)" }
        }
        let sendable = configured.filter { !$0.isHeld }.flatMap(\.batches).map(\.rows)
        let inFlight = outbox.inFlight().map { $0.rows.map(\.seq) }
        if inFlight != sendable { return "\(inFlight) in flight, not \(sendable)" }
        let removed = model.endpoints.filter { $0.removedAt != nil }
        let kept = Dictionary(uniqueKeysWithValues: removed.map { ($0.settings.name, model.unsent($0).count) })
        let found = Dictionary(uniqueKeysWithValues: outbox.removedEndpoints.map { ($0.name, $0.rows) })
        return found == kept ? nil : "\(found) of removed endpoints, not \(kept)"
    }

    /// Records of the quarantine, and batches of them, are known again when the disk is back.
    private func differenceInMemory() throws -> String? {
        let configured = model.endpoints.filter { $0.removedAt == nil }
        for (depth, endpoint) in zip(outbox.current.depths, configured)
        where !endpoint.batches.contains(where: \.isRetry) && endpoint.quarantine.isEmpty {
            let waiting = model.waiting(endpoint)
            guard depth.waiting == waiting.count, depth.inFlight == endpoint.inFlight,
                depth.oldestSeq == model.unsent(endpoint, waiting: waiting).first
            else { return "\(depth), not \(endpoint) with \(waiting) waiting" }
        }
        let retries = Set(configured.flatMap(\.batches).filter(\.isRetry).map(\.rows))
        let sendable = configured.filter { !$0.isHeld }.flatMap(\.batches).filter { !$0.isRetry }.map(\.rows)
        let inFlight = outbox.inFlight().map { $0.rows.map(\.seq) }.filter { !retries.contains($0) }
        return inFlight == sendable ? nil : "\(inFlight) in flight, not \(sendable)"
    }
}
