import WaypostCore

/// What viewers learn of a trackable before its first location.
package struct PublisherPresence: Hashable, Sendable {
    /// What is published; nil = viewers are not told.
    package var resolution: Resolution?
    /// There are messages `raw` as well.
    package var hasRawLocations: Bool

    package init(resolution: Resolution?, hasRawLocations: Bool = false) {
        self.resolution = resolution
        self.hasRawLocations = hasRawLocations
    }

    /// JSON. The schema wants `resolution` to be there, if only as null.
    package var data: String {
        var writer = JSONWriter(reserving: 150)
        writer.beginObject()
        writer.field("type", word: "PUBLISHER")
        writer.key("resolution")
        if let resolution { resolution.write(to: &writer) } else { writer.null() }
        if hasRawLocations { writer.field("rawLocations", true) }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
