import WaypostCore

/// A column of the compact encoding.
struct CompactColumn: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// Rounded to `decimals`, then differences; changes of the difference where `isMandatory`.
        case number(decimals: Int)
        case flag
        case text
    }
    /// Whose values it holds.
    var name: RecordName
    /// Its name on the wire.
    var title: String
    var kind: Kind
    /// In every body, and known in every row. Predicted from the two before, most cells of a steady drive are 0.
    var isMandatory = false

    init(_ name: RecordName, _ kind: Kind, title: String? = nil, isMandatory: Bool = false) {
        self.name = name
        self.kind = kind
        self.title = title ?? name.rawValue
        self.isMandatory = isMandatory
    }

    /// In every body, in this order.
    static let standard = [
        CompactColumn(.seq, .number(decimals: 0), isMandatory: true),
        CompactColumn(.timeMs, .number(decimals: 0), title: "time", isMandatory: true),
        CompactColumn(.lat, .number(decimals: 6), isMandatory: true),
        CompactColumn(.lon, .number(decimals: 6), isMandatory: true),
        CompactColumn(.accuracy, .number(decimals: 1)),
        CompactColumn(.speedMPS, .number(decimals: 1), title: "speed"),
        CompactColumn(.bearing, .number(decimals: 0)),
        CompactColumn(.altitude, .number(decimals: 0)),
        CompactColumn(.moving, .flag),
        CompactColumn(.event, .text),
        CompactColumn(.trackable, .text),
        CompactColumn(.geofenceID, .text),
        CompactColumn(.geofenceName, .text),
        CompactColumn(.geofenceAction, .text),
        CompactColumn(.geofenceSource, .text),
    ]

    /// Where `columns` asks for them, in the order in which it does.
    static let further = [
        CompactColumn(.odometer, .number(decimals: 0)),
        CompactColumn(.geofenceServerID, .text),
        CompactColumn(.batteryPct, .number(decimals: 0)),
        CompactColumn(.altitudeHAE, .number(decimals: 0)),
        CompactColumn(.satellites, .number(decimals: 0)),
        CompactColumn(.charging, .flag),
        CompactColumn(.externalPower, .flag),
        CompactColumn(.simulated, .flag),
        CompactColumn(.reason, .text),
        CompactColumn(.quality, .text),
        CompactColumn(.fixMode, .text),
        CompactColumn(.bootID, .text),
    ]
}

/// Writes a batch as columns: numbers as differences, text as indices into a list of the words that occur.
/// docs/profiles.md defines the body.
struct CompactEncoder {
    let columns: [CompactColumn]

    func write(_ context: BatchContext, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.field("v", 2)
        writer.field("device", context.settings.device)
        writer.field("outbox", context.batch.outboxName)
        writer.field("sent_ms", context.batch.sentMs)
        writer.field("n", context.batch.rows.count)
        for column in columns {
            switch column.kind {
            case .number(let decimals): writeNumbers(column, decimals, context, &writer)
            case .flag: writeFlags(column, context, &writer)
            case .text: writeTexts(column, context, &writer)
            }
        }
        writer.endObject()
    }

    private func writeNumbers(
        _ column: CompactColumn, _ decimals: Int, _ context: BatchContext, _ writer: inout JSONWriter
    ) {
        let divisor = Scaled.power(max(0, (column.name.type == .float ? column.name.places : 0) - decimals))
        func cell(_ row: QueuedLocation) -> Int64? {
            guard let scaled = row.scaled(column.name) else { return nil }
            let rounded = divisor == 1 ? scaled : scaled.dividedHalfAway(by: divisor)
            return column.name == .bearing && rounded == 360 ? 0 : rounded
        }
        let values = context.batch.rows.map(cell)
        guard column.isMandatory || values.contains(where: { $0 != nil }) else { return }
        writer.key(column.title)
        var last: Int64?
        var predicted: Int64 = 0
        writeList(
            values.map { value in
                guard let value else { return nil }
                defer { last = value }
                guard let last else { return value }
                // A difference beyond 64 bits wraps, and so does the sum of a decoder in 64 bits.
                let difference = value &- last
                defer { if column.isMandatory { predicted = difference } }
                return difference &- predicted
            }, &writer)
    }

    private func writeList(_ values: [Int64?], _ writer: inout JSONWriter) {
        writer.beginArray()
        for value in values { if let value { writer.value(value) } else { writer.null() } }
        writer.endArray()
    }

    private func writeFlags(_ column: CompactColumn, _ context: BatchContext, _ writer: inout JSONWriter) {
        let values = context.batch.rows.map { row in row.flag(column.name).map { Int64($0 ? 1 : 0) } }
        guard let first = values.first else { return }
        let areEqual = values.allSatisfy { $0 == first }
        if areEqual, first == nil { return }
        writer.key(column.title)
        if areEqual, let first { writer.value(first) } else { writeList(values, &writer) }
    }

    private func writeTexts(_ column: CompactColumn, _ context: BatchContext, _ writer: inout JSONWriter) {
        let rows = context.batch.rows
        guard let first = rows.first else { return }
        let common = first.word(column.name)
        if rows.allSatisfy({ $0.word(column.name) == common }) {
            // Without this column a row is the device's own, so nil has to be said.
            let isAssumed = column.name == .trackable ? common == context.settings.device : common == nil
            guard !isAssumed else { return }
            writer.key(column.title)
            if let common { writer.value(common) } else { writer.null() }
            return
        }
        var indices: [String: Int] = [:]
        writer.key(column.title)
        writer.beginArray()
        writer.beginArray()
        for row in rows {
            guard let word = row.word(column.name), indices[word] == nil else { continue }
            indices[word] = indices.count
            writer.value(word)
        }
        writer.endArray()
        writeList(rows.map { row in row.word(column.name).flatMap { indices[$0] }.map(Int64.init) }, &writer)
        writer.endArray()
    }
}
