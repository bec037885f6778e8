import WaypostCore

/// A document that was accepted, as it is put over the file.
package struct RemoteVersion: Hashable, Sendable {
    package var version: Int64
    /// After clamping.
    package var settings: [RemoteSetting]
    /// What clamping has changed.
    package var clamped: [ClampedSetting]
    /// Name of the way on which it came, which is that of an endpoint.
    package var way: String

    package init(version: Int64, settings: [RemoteSetting], clamped: [ClampedSetting] = [], way: String) {
        self.version = version
        self.settings = settings
        self.clamped = clamped
        self.way = way
    }
}

extension RemoteVersion: StateCoded {
    package static var blank: RemoteVersion { RemoteVersion(version: 0, settings: [], way: "") }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&version)
        coder.code(&settings)
        coder.code(&clamped)
        coder.code(&way)
    }
}

extension RemoteSetting: StateCoded {
    package static var blank: RemoteSetting { RemoteSetting("", .null) }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&key)
        var text = String(decoding: value.bytes, as: UTF8.self)
        coder.code(&text)
        value = JSONReader.read(Array(text.utf8)) ?? .null
    }
}

/// A value that was out of its range, and what it became.
package struct ClampedSetting: Hashable, Sendable {
    package var key: String
    package var wanted: JSONValue
    package var given: JSONValue

    package init(_ key: String, wanted: JSONValue, given: JSONValue) {
        self.key = key
        self.wanted = wanted
        self.given = given
    }
}

extension ClampedSetting: StateCoded {
    package static var blank: ClampedSetting { ClampedSetting("", wanted: .null, given: .null) }

    package mutating func code(_ coder: inout StateCoder) {
        var (before, after) = (RemoteSetting(key, wanted), RemoteSetting(key, given))
        coder.code(&before)
        coder.code(&after)
        self = ClampedSetting(before.key, wanted: before.value, given: after.value)
    }
}

extension RemoteProblem: StateCoded {
    package static var blank: RemoteProblem { RemoteProblem("", "") }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&path)
        coder.code(&reason)
    }
}
