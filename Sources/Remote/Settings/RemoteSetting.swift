import WaypostCore

/// One key of a document and its value, both as in the file.
package struct RemoteSetting: Hashable, Sendable {
    static let valueExpected = "not a text without \"$\", a number, true, false, or an array of these"
    private static let textMax = 1024
    private static let itemsMax = 64

    /// Dotted: `sampling.rule`.
    package var key: String
    package var value: JSONValue

    package init(_ key: String, _ value: JSONValue) {
        self.key = key
        self.value = value
    }

    init?(_ member: JSONValue.Member) {
        guard RemoteKey.isWellFormed(member.name), Self.isPlain(member.value) else { return nil }
        (key, value) = (member.name, member.value)
    }

    private static func isPlain(_ value: JSONValue) -> Bool {
        if let items = value.items { return items.count <= itemsMax && items.allSatisfy(isScalar) }
        return isScalar(value)
    }

    private static func isScalar(_ value: JSONValue) -> Bool {
        switch value {
        // What stands for a variable of the host is for the file alone: the value is reported to the server.
        case .string(let text):
            text.utf8.count <= textMax && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "$") }
        case .bool, .int: true
        case .double(let number): number.isFinite
        case .null, .decimal, .array, .object: false
        }
    }
}
