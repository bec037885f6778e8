import WaypostCore

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

    func value(of row: QueuedLocation, in context: BatchContext) -> RenderedValue? {
        guard var value = plainValue(of: row, in: context) else { return fallback }
        if value == .masked { return value }
        if !casts.isEmpty {
            let name: RecordName? = if case .record(let name) = source { name } else { nil }
            for cast in casts { value = cast.applied(to: value, of: name) }
        }
        return value
    }

    private func plainValue(of row: QueuedLocation, in context: BatchContext) -> RenderedValue? {
        switch source {
        case .record(let name): context.value(name, of: row)
        case .batch(let name): context.value(name)
        case .endpoint(let name): context.value(name)
        case .constant(let text): text.map { .text($0) }
        case .secret(let name):
            context.render.isMasked ? .masked : context.render.secrets.values[name].map { .text($0) }
        case .token: context.render.isMasked ? .masked : context.render.secrets.token.map { .text($0) }
        }
    }
}
