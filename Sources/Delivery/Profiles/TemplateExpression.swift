import Positioning

/// A reference whose name was looked up and whose casts fit.
struct TemplateExpression: Hashable, Sendable {
    enum Source: Hashable, Sendable {
        case record(RecordName)
        case batch(BatchName)
        case endpoint(EndpointReference)
        /// Of the endpoint's `vars`, and the version; nil = missing and marked with `?`.
        case constant(String?)
        case secret(String)
        case token
    }

    var source: Source
    var casts: [TemplateCast] = []
    var fallback: RenderedValue?

    /// A template must reckon with nil here.
    var isNullable: Bool {
        if fallback != nil { return false }
        return switch source {
        case .record(let name): name.isNullable
        case .batch(let name): name.isNullable
        case .constant(let value): value == nil
        case .endpoint, .secret, .token: false
        }
    }

    func value(of row: QueuedLocation, in scene: RenderScene) -> RenderedValue? {
        guard var value = plainValue(of: row, in: scene) else { return fallback }
        if value == .masked { return value }
        if !casts.isEmpty {
            let name: RecordName? = if case .record(let name) = source { name } else { nil }
            for cast in casts { value = cast.applied(to: value, of: name) }
        }
        return value
    }

    private func plainValue(of row: QueuedLocation, in scene: RenderScene) -> RenderedValue? {
        switch source {
        case .record(let name): scene.value(name, of: row)
        case .batch(let name): scene.value(name)
        case .endpoint(let name): scene.value(name)
        case .constant(let text): text.map { .text($0) }
        case .secret(let name): scene.context.isMasked ? .masked : scene.context.secrets.values[name].map { .text($0) }
        case .token: scene.context.isMasked ? .masked : scene.context.secrets.token.map { .text($0) }
        }
    }
}

/// What one rendering knows: the endpoint, the batch and what its rows have in common.
struct RenderScene {
    let settings: EndpointSettings
    let context: RenderContext
    let batch: Batch
    /// All rows agree.
    let hasOneBoot: Bool
    let hasOneTrackable: Bool

    init(_ settings: EndpointSettings, _ context: RenderContext, _ batch: Batch) {
        self.settings = settings
        self.context = context
        self.batch = batch
        let first = batch.rows.first
        hasOneBoot = batch.rows.allSatisfy { $0.bootID == first?.bootID }
        hasOneTrackable = batch.rows.allSatisfy { $0.location.trackable == first?.location.trackable }
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
        case .id: context.identify(batch.outbox, row.seq)
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
