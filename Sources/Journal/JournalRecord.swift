/// One entry in the native protocol of the journal (systemd.io, *Native Journal Protocol*).
struct JournalRecord {
    /// A datagram of 212 992 bytes, the default send buffer, is refused: message and fields together stay below it.
    static let messageBytesMax = 48 * 1024
    static let valueBytesMax = 2 * 1024
    static let fieldsMax = 32

    private(set) var bytes: [UInt8] = []

    /// - Parameter name: a field name that the journal takes: A–Z, 0–9 and `_`, at most 64 bytes.
    mutating func add(_ name: String, _ value: String) {
        bytes += name.utf8
        if value.utf8.contains(UInt8(ascii: "\n")) {
            bytes.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.utf8.count).littleEndian) { bytes += $0 }
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value.utf8
        bytes.append(UInt8(ascii: "\n"))
    }

    /// The field name for a metadata key. journald silently drops other names, so they are corrected here.
    static func fieldName(_ key: String) -> String {
        var name = Array("WAYPOST_".utf8)
        for byte in key.utf8.prefix(64 - name.count) {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): name.append(byte - 32)
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): name.append(byte)
            default: name.append(UInt8(ascii: "_"))
            }
        }
        return String(decoding: name, as: UTF8.self)
    }
}
