import WaypostCore

/// A tree of JSON with references, as a flat list of steps: keys and literals were rendered when it was made.
struct JSONTemplate: Sendable {
    /// Place of a rendered piece in `pieces`.
    struct Piece: Sendable {
        var start: Int32
        var count: Int32
    }

    /// The first member of each is the key.
    enum Step: Sendable {
        case begin(Piece, isObject: Bool)
        case end
        /// A complete value.
        case literal(Piece, Piece)
        case number(Piece, RecordName, places: Int)
        case flag(Piece, RecordName)
        case word(Piece, RecordName)
        /// A text that is JSON itself.
        case json(Piece, RecordName)
        case value(Piece, expression: Int)
        case text(Piece, Int)
        case object(Piece, Object)
    }

    enum Object: Sendable {
        case location, records, record, newest
    }

    fileprivate(set) var steps: [Step] = []
    fileprivate(set) var pieces: [UInt8] = []
    fileprivate(set) var expressions: [TemplateExpression] = []
    fileprivate(set) var texts: [TextTemplate] = []
    /// The canonical record, where the template names it.
    private let location: LocationTemplate?

    init(location: LocationTemplate? = .shared) {
        self.location = location
    }

    /// Writes the value; nothing at all when everything in it is nil.
    ///
    /// - Parameters:
    ///   - row: what record names mean.
    ///   - record: how each row of the batch is written for `$records`.
    func write(
        _ row: QueuedLocation, in context: BatchContext, record: JSONTemplate? = nil, to writer: inout JSONWriter
    ) {
        pieces.withUnsafeBufferPointer { pieces in
            func key(_ piece: Piece) -> UnsafeBufferPointer<UInt8> {
                UnsafeBufferPointer(rebasing: pieces[Int(piece.start)..<Int(piece.start + piece.count)])
            }
            for step in steps {
                switch step {
                case .number(let piece, let name, let places):
                    guard let scaled = row.scaled(name) else { continue }
                    writer.key(rendered: key(piece))
                    writer.value(scaled: scaled, places: places)
                case .flag(let piece, let name):
                    guard let flag = row.flag(name) else { continue }
                    writer.key(rendered: key(piece))
                    writer.value(flag)
                case .word(let piece, let name):
                    guard let word = context.word(name, of: row) else { continue }
                    writer.key(rendered: key(piece))
                    writer.value(word)
                case .json(let piece, let name):
                    guard let json = row.word(name) else { continue }
                    writer.key(rendered: key(piece))
                    Array(json.utf8).withUnsafeBufferPointer { writer.value(rendered: $0) }
                case .literal(let piece, let value):
                    writer.key(rendered: key(piece))
                    writer.value(rendered: key(value))
                case .begin(let piece, let isObject): writer.beginOptional(key: key(piece), isObject: isObject)
                case .end: writer.endOptional()
                case .value(let piece, let index):
                    guard let value = expressions[index].value(of: row, in: context) else { continue }
                    writer.key(rendered: key(piece))
                    writer.value(value)
                case .text(let piece, let index):
                    let before = writer.mark
                    writer.key(rendered: key(piece))
                    if !texts[index].write(row, in: context, to: &writer) { writer.goBack(to: before) }
                case .object(let piece, let object):
                    let before = writer.mark
                    writer.key(rendered: key(piece))
                    if !write(object, row, context, record, &writer) { writer.goBack(to: before) }
                }
            }
        }
    }

    private func write(
        _ object: Object, _ row: QueuedLocation, _ context: BatchContext, _ record: JSONTemplate?,
        _ writer: inout JSONWriter
    ) -> Bool {
        switch object {
        case .location:
            guard let location else { return false }
            location.template.write(row, in: context, to: &writer)
        case .record:
            guard let record, let first = context.batch.rows.first else { return false }
            record.writeWhole(first, in: context, to: &writer)
        case .newest:
            guard let record, let newest = context.batch.newest else { return false }
            record.writeWhole(newest, in: context, to: &writer)
        case .records:
            guard let record else { return false }
            writer.beginArray()
            for row in context.batch.rows { record.writeWhole(row, in: context, to: &writer) }
            writer.endArray()
        }
        return true
    }

    /// As `write`, with `{}` for a record of which nothing is known: each row has its place.
    func writeWhole(_ row: QueuedLocation, in context: BatchContext, to writer: inout JSONWriter) {
        let before = writer.count
        write(row, in: context, to: &writer)
        guard writer.count == before else { return }
        writer.beginObject()
        writer.endObject()
    }
}

extension JSONTemplate {
    mutating func append(_ step: Step) { steps.append(step) }

    mutating func piece(_ bytes: [UInt8]) -> Piece {
        let piece = Piece(start: Int32(clamping: pieces.count), count: Int32(clamping: bytes.count))
        pieces += bytes
        return piece
    }

    mutating func index(of expression: TemplateExpression) -> Int {
        expressions.append(expression)
        return expressions.count - 1
    }

    mutating func index(of text: TextTemplate) -> Int {
        texts.append(text)
        return texts.count - 1
    }
}

extension JSONWriter {
    mutating func value(_ value: RenderedValue) {
        switch value {
        case .int(let number): self.value(number)
        case .decimal(let scaled, let places): self.value(scaled: scaled, places: places)
        case .bool(let flag): self.value(flag)
        case .text(let text): self.value(text)
        case .masked: self.value("***")
        case .null: null()
        }
    }
}
