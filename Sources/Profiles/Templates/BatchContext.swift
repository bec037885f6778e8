import WaypostCore

/// What one rendering knows: the endpoint, the batch and what its rows have in common.
struct BatchContext {
    let settings: EndpointSettings
    let render: RenderContext
    let batch: Batch
    /// All rows agree.
    let hasOneBoot: Bool
    let hasOneTrackable: Bool

    init(_ settings: EndpointSettings, _ render: RenderContext, _ batch: Batch) {
        self.settings = settings
        self.render = render
        self.batch = batch
        let rows = batch.rows
        hasOneBoot = rows.dropFirst().allSatisfy { $0.bootID == rows[0].bootID }
        hasOneTrackable = rows.dropFirst().allSatisfy { $0.location.trackable == rows[0].location.trackable }
    }

    func value(_ name: RecordName, of row: QueuedLocation) -> RenderedValue? {
        switch name.type {
        case .int: row.scaled(name).map { .int($0) }
        case .float: row.scaled(name).map { .decimal($0, places: name.places) }
        case .bool: row.flag(name).map { .bool($0) }
        case .string: word(name, of: row).map { .text($0) }
        case .object: nil
        }
    }

    func word(_ name: RecordName, of row: QueuedLocation) -> String? {
        switch name {
        case .id: render.identify(batch.outbox, row.seq)
        case .rowTrackable: hasOneTrackable ? nil : row.location.trackable
        case .rowBootID: hasOneBoot ? nil : row.bootID
        default: row.word(name)
        }
    }

    func value(_ name: BatchName) -> RenderedValue? {
        switch name {
        case .outbox: .text(batch.outboxName)
        case .trackable: hasOneTrackable ? batch.rows.first?.location.trackable.map { .text($0) } : nil
        case .bootID: hasOneBoot ? batch.rows.first?.bootID.map { .text($0) } : nil
        case .id: .text(batch.id)
        case .count: .int(Int64(batch.rows.count))
        case .firstSeq: batch.rows.first.map { .int($0.seq) }
        case .lastSeq: batch.rows.last.map { .int($0.seq) }
        case .sentMs: batch.sentMs.map { .int($0) }
        case .sentS: batch.sentMs.map { .int($0.flooredThousandth) }
        case .sentISO: batch.sentMs.map { .text(UTCTime(milliseconds: $0).iso8601) }
        case .records, .record, .newest: nil
        }
    }

    func value(_ name: EndpointReference) -> RenderedValue? {
        switch name {
        case .baseURL: .text(settings.baseURL)
        case .device: .text(settings.device)
        case .endpoint: .text(settings.name)
        case .agentVersion: nil
        }
    }
}
