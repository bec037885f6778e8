import WaypostCore

/// The settings that a server wants: one whole, versioned document. What it leaves out is as in the file.
package struct DesiredDocument: Hashable, Sendable {
    /// Bytes of its text.
    package static let bytesMax = 16 << 10
    /// The largest whole number that every reader of JSON reads exactly.
    package static let versionMax: Int64 = 1 << 53 - 1
    private static let settingsMax = 256
    private static let trialDefault = Duration.seconds(1800)
    /// Shorter ones would end before a batch can be sent, longer ones are no safety.
    private static let trialLimits = Duration.seconds(60)...Duration.seconds(7 * 86_400)
    private static let members: Set<String> = ["device", "version", "set", "confirm_within", "expires"]

    package var device: String
    /// 1…`versionMax`.
    package var version: Int64
    /// In the order in which they are written.
    package var settings: [RemoteSetting]
    /// How long it may be without contact before it is taken back. The default is 30 minutes.
    package var confirmWithin: Duration
    /// From when on it is not accepted any more; settings that are in force by then stay. nil = never.
    package var expires: UTCTime?

    package init(
        device: String, version: Int64, settings: [RemoteSetting], confirmWithin: Duration = trialDefault,
        expires: UTCTime? = nil
    ) {
        self.device = device
        self.version = version
        self.settings = settings
        self.confirmWithin = confirmWithin
        self.expires = expires
    }

    /// - Throws: everything that is wrong with the text; the version is known where that can be read.
    package init(_ bytes: [UInt8]) throws(DocumentProblems) {
        guard bytes.count <= Self.bytesMax else {
            throw DocumentProblems([.init("", "longer than \(Self.bytesMax >> 10) KiB")])
        }
        let value: JSONValue
        do throws(JSONReader.Problem) { value = try JSONReader.parse(bytes, bytesMax: Self.bytesMax) } catch {
            throw DocumentProblems([.init("", "not valid JSON at byte \(error.offset)")])
        }
        guard let members = value.members else { throw DocumentProblems([.init("", "not an object")]) }
        guard !value.repeatsAName else { throw DocumentProblems([.init("", "names a member twice")]) }

        var problems = members.filter { !Self.members.contains($0.name) }.map {
            RemoteProblem($0.name.visible(bytesMax: RemoteKey.bytesMax), "unknown member")
        }
        device = value["device"]?.string ?? ""
        if device.isEmpty { problems.append(.init("device", "missing, or not a text")) }
        version = value["version"]?.integer ?? 0
        let isNumbered = (1...Self.versionMax).contains(version)
        if !isNumbered {
            problems.append(.init("version", "missing, or not a whole number from 1 to \(Self.versionMax)"))
        }
        settings = Self.settings(value["set"], &problems)
        confirmWithin = Self.trialDefault
        if let written = value["confirm_within"] {
            let duration = written.string.flatMap(Duration.init(remoteText:))
            if let duration, Self.trialLimits.contains(duration) {
                confirmWithin = duration
            } else {
                problems.append(.init("confirm_within", "not a duration from 1m to 7d, such as \"30m\""))
            }
        }
        if let written = value["expires"] {
            expires = written.string.flatMap(UTCTime.milliseconds(iso8601:)).map(UTCTime.init(milliseconds:))
            if expires == nil { problems.append(.init("expires", "not a time such as 2026-01-31T12:00:00Z")) }
        }
        guard problems.isEmpty else {
            throw DocumentProblems(Array(problems.prefix(RemoteProblem.kept)), version: isNumbered ? version : nil)
        }
    }

    private static func settings(_ set: JSONValue?, _ problems: inout [RemoteProblem]) -> [RemoteSetting] {
        guard let members = set?.members else {
            problems.append(.init("set", "missing, or not an object"))
            return []
        }
        guard members.count <= settingsMax else {
            problems.append(.init("set", "more than \(settingsMax) keys"))
            return []
        }
        var settings: [RemoteSetting] = []
        for member in members {
            if let setting = RemoteSetting(member) {
                settings.append(setting)
            } else {
                let key = member.name.visible(bytesMax: RemoteKey.bytesMax)
                let isKey = RemoteKey.isWellFormed(member.name)
                problems.append(.init(key, isKey ? RemoteSetting.valueExpected : "not a dotted key"))
            }
        }
        // `sampling` and `sampling.rule` together: which of the two counts would be a guess.
        for key in settings.map(\.key) where settings.contains(where: { $0.key.hasPrefix("\(key).") }) {
            problems.append(.init(key, "found together with a key within it"))
        }
        return settings
    }
}
