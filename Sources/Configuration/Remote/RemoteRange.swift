import Remote
import WaypostCore

/// Between which values a document may set a key: what is beyond becomes the nearest end.
package struct RemoteRange: Hashable, Sendable {
    /// Dotted.
    package var key: String
    /// As the file has them.
    private var ends: [JSONValue]
    /// In the SI unit.
    private var numbers: ClosedRange<Double>
    /// Of the key, by name; nil = a bare number.
    private var scale: String?

    private static let scales: [UnitScale] = [.duration, .distance, .speed, .angle, .size]

    /// `[remote.range]`
    static func all(_ table: TableReader, allow: [String]) -> [RemoteRange] {
        table.takeAll().compactMap { entry in
            guard let range = RemoteRange(entry, table) else { return nil }
            if !allow.contains(where: { RemoteKey.covers($0, range.key) }) {
                table.report(entry.key, "found the range of a key that allow does not have")
            }
            table.show(entry.key.asTOML, "[\(range.ends.map(\.asTOML).joined(separator: ", "))]", entry.keyPosition)
            return range
        }
    }

    private init?(_ entry: TOMLEntry, _ table: TableReader) {
        guard case .array(let nodes) = entry.node.value else {
            table.report(entry.key, "found \(entry.node.description), expected \"table.key\" = [least, most]")
            return nil
        }
        guard let key = table.knownKeys(under: entry.key).first(where: { $0.path == entry.key && $0.aliasOf == nil })
        else {
            table.report(entry.key, "found a range of an unknown key, expected \"table.key\" = [least, most]")
            return nil
        }
        self.key = entry.key
        scale = Self.scales.first { key.accepted.hasPrefix($0.name) }?.name
        ends = nodes.compactMap(\.asJSON)
        let measured = ends.compactMap { [scale] in Self.measure($0, scale) }
        let isMeasured = scale != nil || key.accepted.contains("number")
        guard isMeasured, nodes.count == 2, measured.count == 2, measured[0] <= measured[1] else {
            table.report(entry.key, "found another value, expected [least, most], each \(key.accepted)")
            return nil
        }
        numbers = measured[0]...measured[1]
    }

    /// - Returns: the value itself or the nearer end; nil when it cannot be compared.
    func clamped(_ value: JSONValue) -> JSONValue? {
        guard let number = Self.measure(value, scale) else { return nil }
        return number < numbers.lowerBound ? ends[0] : number > numbers.upperBound ? ends[1] : value
    }

    private static func measure(_ value: JSONValue, _ scale: String?) -> Double? {
        if let number = value.number { return number }
        guard let text = value.string, let scale = scales.first(where: { $0.name == scale }),
            case .value(let number) = scale.read(text), number.isFinite
        else { return nil }
        return number
    }
}

extension TOMLNode {
    /// nil for tables and dates.
    fileprivate var asJSON: JSONValue? {
        switch value {
        case .string(let text): .string(text)
        case .integer(let number): .int(number)
        case .float(let number): .double(number)
        case .boolean(let flag): .bool(flag)
        case .datetime, .array, .table: nil
        }
    }
}

extension JSONValue {
    fileprivate var asTOML: String { string?.asTOML ?? text ?? "" }
}
