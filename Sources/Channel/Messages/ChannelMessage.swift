import WaypostCore

/// One message on the channel of a trackable: a location, and those before it that no message had as its own.
package struct ChannelMessage: Hashable, Sendable {
    package enum Name: String, Hashable, Sendable, CaseIterable {
        /// What waypost keeps: filtered, and held in one place while parked. There is no map matching.
        case enhanced
        /// What the receiver said.
        case raw
    }

    /// Viewers see a message with an id that the service has had in the last two minutes once.
    package let id: String
    package let name: Name
    /// JSON, which the service passes on as a text.
    package let data: String
    /// Of the locations before the one of the message.
    package let skippedCount: Int

    /// Features before the one of a message: the reference has no more.
    package static let skippedMax = 60

    /// Drops the oldest skipped ones until the message fits.
    ///
    /// - Parameters:
    ///   - skipped: oldest first; the newest `skippedMax` are taken.
    ///   - bytesMax: of the data as a text in a frame.
    /// - Returns: nil when even without skipped ones it is too large, or viewers would not read it.
    package init?(id: String, name: Name, feature: ChannelFeature, skipped: [ChannelFeature], bytesMax: Int) {
        var kept = skipped.suffix(Self.skippedMax)
        var data = Self.data(name, feature, kept)
        while Self.bytesInFrame(data) > bytesMax {
            guard !kept.isEmpty else { return nil }
            // In proportion to what is too much, so that few turns are needed.
            let fitting = kept.count * bytesMax / Self.bytesInFrame(data)
            kept = kept.suffix(min(fitting, kept.count - 1))
            data = Self.data(name, feature, kept)
        }
        guard JSONReader.read(data).map({ ChannelSchema.isMessage($0, name) }) == true else { return nil }
        self.id = id
        self.name = name
        self.data = String(decoding: data, as: UTF8.self)
        skippedCount = kept.count
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.field("id", id)
        writer.field("name", name.rawValue)
        writer.field("data", data)
        writer.endObject()
    }

    private static func data(_ name: Name, _ feature: ChannelFeature, _ skipped: ArraySlice<ChannelFeature>) -> [UInt8]
    {
        var writer = JSONWriter(reserving: 200 * (skipped.count + 2))
        writer.beginObject()
        writer.key("location")
        feature.write(to: &writer)
        writer.key("skippedLocations")
        writer.beginArray()
        for feature in skipped { feature.write(to: &writer) }
        writer.endArray()
        if name == .enhanced {
            writer.key("intermediateLocations")
            writer.beginArray()
            writer.endArray()
            writer.field("type", word: "ACTUAL")
        }
        writer.endObject()
        return writer.bytes
    }

    /// A text in a text: its quotes are escaped.
    private static func bytesInFrame(_ data: [UInt8]) -> Int { data.count + data.count { $0 == 0x22 || $0 == 0x5C } }
}
