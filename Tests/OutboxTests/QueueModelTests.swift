import Delivery
import Outbox
import Positioning
import TestSupport
import Testing

/// Random histories, with the power cut at any moment, against the model.
@Suite struct QueueModelTests {
    @Test(arguments: (1...12).map { UInt64($0) })
    func behavesLikeTheModel(seed: UInt64) throws {
        try History(seed: seed).run(steps: 250)
    }

    /// A seed that nobody has seen; it is in the message when it fails.
    @Test func behavesLikeTheModelWithAFreshSeed() throws {
        try History(seed: UInt64.random(in: .min ... .max)).run(steps: 250)
    }
}

private final class History {
    let seed: UInt64
    var generator: SeededGenerator
    let scratch: Scratch
    let image: Scratch
    var model = QueueModel()
    var outbox: Outbox
    var maxRecords: Int?
    var recorded = 0
    /// Everything that each batch id ever named.
    var batches: [String: Batch] = [:]

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
            try compare("seed \(seed), step \(step), \(operation)")
        }
    }

    private func perform() throws -> String {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<11: return try commit()
        case 11: return try settleUnknown()
        case 12, 13: return try reopen([.test()] + randomEndpoints(), cut: false)
        case 14...16: return try reopen(model.endpoints.filter { $0.removedAt == nil }.map(\.settings), cut: true)
        case 17: return try reopen(randomEndpoints(), cut: Bool.random(using: &generator))
        case 18: return try forget()
        default:
            maxRecords = Bool.random(using: &generator) ? nil : Int.random(in: 20...60, using: &generator)
            return try reopen(model.endpoints.filter { $0.removedAt == nil }.map(\.settings), cut: false)
        }
    }

    /// Rows, settlements and new batches in one commit.
    private func commit() throws -> String {
        var commit = Commit()
        commit.rows = randomRows()
        model.append(commit.rows.map(\.location))
        for endpoint in model.endpoints where !endpoint.batch.isEmpty && Int.random(in: 0..<3, using: &generator) == 0 {
            let accepted = Int.random(in: 0..<5, using: &generator) > 0
            let id = try #require(batchID(of: endpoint))
            commit.settlements.append(
                Settlement(endpoint: endpoint.settings.name, batchID: id, how: accepted ? .accepted : .released))
            model.settle(endpoint.settings.name, accepted: accepted)
        }
        for endpoint in model.endpoints where Bool.random(using: &generator) {
            let limit = Int.random(in: 1...12, using: &generator)
            commit.forms.append(FormRequest(endpoint: endpoint.settings.name, limit: limit, sentMs: 1_800_000_000_000))
        }
        // A commit of nothing is none.
        if !(commit.rows.isEmpty && commit.settlements.isEmpty && commit.forms.isEmpty) { model.enforceLimit() }
        for form in commit.forms { model.form(form.endpoint, limit: form.limit) }
        let reply = try outbox.commit(commit)
        note(reply.formed)
        #expect(reply.lastSeq == model.lastSeq)
        return "commit of \(commit.rows.count) rows"
    }

    /// A settlement of a batch that is not there changes nothing.
    private func settleUnknown() throws -> String {
        _ = try outbox.commit(Commit(settlements: [Settlement(endpoint: "main", batchID: "7f3a91c2-main-0-0")]))
        model.enforceLimit()
        return "unknown settlement"
    }

    private func forget() throws -> String {
        guard let name = model.endpoints.first(where: { $0.removedAt != nil })?.settings.name else { return "nothing" }
        try outbox.forget(endpoint: name)
        model.forget(name)
        return "forget \(name)"
    }

    /// - Parameter cut: reopens a copy of the files as they stand now; the old process never closes anything.
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
        model.reopen(endpoints)
        model.maxRecords = maxRecords
        outbox = try Outbox.open(scratch, endpoints, maxRecords: maxRecords)
        note(try outbox.inFlight())
        return "\(cut ? "cut" : "reopen") with \(endpoints.map(\.name))"
    }

    private func randomEndpoints() -> [EndpointSettings] {
        ["spare", "live"].filter { _ in Bool.random(using: &generator) }.map { name in
            .test(
                name, baseURL: Int.random(in: 0..<8, using: &generator) == 0 ? "http://other" : "http://one",
                feed: Int.random(in: 0..<4, using: &generator) == 0 ? .engine : .network,
                required: Bool.random(using: &generator), backfill: Bool.random(using: &generator))
        }
    }

    private func randomRows() -> [NewRow] {
        (0..<Int.random(in: 0...8, using: &generator)).map { _ in
            recorded += 1
            var location = Location.sample(
                recorded, trackable: ["van-7", "van-8"].randomElement(using: &generator),
                event: Int.random(in: 0..<6, using: &generator) == 0
                    ? LocationEvent.allCases.randomElement(using: &generator)! : .none,
                published: Int.random(in: 0..<4, using: &generator) > 0)
            if !location.published { location.trackable = nil }
            if location.event == .geofence {
                location.geofence = GeofenceCrossing(id: "f-\(recorded)", name: "Depot", action: .exit, source: .beacon)
            }
            if location.event == .trip {
                location.trip = TripSummary(
                    start: UTCTime(milliseconds: 1), startCoordinate: location.coordinate,
                    end: UTCTime(milliseconds: 2), distance: 1234.5, idle: 0.125, maxSpeed: nil)
            }
            return NewRow(location, receivedMs: 1_700_000_000_000 + Int64(recorded))
        }
    }

    private func batchID(of endpoint: QueueModel.Endpoint) -> String? {
        batches.values.filter {
            $0.endpoint == endpoint.settings.name && $0.rows.map(\.seq) == endpoint.batch
        }.max { $0.generation < $1.generation }?.id
    }

    /// One id names the same rows and the same bytes for ever.
    private func note(_ formed: [Batch]) {
        for batch in formed {
            if let known = batches[batch.id] { #expect(known == batch, "seed \(seed)") }
            batches[batch.id] = batch
        }
    }

    private func compare(_ comment: String) throws {
        let note = Comment(rawValue: comment)
        let reader = try OutboxReader(path: scratch.path)
        let rows = try reader.oldest(100_000)
        try #require(rows.map(\.seq) == model.rows.map(\.seq), note)
        for (row, expected) in zip(rows, model.rows) { try #require(row.location == expected.location, note) }
        try #require(try reader.rowCount() == model.rows.count, note)
        let depths = outbox.current.depths
        let configured = model.endpoints.filter { $0.removedAt == nil }
        try #require(depths.map(\.endpoint) == configured.map(\.settings.name), note)
        for (depth, endpoint) in zip(depths, configured) {
            let unsettled = model.unsettled(endpoint)
            try #require(depth.waiting == unsettled.count - endpoint.batch.count, note)
            try #require(depth.inFlight == endpoint.batch.count, note)
            try #require(depth.oldestSeq == unsettled.first, note)
            try #require(depth.acked == endpoint.acked, note)
            try #require((depth.state == .rebind) == model.isHeld(endpoint), note)
        }
        let sendable = configured.filter { !model.isHeld($0) && !$0.batch.isEmpty }
        try #require(try outbox.inFlight().map { $0.rows.map(\.seq) } == sendable.map(\.batch), note)
        let removed = model.endpoints.filter { $0.removedAt != nil }
        try #require(
            Dictionary(uniqueKeysWithValues: outbox.removedEndpoints.map { ($0.name, $0.rows) })
                == Dictionary(uniqueKeysWithValues: removed.map { ($0.settings.name, model.unsettled($0).count) }), note
        )
        try #require(outbox.current.rows == model.rows.count, note)
    }
}
