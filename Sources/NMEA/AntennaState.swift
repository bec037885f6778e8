/// What a receiver reports of its antenna (TXT).
public enum AntennaState: String, Hashable, Sendable, CaseIterable {
    case ok
    /// Nothing draws current: unplugged, or a passive antenna at a receiver that expects an active one.
    case open
    case short
}

extension AntennaState {
    /// What receivers write: u-blox and Quectel `ANTSTATUS=OK`, others `ANTENNA OPEN`; nil for every other text.
    ///
    /// - Parameters:
    ///   - bytes: a TXT sentence, from `$` to the byte before `*`.
    ///   - fields: index of its first field.
    init?(text bytes: Span<UInt8>, fields: Int) {
        var cursor = FieldCursor(position: fields)
        cursor.skip(3, in: bytes)
        let start = cursor.position
        for prefix: StaticString in ["ANTSTATUS=", "ANTENNA "] where bytes.holds(prefix, at: start) {
            let word = start + prefix.utf8CodeUnitCount
            if bytes.holds("OK", at: word) {
                self = .ok
            } else if bytes.holds("OPEN", at: word) {
                self = .open
            } else if bytes.holds("SHORT", at: word) {
                self = .short
            } else {
                return nil
            }
            return
        }
        return nil
    }
}

extension Span<UInt8> {
    fileprivate func holds(_ text: StaticString, at index: Int) -> Bool {
        guard index + text.utf8CodeUnitCount <= count else { return false }
        for offset in 0..<text.utf8CodeUnitCount where self[index + offset] != text.utf8Start[offset] { return false }
        return true
    }
}
