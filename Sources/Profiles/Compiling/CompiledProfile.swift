import Protocols
import WaypostCore

/// A profile made ready for one endpoint. Immutable, so that settings which contain it are cheap to copy.
final class CompiledProfile: Sendable {
    enum Encoding: String, CaseIterable, Sendable {
        case json, ndjson, lines, csv, query, form, compact

        /// One record is the whole request.
        var isSingle: Bool { self == .query || self == .form }

        var contentType: String? {
            switch self {
            case .json: "application/json"
            case .ndjson: "application/x-ndjson"
            case .lines: "text/plain; charset=utf-8"
            case .csv: "text/csv; charset=utf-8"
            case .query: nil
            case .form: "application/x-www-form-urlencoded"
            case .compact: "application/vnd.waypost.compact+json"
            }
        }
    }

    /// How rows of one kind are written: those without a template of their own, or those of one event.
    struct Variant: Sendable {
        /// Of a broker the topic.
        var url = TextTemplate(parts: [])
        var record: JSONTemplate?
        var body: JSONTemplate?
        var line: TextTemplate?
        /// Cells and form fields.
        var fields: [Field] = []
    }

    /// A cell, a field of a form, or a header.
    struct Field: Sendable {
        var name: String
        var value: TextTemplate
    }

    /// A row that breaks it goes to quarantine.
    struct Limit: Sendable {
        /// `device`, or a value of a row.
        var name: RecordName
        var rule: LimitRule
    }

    /// A request without rows.
    struct Plain: Sendable {
        var method = "POST"
        var url = TextTemplate(parts: [])
        var headers: [Field] = []
        var body: JSONTemplate?
    }

    /// Messages to a broker instead of requests; their topics are in the variants.
    struct Broker: Sendable {
        /// Maximum rows of one message.
        var rowsPerMessage = 1
        var qos = MQTTQoS.atLeastOnce
        /// Of rows without a template of their own: whoever subscribes later sees the newest.
        var isRetained = false
        var clientID: TextTemplate?
        var user: TextTemplate?
        var will: Announcement?
        var births: [Announcement] = []
        /// Where it is said, retained, whether something is wrong; nil = nowhere.
        var status: TextTemplate?
    }

    /// A message without rows.
    struct Announcement: Sendable {
        enum Payload: Sendable {
            case text(TextTemplate)
            case json(JSONTemplate)
        }
        var topic: TextTemplate
        var payload: Payload
        var isRetained = false
    }

    enum Choice: Hashable, Sendable {
        case variant(Int)
        case skip
    }

    struct Parts: Sendable {
        var encoding = Encoding.json
        var isASCII = false
        var method = "POST"
        var contentType: String?
        var headers: [Field] = []
        /// The first is for rows without a template of their own.
        var variants: [Variant] = []
        var choices: [LocationEvent: Choice] = [:]
        /// Other crossings are plain fixes to this server; nil = all are sent.
        var geofenceActions: Set<GeofenceCrossing.Action>?
        var require: [RecordName] = []
        /// Rows with these events are sent even if they are without position and time.
        var withoutPosition: Set<LocationEvent> = []
        var limits: [Limit] = []
        var columns: [CompactColumn] = []
        var bind: Plain?
        /// A request that stores nothing and shows that the server is there.
        var probe: Plain?
        /// nil = HTTP.
        var broker: Broker?
        /// Text of rows that URL and headers name: nil there is unfit, a line break in a header is refused.
        var shared: Set<RecordName> = []
        /// Of the endpoint.
        var vars: [String: String] = [:]
        /// The server distinguishes trackables.
        var namesTrackable = false
    }

    let parts: Parts
    /// Digest of the whole profile and the constants of the endpoint.
    let identity: String
    let boundOfRow: SizeBound
    let boundOfFrame: SizeBound
    /// Rows without an event, which are most, have a choice of their own.
    private let choosesPlain: Bool

    init(_ parts: Parts, identity: String) {
        self.parts = parts
        self.identity = identity
        boundOfRow = parts.boundOfRow
        boundOfFrame = parts.boundOfFrame
        choosesPlain = parts.choices[.none] != nil
    }

    /// A profile without templates: an array of canonical records.
    static let plain: CompiledProfile = {
        let compiler = TemplateCompiler()
        var variant = Variant()
        variant.url = TextTemplate(parts: [.reference(TemplateExpression(source: .endpoint(.baseURL)))])
        variant.record = compiler.json("$location", .record, "record")
        variant.body = compiler.json("$records", .body, "body")
        var parts = Parts()
        parts.contentType = Encoding.json.contentType
        parts.variants = [variant]
        parts.withoutPosition = Set(LocationEvent.allCases)
        return CompiledProfile(parts, identity: "plain")
    }()
}

extension CompiledProfile {
    /// The row as this server sees it.
    func presented(_ row: QueuedLocation) -> QueuedLocation {
        guard let actions = parts.geofenceActions, let crossing = row.location.geofence,
            row.location.event != .beacon, !actions.contains(crossing.action)
        else { return row }
        var plain = row
        plain.location.event = row.location.event == .geofence ? .none : row.location.event
        plain.location.geofence = nil
        return plain
    }

    func choice(for event: LocationEvent) -> Choice {
        if event == .none, !choosesPlain { return .variant(0) }
        return parts.choices[event]
            ?? (event == .beacon && !parts.withoutPosition.contains(.beacon) ? .skip : .variant(0))
    }

    func variant(for row: QueuedLocation) -> Variant? {
        guard case .variant(let index) = choice(for: row.location.event) else { return parts.variants.first }
        return parts.variants.indices.contains(index) ? parts.variants[index] : parts.variants.first
    }
}
