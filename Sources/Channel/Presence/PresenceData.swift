import WaypostCore

/// What a member of the presence says of itself.
package enum PresenceData: Hashable, Sendable {
    case publisher
    /// - Parameters:
    ///   - request: nil = it asks for nothing.
    ///   - isMalformed: it asks for something that is no resolution.
    case subscriber(request: Resolution?, isMalformed: Bool)

    /// Longest data of a member that is read.
    private static let bytesMax = 4096

    /// Takes the three forms in which libraries send the same object.
    ///
    /// - Parameters:
    ///   - data: a text with JSON, or the object itself.
    ///   - encoding: of the text; nil = none is told.
    /// - Returns: nil for anything else, which is ignored.
    package init?(_ data: JSONValue?, encoding: String?) {
        guard encoding == nil || encoding == "json", let data else { return nil }
        let value: JSONValue
        switch data {
        case .object: value = data
        case .string(let text):
            guard let read = JSONReader.read(Array(text.utf8), bytesMax: Self.bytesMax) else { return nil }
            value = read
        default: return nil
        }
        switch value["type"]?.string {
        case "PUBLISHER": self = .publisher
        case "SUBSCRIBER":
            let asked = value["resolution"] ?? .null
            let request = Resolution(onChannel: asked)
            self = .subscriber(request: request, isMalformed: asked != .null && request == nil)
        default: return nil
        }
    }
}
