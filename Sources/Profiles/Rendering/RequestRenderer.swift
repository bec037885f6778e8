import Protocols
import WaypostCore

/// Makes the requests of one endpoint out of its profile and what it is sent with.
package struct RequestRenderer {
    let settings: EndpointSettings
    let render: RenderContext

    /// Smaller bodies do not gain from compression.
    package static let gzipFrom = 1024

    package init(_ settings: EndpointSettings, in context: RenderContext = RenderContext()) {
        self.settings = settings
        render = context
    }

    /// The request for a batch: the same batch gives the same body at every attempt.
    package func request(for batch: Batch) -> UplinkRequest {
        let parts = settings.profile.compiled.parts
        let context = context(of: batch)
        if let request = brokerRequest(context) { return request }
        let first = context.batch.rows.first ?? .placeholder
        let variant = settings.profile.compiled.variant(for: first)
        var url = context.url(variant?.url, first)
        var body: [UInt8] = []
        if parts.encoding == .query {
            url.append(UInt8(ascii: url.contains(UInt8(ascii: "?")) ? "&" : "?"))
            context.writeFields(variant?.fields ?? [], of: first, to: &url)
        } else {
            body = context.body(variant, parts)
        }
        return UplinkRequest(
            method: parts.method, url: String(decoding: url, as: UTF8.self),
            headers: context.headers(parts.headers, first, contentType: parts.contentType), body: body,
            gzip: render.gzip && settings.gzip && body.count > Self.gzipFrom, timeout: settings.timeout,
            replyLimit: settings.profile.response.replyLimit(rows: batch.rows.count))
    }

    /// The request that binds the asset to this device (`bind`); nil when the profile has none.
    package func bindRequest() -> UplinkRequest? {
        settings.profile.compiled.parts.bind.map(request)
    }

    /// A request that stores nothing: that of the profile (`probe`), of a broker a connection, else a connection alone.
    package func probeRequest() -> UplinkRequest {
        if let request = connectRequest() ?? settings.profile.compiled.parts.probe.map(request) { return request }
        var request = UplinkRequest(method: "GET", url: settings.baseURL, body: [], timeout: settings.timeout)
        request.connectsAlone = true
        return request
    }

    private func request(_ plain: CompiledProfile.Plain) -> UplinkRequest {
        let parts = settings.profile.compiled.parts
        let context = BatchContext(settings, render, Batch(endpoint: settings.name, id: "", rows: [], sentMs: nil))
        var writer = JSONWriter(isASCII: parts.isASCII)
        plain.body?.write(.placeholder, in: context, to: &writer)
        let contentType = writer.count == 0 ? nil : CompiledProfile.Encoding.json.contentType
        return UplinkRequest(
            method: plain.method, url: String(decoding: context.url(plain.url, .placeholder), as: UTF8.self),
            headers: context.headers(plain.headers, .placeholder, contentType: contentType), body: writer.bytes,
            timeout: settings.timeout)
    }

    /// The value of a reference (`seq`, `$accuracy:int`) for each row, as text on the wire; nil where it is nil or unknown.
    package func texts(of reference: String, for batch: Batch) -> [String?] {
        let names = ReferenceResolver(
            ProfileConstants(
                endpoint: settings.name, baseURL: settings.baseURL, device: settings.device,
                vars: settings.profile.compiled.parts.vars))
        let bare = reference.hasPrefix("$") ? reference : "$" + reference
        guard
            case .success(.reference(let syntax)) = TemplateParser.parse(bare, allowsSegments: false),
            let expression = try? names.expression(syntax, TemplateSite(.record, ""))
        else { return batch.rows.map { _ in nil } }
        let context = context(of: batch)
        return context.batch.rows.map { expression.value(of: $0, in: context)?.plain }
    }

    /// The batch with its rows as this server sees them.
    private func context(of batch: Batch) -> BatchContext {
        var presented = batch
        if settings.profile.compiled.parts.geofenceActions != nil {
            presented.rows = batch.rows.map(settings.profile.compiled.presented)
            presented.newest = batch.newest.map(settings.profile.compiled.presented)
        }
        return BatchContext(settings, render, presented)
    }
}

extension BatchContext {
    /// The base URL where the template gives none.
    fileprivate func url(_ template: TextTemplate?, _ row: QueuedLocation) -> [UInt8] {
        var url: [UInt8] = []
        return template?.write(row, in: self, escaping: .percent, to: &url) == true ? url : Array(settings.baseURL.utf8)
    }

