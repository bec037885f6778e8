import Profiles
import Remote
import WaypostCore

/// What a document makes of a configuration.
package enum RemoteOverlay {
    /// With the settings as they are after clamping.
    case accepted(LoadedConfiguration, [RemoteSetting], clamped: [ClampedSetting])
    case rejected([RemoteProblem])

    /// Puts settings over the file, and lets all that reads a file read the whole.
    ///
    /// - Parameters:
    ///   - base: without any settings from afar.
    ///   - environment: as `base` was read with.
    package init(
        _ settings: [RemoteSetting], version: Int64, over base: LoadedConfiguration,
        environment: ConfigurationEnvironment
    ) {
        guard let remote = base.config.remote else {
            self = .rejected([RemoteProblem("", "the file allows no settings from afar")])
            return
        }
        let forbidden = remote.policy.forbidden(in: settings)
        guard forbidden.isEmpty else {
            self = .rejected(forbidden)
            return
        }
        let (values, clamped, incomparable) = Self.clamp(settings, remote.ranges)
        guard incomparable.isEmpty else {
            self = .rejected(incomparable)
            return
        }
        do throws(ConfigurationProblems) {
            let loaded = try base.reading(values, version, environment)
            let overreach =
                Self.overreach(from: base, to: loaded, remote.policy)
                + Self.excess(from: base, to: loaded, remote.ranges)
            self = overreach.isEmpty ? .accepted(loaded, values, clamped: clamped) : .rejected(overreach)
        } catch {
            self = .rejected(error.byWeight.map { RemoteProblem($0.key ?? "", $0.message) })
        }
    }

    private static func clamp(
        _ settings: [RemoteSetting], _ ranges: [RemoteRange]
    ) -> (values: [RemoteSetting], clamped: [ClampedSetting], incomparable: [RemoteProblem]) {
        var values = settings
        var clamped: [ClampedSetting] = []
        var incomparable: [RemoteProblem] = []
        for (index, setting) in settings.enumerated() {
            guard let range = ranges.first(where: { RemoteKey.isNamed($0.key, setting.key) }) else { continue }
            guard let value = range.clamped(setting.value) else {
                incomparable.append(RemoteProblem(setting.key, "cannot be compared with its range"))
                continue
            }
            guard value != setting.value else { continue }
            values[index].value = value
            clamped.append(ClampedSetting(setting.key, wanted: setting.value, given: value))
        }
        return (values, clamped, incomparable)
    }

    /// What would change without being allowed to, whatever the document calls it; and what would change at the next start
    /// alone, where no trial could show what it does.
    private static func overreach(
        from base: LoadedConfiguration, to loaded: LoadedConfiguration, _ policy: RemotePolicy
    ) -> [RemoteProblem] {
        let difference = ConfigurationDifference(from: base.effective, to: loaded.effective)
        return difference.changes.compactMap { change in
            guard policy.allows(change.path), !change.table.hasPrefix("[[") else {
                return RemoteProblem(change.path, "not allowed")
            }
            return change.effect == .reload ? nil : RemoteProblem(change.path, "takes effect at a restart only")
        }
            // As those of a preset: they are not written, and would change all the same.
            + difference.following.compactMap { change in
                // One that follows from the same key of another table is the same setting.
                let follows = RemoteKey.bases(of: change.path).contains(where: policy.allows)
                let isAllowed = policy.allows(change.path) || follows && !RemoteKey.isNeverAllowed(change.path)
                return isAllowed ? nil : RemoteProblem(change.path, "not allowed, and would follow")
            }
    }
}

// What no clamping sees: a key by a vendor's name for it, and a default that follows from another key.
extension RemoteOverlay {
    private static func excess(
        from base: LoadedConfiguration, to loaded: LoadedConfiguration, _ ranges: [RemoteRange]
    ) -> [RemoteProblem] {
        ranges.compactMap { range in
            for entry in loaded.effective.entries where RemoteKey.isNamed(range.key, entry.path) {
                guard let value = entry.value, value != base.effective.value(of: entry.path),
                    let read = JSONReader.read(Array(value.utf8)), range.clamped(read) != read
                else { continue }
                return RemoteProblem(entry.path, "would be \(value), out of its range")
            }
            return nil
        }
    }
}

extension ConfigurationDifference.Change {
    /// Dotted, without the brackets of its table.
    fileprivate var path: String {
        let table = table.filter { $0 != "[" && $0 != "]" }
        return key.isEmpty ? table : "\(table).\(key)"
    }
}

extension EffectiveConfiguration.Entry {
    /// Dotted, without the brackets of its table.
    fileprivate var path: String { "\(table.filter { $0 != "[" && $0 != "]" }).\(key)" }
}

extension EffectiveConfiguration {
    /// As TOML, which is JSON too for what has a range.
    /// - Parameter path: dotted.
    fileprivate func value(of path: String) -> String? {
        entries.first { $0.path == path }?.value ?? nil
    }
}

extension LoadedConfiguration {
    /// The same with settings from afar over it.
    fileprivate func reading(
        _ settings: [RemoteSetting], _ version: Int64, _ environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        var environment = environment
        for text in included { environment.included[text.path] = text.bytes }
        var loaded = try AgentConfig.parse(
            texts.map { ($0.path, $0.bytes) }, over: TOMLTable(settings, from: "remote v\(version)"),
            environment: environment)
        loaded.refused = refused
        // Decides at the next start what a full queue thins, which no trial shows.
        loaded.config.outbox.settings.bound = config.outbox.settings.bound
        return loaded
    }
}

extension TOMLTable {
    /// - Parameter origin: in place of a file.
    fileprivate init(_ settings: [RemoteSetting], from origin: String) {
        let place = SourcePosition(file: origin, line: 0, column: 0)
        for setting in settings {
            guard let node = TOMLNode(setting.value, at: place) else { continue }
            insert(node, at: setting.key.split(separator: ".")[...], place)
        }
    }

    private mutating func insert(_ node: TOMLNode, at path: ArraySlice<Substring>, _ place: SourcePosition) {
        guard let first = path.first.map(String.init) else { return }
        guard path.count > 1 else {
            entries.append(TOMLEntry(key: first, keyPosition: place, node: node))
            return
        }
        var inner = TOMLTable()
        inner.insert(node, at: path.dropFirst(), place)
        let table = TOMLNode(value: .table(inner), position: place)
        merge(TOMLTable(entries: [TOMLEntry(key: first, keyPosition: place, node: table)]))
    }
}

extension TOMLNode {
    /// nil for what no document has.
    fileprivate init?(_ value: JSONValue, at place: SourcePosition) {
        switch value {
        case .string(let text): self.value = .string(text)
        case .int(let number): self.value = .integer(number)
        case .double(let number): self.value = .float(number)
        case .bool(let flag): self.value = .boolean(flag)
        case .array(let items): self.value = .array(items.compactMap { TOMLNode($0, at: place) })
        case .null, .decimal, .object: return nil
        }
        position = place
    }
}
