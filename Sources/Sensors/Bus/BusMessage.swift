import CBus
import Glibc

/// An answer or a signal, read from front to back; only valid within its handler.
///
/// sd-bus has checked the message as a whole. What is of another type than expected is skipped.
struct BusMessage {
    private let message: OpaquePointer

    init(_ message: OpaquePointer) { self.message = message }

    /// `org.bluez.Error.NotReady`; nil when it is no error.
    var error: String? {
        guard waypost_bus_is_error(message) else { return nil }
        return waypost_bus_error_name(message).map { String(cString: $0) } ?? "unknown"
    }

    /// - Parameter connection: the unique name of a connection, or the name of the bus itself, with the NUL at its end.
    func isFrom(_ connection: ContiguousArray<CChar>) -> Bool {
        guard let sender = waypost_bus_sender(message) else { return false }
        return connection.withUnsafeBufferPointer { strcmp(sender, $0.baseAddress!) == 0 }
    }

    /// Of the object that sent the signal.
    var path: String { waypost_bus_path(message).map { String(cString: $0) } ?? "" }

    /// A text (`s`), a path (`o`) or a signature (`g`); valid until the handler ends.
    func text(_ type: Character = "s") -> UnsafePointer<CChar>? {
        var text: UnsafePointer<CChar>?
        return waypost_bus_read(message, code(type), &text) > 0 ? text : nil
    }

    func string(_ type: Character = "s") -> String? { text(type).map { String(cString: $0) } }

    func flag() -> Bool? {
        var value: Int32 = 0
        return waypost_bus_read(message, code("b"), &value) > 0 ? value != 0 : nil
    }

    func int16() -> Int16? {
        var value: Int16 = 0
        return waypost_bus_read(message, code("n"), &value) > 0 ? value : nil
    }

    func uint16() -> UInt16? {
        var value: UInt16 = 0
        return waypost_bus_read(message, code("q"), &value) > 0 ? value : nil
    }

    func bytes() -> [UInt8]? {
        var start: UnsafeRawPointer?
        var count = 0
        guard waypost_bus_read_bytes(message, &start, &count) > 0 else { return nil }
        return start.map { Array(UnsafeRawBufferPointer(start: $0, count: count)) } ?? []
    }

    /// Each entry of a dictionary, `entry` being its types, as in `{sv}` without the braces. The handler reads both, all of it.
    func dictionary(_ entry: String, _ handle: () -> Void) {
        guard waypost_bus_enter(message, code("a"), "{\(entry)}") > 0 else { return }
        while waypost_bus_enter(message, code("e"), entry) > 0 {
            handle()
            guard waypost_bus_exit(message) >= 0 else { return }
        }
        waypost_bus_exit(message)
    }

    /// What is in a variant, if it has this type; it is skipped otherwise.
    func variant<Value>(_ type: String, _ read: () -> Value?) -> Value? {
        var container: CChar = 0
        var contents: UnsafePointer<CChar>?
        guard waypost_bus_peek(message, &container, &contents) > 0, container == code("v"), let contents,
            strcmp(contents, type) == 0, waypost_bus_enter(message, container, contents) > 0
        else {
            skip("v")
            return nil
        }
        defer { waypost_bus_exit(message) }
        return read()
    }

    func skip(_ types: String) { waypost_bus_skip(message, types) }

    private func code(_ type: Character) -> CChar { CChar(bitPattern: type.asciiValue ?? 0) }
}

extension UnsafePointer<CChar> {
    func equals(_ other: StaticString) -> Bool {
        other.withUTF8Buffer {
            strncmp(self, UnsafeRawPointer($0.baseAddress!).assumingMemoryBound(to: CChar.self), $0.count + 1) == 0
        }
    }
}