    /// Without those that are nil or empty.
    fileprivate func headers(
        _ templates: [CompiledProfile.Field], _ row: QueuedLocation, contentType: String?
    ) -> [UplinkRequest.Header] {
        var headers: [UplinkRequest.Header] = templates.compactMap { header in
            var value: [UInt8] = []
            guard header.value.write(row, in: self, escaping: .oneLine, to: &value), !value.isEmpty else { return nil }
            return .init(header.name, String(decoding: value, as: UTF8.self))
        }
        if let contentType, !headers.contains(where: { $0.name.lowercased() == "content-type" }) {
            headers.insert(.init("Content-Type", contentType), at: 0)
        }
        return headers
    }

    func body(_ variant: CompiledProfile.Variant?, _ parts: CompiledProfile.Parts) -> [UInt8] {
        switch parts.encoding {
        case .json:
            var writer = JSONWriter(reserving: 256 + batch.rows.count * 320, isASCII: parts.isASCII)
            variant?.body?.write(batch.rows.first ?? .placeholder, in: self, record: variant?.record, to: &writer)
            return writer.finished()
        case .ndjson:
            var writer = JSONWriter(reserving: 64 + batch.rows.count * 320, isASCII: parts.isASCII)
            for row in batch.rows {
                variant?.record?.writeWhole(row, in: self, to: &writer)
                writer.newline()
            }
            return writer.finished()
        case .compact:
            var writer = JSONWriter(reserving: 256 + batch.rows.count * 48, isASCII: parts.isASCII)
            CompactEncoder(columns: parts.columns).write(self, to: &writer)
            return writer.finished()
        case .lines: return lines(variant?.line)
        case .csv: return table(variant?.fields ?? [])
        case .form:
            var bytes: [UInt8] = []
            writeFields(variant?.fields ?? [], of: batch.rows.first ?? .placeholder, to: &bytes)
            return bytes
        case .query: return []
        }
    }

    private func lines(_ line: TextTemplate?) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(batch.rows.count * 160)
        for row in batch.rows where line?.write(row, in: self, escaping: .oneLine, to: &bytes) == true {
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    /// `a=1&b=2`; nil fields are left out.
    fileprivate func writeFields(_ fields: [CompiledProfile.Field], of row: QueuedLocation, to bytes: inout [UInt8]) {
        var isFirst = true
        for field in fields {
            let start = bytes.count
            if !isFirst { bytes.append(UInt8(ascii: "&")) }
            TextTemplate.append(field.name, .percent, &bytes)
            bytes.append(UInt8(ascii: "="))
            if field.value.write(row, in: self, escaping: .percentAll, to: &bytes) {
                isFirst = false
            } else {
                bytes.removeLast(bytes.count - start)
            }
        }
    }

    /// RFC 4180: a head, CRLF, quotes where a cell needs them; nil is empty.
    private func table(_ fields: [CompiledProfile.Field]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity((batch.rows.count + 1) * 160)
        for (index, field) in fields.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            bytes.append(contentsOf: field.name.utf8)
            bytes.quoteCell(from: bytes.count - field.name.utf8.count)
        }
        bytes += [0x0D, 0x0A]
        for row in batch.rows {
            for (index, field) in fields.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                let start = bytes.count
                if field.value.write(row, in: self, escaping: .none, to: &bytes) { bytes.quoteCell(from: start) }
            }
            bytes += [0x0D, 0x0A]
        }
        return bytes
    }
}

extension [UInt8] {
    fileprivate mutating func quoteCell(from start: Int) {
        let quote = UInt8(ascii: "\"")
        guard self[start...].contains(where: { $0 == quote || $0 == UInt8(ascii: ",") || $0 == 0x0D || $0 == 0x0A })
        else { return }
        let cell = self[start...].flatMap { $0 == quote ? [quote, quote] : [$0] }
        removeLast(count - start)
        self += [quote] + cell + [quote]
    }
}

extension QueuedLocation {
    /// Where a template names no row.
    static let placeholder = QueuedLocation(
        seq: 0, bootID: nil, receivedMs: nil,
        location: Location(
            trackable: nil, time: UTCTime(milliseconds: 0), at: .zero,
            coordinate: Coordinate(latitudeE7: 0, longitudeE7: 0), moving: false))
}
