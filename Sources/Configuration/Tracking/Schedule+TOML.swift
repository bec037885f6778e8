import Glibc
import Profiles
import WaypostCore
import WaypostHost
import WaypostTracking

extension Timetable {
    init(reading table: TableReader) {
        var zone = LocalZone.host(table.environment)
        table.read("timezone", into: &zone, as: .timeZone, note: "the host's")
        var hours: WeeklyHours?
        table.read("track", into: &hours, as: .hours)
        self.init(zone: zone.rules)
        if let hours { set(.tracking, hours) }
    }
}

extension ValueForm where Value == String {
    /// Hours that stay words, for `Timetable.set(hours:)`.
    static var hours: ValueForm {
        text(ValueForm<WeeklyHours>.hours.expected) { text in
            do throws(WeeklyHours.Mistake) {
                _ = try WeeklyHours(parsing: text)
                return nil
            } catch { return Mistake(error, at: nil) }
        }
    }
}

extension ValueForm where Value == WeeklyHours {
    /// One text or several.
    static var hours: ValueForm {
        ValueForm(
            expected: "hours such as \"mon-fri 08:00-18:00\", or a list of them",
            read: { node, environment throws(Mistake) in
                let nodes: [TOMLNode]
                switch node.value {
                case .string: nodes = [node]
                case .array(let elements) where !elements.isEmpty: nodes = elements
                case .array: throw Mistake(found: "an empty list")
                default: throw Mistake()
                }
                let list = TOMLNode(value: .array(nodes), position: node.position)
                let texts = try list.elements { element throws(Mistake) in
                    guard case .string = element.value else { throw Mistake(found: element.description) }
                    return try element.text(environment)
                }
                do throws(WeeklyHours.Mistake) {
                    return try WeeklyHours(parsing: texts)
                } catch {
                    throw Mistake(error, at: texts.firstIndex(of: error.text).map { nodes[$0].position })
                }
            },
            render: { $0.texts.count == 1 ? $0.texts[0].asTOML : $0.texts.asTOML })
    }
}

extension Mistake {
    fileprivate init(_ mistake: WeeklyHours.Mistake, at position: SourcePosition?) {
        let text = mistake.text.asTOML.shortened
        found =
            mistake.found.isEmpty
            ? "the end of \(text)" : "\(mistake.found.asTOML) at character \(mistake.offset + 1) of \(text)"
        expected = mistake.expected
        suggestion = mistake.suggestion?.asTOML
        self.position = position
    }
}

/// A time zone and its name.
struct LocalZone {
    /// nil = not known.
    var name: String?
    var rules: TimeZoneRules

    /// What `localtime` takes: the variable TZ, else the zone of the host, else UTC.
    static func host(_ environment: ConfigurationEnvironment) -> LocalZone {
        if let variable = environment.variables["TZ"] {
            let text = variable.hasPrefix(":") ? String(variable.dropFirst()) : variable
            if text.hasPrefix("/"), let rules = rules(file: text) { return LocalZone(name: nil, rules: rules) }
            if let zone = named(text, environment) { return zone }
            return LocalZone(name: nil, rules: TimeZoneRules(posix: text) ?? .utc)
        }
        guard let rules = rules(file: environment.localTime) else { return LocalZone(name: "UTC", rules: .utc) }
        return LocalZone(name: linkedName(environment.localTime), rules: rules)
    }

    static func named(_ name: String, _ environment: ConfigurationEnvironment) -> LocalZone? {
        if name == "UTC" { return LocalZone(name: name, rules: .utc) }
        // Nothing outside of the database, and nothing hidden.
        let isPlain = name.utf8.allSatisfy {
            (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || "+-_/".utf8.contains($0)
        }
        guard isPlain, !name.isEmpty, !name.hasPrefix("/"), name.utf8.count <= 64 else { return nil }
        return rules(file: "\(environment.zoneInfo)/\(name)").map { LocalZone(name: name, rules: $0) }
    }

    /// `Europe/Berlin` of a link to `/usr/share/zoneinfo/Europe/Berlin`.
    private static func linkedName(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = buffer.withUnsafeMutableBytes {
            readlink(path, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        guard count > 0, count < buffer.count else { return nil }
        let target = String(decoding: buffer[..<count], as: UTF8.self)
        return target.split(separator: "/zoneinfo/", maxSplits: 1).dropFirst().first.map(String.init)
    }

    private static func rules(file path: String) -> TimeZoneRules? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return readAll(descriptor, bytesMax: TimeZoneRules.bytesMax).flatMap(TimeZoneRules.init(tzif:))
    }

    /// The zone that was probably meant.
    fileprivate static func nearestName(_ name: String, _ environment: ConfigurationEnvironment) -> String? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count <= 3, !parts.contains(".."), !parts.contains("") else { return nil }
        var path: [String] = []
        for part in parts {
            let names = entries(([environment.zoneInfo] + path).joined(separator: "/"))
            guard let match = names.contains(part) ? part : nearest(part, in: names) else { return nil }
            path.append(match)
        }
        let found = path.joined(separator: "/")
        return named(found, environment) == nil ? nil : found
    }

    private static func entries(_ directory: String) -> [String] {
        (folderNames(directory) ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }
}

extension ValueForm where Value == LocalZone {
    static var timeZone: ValueForm {
        let names = ValueForm<String>.text("a time zone such as \"Europe/Berlin\"")
        return ValueForm(
            expected: names.expected,
            read: { node, environment throws(Mistake) in
                let name = try names.read(node, environment)
                if let zone = LocalZone.named(name, environment) { return zone }
                guard access("\(environment.zoneInfo)/Europe", R_OK) == 0 else {
                    throw Mistake(
                        found: "\(name.asTOML) on a host without \(environment.zoneInfo)",
                        expected: "the tz database to be there (package tzdata)")
                }
                throw Mistake(
                    expected: "a time zone of \(environment.zoneInfo) such as \"Europe/Berlin\" "
                        + "(older names are in package tzdata-legacy)",
                    suggestion: LocalZone.nearestName(name, environment)?.asTOML)
            },
            render: { $0.name?.asTOML ?? "" })
    }
}
