import WaypostCore
import WaypostTracking

/// A text that lists geofences, read whole or not at all.
package enum FenceList {
    /// How a server writes its list.
    package enum Form: Hashable, Sendable {
        case geoJSON
        case mapping(FenceMapping)
    }

    /// The fences of a server's reply, with ids `SOURCE/ID`.
    ///
    /// - Parameter source: name of the list in the configuration.
    package static func read(_ reply: [UInt8], _ form: Form, source: String) throws(ListProblems) -> [Geofence] {
        var fences =
            switch form {
            case .geoJSON: try GeoJSONFences.read(reply)
            case .mapping(let mapping): try mapping.read(reply)
            }
        for index in fences.indices { fences[index].belong(to: source) }
        return fences
    }

    /// A text, or a whole number.
    static func id(_ value: JSONValue?) -> String? { value?.string ?? value?.integer.map(String.init) }

    /// A number in the SI unit, or a text with a unit; nil where there is none.
    static func quantity(
        _ value: JSONValue?, _ name: String, _ scale: UnitScale
    ) throws(ListText.Mistake) -> Double? {
        guard let value, value != .null else { return nil }
        if let bare = value.number { return bare }
        if let text = value.string, case .value(let value) = scale.read(text) { return value }
        throw ListText.Mistake(found: "another \(name)", expected: scale.expectation)
    }

    static func dwell(_ value: JSONValue?) throws(ListText.Mistake) -> Duration? {
        guard let seconds = try quantity(value, "dwell", .duration) else { return nil }
        guard (1...30 * 86_400).contains(seconds) else {
            throw ListText.Mistake(found: "a dwell of \(seconds.plain) s", expected: "a duration from 1s to 30d")
        }
        return .milliseconds(Int64((seconds * 1000).rounded()))
    }
}

extension Geofence: ListedItem {
    package static var noun: String { "geofence" }
    package static var inForceMax: Int { GeofenceMonitor.fencesMax }
    package var cornerCount: Int { if case .polygon(let vertices) = shape { vertices.count } else { 0 } }
    package static var cornersMax: Int { 200_000 }
}

extension ListText.Mistake {
    init(_ flaw: Geofence.Flaw, at member: String? = nil) {
        self.init(member, found: flaw.found, expected: flaw.expected)
    }
}
