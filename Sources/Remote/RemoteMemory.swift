import WaypostCore

/// What is remembered over a restart: settings from afar and their trial, and commands.
package struct RemoteMemory: Hashable, Sendable {
    /// Format of the stored bytes; another one is not read.
    private static let format = 2
    /// Two documents as they are at most, and what is refused.
    package static let bytesMax = 128 << 10

    package var settings = SettingsTrial()
    package var commands = RemoteCommands()

    package init() {}

    /// - Returns: nil when the bytes are damaged or of another version.
    package init?(_ bytes: [UInt8], at now: EventTime) {
        let body = bytes.dropLast(8)
        guard bytes.count <= Self.bytesMax, bytes == Self.sealed(Array(body)),
            let stored = StateCoder.value(Array(body), as: Stored.blank), stored.format == Self.format
        else { return nil }
        settings = stored.settings.trial(at: now)
        commands = stored.commands.commands(at: now)
    }

    package func bytes(at now: EventTime) -> [UInt8] {
        var stored = Stored.blank
        stored.settings = SettingsTrial.Stored(settings, at: now)
        stored.commands = RemoteCommands.Stored(commands, at: now)
        return Self.sealed(StateCoder.bytes(of: stored))
    }

    /// The highest version that was accepted, for a second file, which outlives damage of the first.
    package var seenBytes: [UInt8] { Self.sealed(Array("\(settings.seen)".utf8)) }

    /// - Returns: nil when the bytes are damaged.
    package static func seen(_ bytes: [UInt8]) -> Int64? {
        let body = Array(bytes.dropLast(8))
        guard bytes == sealed(body), let seen = Int64(String(decoding: body, as: UTF8.self)), seen >= 0 else {
            return nil
        }
        return seen
    }

    /// With a checksum behind it: a card may give back other bytes than it took.
    private static func sealed(_ body: [UInt8]) -> [UInt8] {
        var hash = FNV1a()
        for byte in body { hash.add(byte) }
        return body + (0..<8).map { UInt8(truncatingIfNeeded: hash.value >> ($0 * 8)) }
    }

    private struct Stored: StateCoded {
        static var blank: Stored { Stored() }
        var format = RemoteMemory.format
        var settings = SettingsTrial.Stored.blank
        var commands = RemoteCommands.Stored.blank

        mutating func code(_ coder: inout StateCoder) {
            coder.code(&format)
            coder.code(&settings)
            coder.code(&commands)
        }
    }
}
