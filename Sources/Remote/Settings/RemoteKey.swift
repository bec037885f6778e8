/// Dotted names of keys and tables, as `allow` and documents write them.
package enum RemoteKey {
    package static let bytesMax = 128
    private static let depthMax = 8

    /// Where rows go, who may ask for what, where files are, and how much the queue holds: what could lose a vehicle, its
    /// rows or its secrets. No file can allow them.
    package static let neverAllowed = [
        "device", "source", "receiver", "endpoint", "channel", "profile", "control", "metrics", "remote", "outbox",
        "geofences.file", "geofences.source", "beacons.source", "battery", "context", "tracking.moving.receiver",
        "tracking.stationary.receiver",
    ]

    /// Keys in a table that is never allowed, which cannot do harm.
    private static let exceptions = ["outbox.commit_window", "battery.low", "battery.hysteresis"]

    /// Parts of letters, digits, `_` and `-`, joined by dots.
    package static func isWellFormed(_ key: String) -> Bool {
        guard key.utf8.count <= bytesMax else { return false }
        let parts = key.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count <= depthMax
            && parts.allSatisfy { part in
                !part.isEmpty
                    && part.allSatisfy { byte in
                        switch byte {
                        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                            true
                        default: false
                        }
                    }
            }
    }

    /// Whether a key is this name, or is in the table of this name.
    package static func covers(_ name: String, _ key: String) -> Bool { key == name || key.hasPrefix("\(name).") }

    /// The keys that a key of `[tracking.moving]` or `[tracking.stationary]` overrides in that state.
    package static func bases(of key: String) -> [String] {
        for table in ["tracking.moving.", "tracking.stationary."] where key.hasPrefix(table) {
            let name = key.dropFirst(table.count)
            return ["tracking.\(name)", "sampling.\(name)", "resolution.default.\(name)"]
        }
        return []
    }

    /// Whether a key is this one, or this one in a state of motion.
    package static func isNamed(_ name: String, _ key: String) -> Bool { key == name || bases(of: key).contains(name) }

    /// Whether no file can allow a key.
    package static func isNeverAllowed(_ key: String) -> Bool {
        !exceptions.contains { covers($0, key) } && neverAllowed.contains { covers($0, key) }
    }
}
