import Glibc
import WaypostCore

/// The last configuration that worked, kept in the folder of state: with it the daemon starts when the one in the file
/// cannot be used.
///
/// It holds the texts as they are written, so secrets only as references. The folder is that of the unit and not that of
/// `[outbox] path`, which a configuration with a mistake cannot name.
package struct LastGoodConfiguration: Sendable {
    /// Where it is kept.
    package let path: String
    /// The configuration that it stands in for, absolute.
    private let origin: String
    /// Whether the folder is given, or only the usual one.
    private let isGiven: Bool

    private static let bytesMax = 16 << 20
    private static let title = "waypost last good configuration, format "
    private static let format = "1"

    /// - Parameter configuration: path of the file; a relative one counts from the working directory.
    package init(of configuration: String, environment: ConfigurationEnvironment) {
        path = environment.directory("STATE_DIRECTORY", fallback: "/var/lib/waypost") + "/last-good.conf"
        isGiven = !(environment.variables["STATE_DIRECTORY"] ?? "").isEmpty
        origin = configuration.hasPrefix("/") ? configuration : "\(Self.workingDirectory)/\(configuration)"
    }

    /// Why none is kept.
    package struct NotKept: Error {
        package let reason: String
    }

    /// What to keep of a configuration that works.
    /// - Throws: `NotKept` where the folder is not given and the queue is elsewhere, so that it may be that of another daemon,
    ///   and where there is too much of it.
    package func bytes(of loaded: LoadedConfiguration) throws(NotKept) -> [UInt8] {
        guard isGiven || loaded.config.outbox.directory == path.parentDirectory else {
            throw NotKept(reason: "the queue is not in the folder of \(path), and STATE_DIRECTORY names no other")
        }
        var parts: [[UInt8]] = []
        func add(_ kind: Kind, _ path: String, _ bytes: [UInt8]) {
            parts.append(Array("\(kind.rawValue) \(path.utf8.count) \(bytes.count)\n\(path)\n".utf8))
            parts.append(bytes)
            parts.append([UInt8(ascii: "\n")])
        }
        add(.origin, origin, [])
        for text in loaded.texts { add(.text, text.path, text.bytes) }
        for text in loaded.included { add(.included, text.path, text.bytes) }
        // Before anything is computed over them, or copied.
        let count = parts.reduce(0) { $0 + $1.count }
        guard count < Self.bytesMax else {
            throw NotKept(reason: "with its geofence files it has \(count >> 20) MiB, more than 16 MiB")
        }
        let sum = Self.checksum(parts.joined())
        var bytes = Array("\(Self.title)\(Self.format), checksum \(sum)\n".utf8)
        bytes.reserveCapacity(bytes.count + count)
        for part in parts { bytes += part }
        return bytes
    }

    /// What is kept now; nil when it cannot be read.
    package var kept: [UInt8]? { try? contents().get() }

    /// - Parameter refused: what is wrong with the configuration that it stands in for.
    /// - Throws: these, and why there is nothing to stand in; nothing is added where nothing was ever kept.
    package func load(
        for refused: ConfigurationProblems, environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        func unusable(_ reason: String, isForbidden: Bool = false) -> ConfigurationProblems {
            var all = refused
            let text = "\(path): the last good configuration \(reason)"
            all.problems.append(ConfigurationProblem(text, at: nil, key: nil, dependsOnReader: isForbidden))
            return all
        }
        let parts: Parts
        do throws(Unusable) { parts = try Parts(contents().get(), title: Self.title, format: Self.format) } catch {
            guard let reason = error.reason else { throw refused }
            throw unusable(reason, isForbidden: error.isForbidden)
        }
        guard parts.origin == origin else { throw unusable("is that of \(parts.origin)") }
        var environment = environment
        for text in parts.included { environment.included[text.path] = text.bytes }
        do throws(ConfigurationProblems) {
            var loaded = try AgentConfig.parse(
                parts.texts.map { ($0.path, $0.bytes) }, environment: environment
            )
            loaded.refused = refused
            return loaded
        } catch {
            throw unusable("cannot be used either: \(error.problems.first?.description ?? "")")
        }
    }

    private enum Kind: String { case origin, text, included }

    /// nil = there is none.
    private struct Unusable: Error {
        var reason: String?
        /// For who asks.
        var isForbidden = false
    }

    private func contents() -> Result<[UInt8], Unusable> {
        do throws(RegularFile.Failure) {
            let file = try RegularFile(path, followsLinks: false)
            // What it names is read, and its commands are run, with the rights of this process.
            guard file.status.st_uid == 0 || file.status.st_uid == geteuid() else {
                return .failure(Unusable(reason: "belongs to another user", isForbidden: true))
            }
            guard let bytes = readAll(file.descriptor, bytesMax: Self.bytesMax + 1024) else {
                return .failure(Unusable(reason: "cannot be read"))
            }
            return .success(bytes)
        } catch {
            switch error {
            case .notRegular: return .failure(Unusable(reason: "cannot be read"))
            case .system(ENOENT), .system(ENOTDIR): return .failure(Unusable(reason: nil))
            case .system(let code):
                return .failure(Unusable(reason: "cannot be opened: \(errorText(code))", isForbidden: code == EACCES))
            }
        }
    }

    private static func checksum(_ bytes: some Sequence<UInt8>) -> String {
        var hash = FNV1a()
        for byte in bytes { hash.add(byte) }
        return String(hash.value, radix: 16)
    }

    private static var workingDirectory: String {
        guard let path = getcwd(nil, 0) else { return "" }
        defer { free(path) }
        return String(cString: path)
    }

    /// What the file holds.
    private struct Parts {
        var origin = ""
        var texts: [ConfigurationText] = []
        var included: [ConfigurationText] = []

        init(_ bytes: [UInt8], title: String, format: String) throws(Unusable) {
            let damaged = Unusable(reason: "is damaged")
            var rest = bytes[...]
            guard let head = Self.line(&rest), head.hasPrefix(title) else { throw damaged }
            guard head.hasPrefix("\(title)\(format), ") else {
                throw Unusable(reason: "is that of another version of waypost")
            }
            guard head == "\(title)\(format), checksum \(LastGoodConfiguration.checksum(rest))" else { throw damaged }
            while !rest.isEmpty {
                guard let words = Self.line(&rest)?.split(separator: " "), words.count == 3,
                    let kind = Kind(rawValue: String(words[0])), let path = Self.take(Int(words[1]), &rest),
                    let bytes = Self.take(Int(words[2]), &rest)
                else { throw damaged }
                let text = ConfigurationText(path: String(decoding: path, as: UTF8.self), bytes: Array(bytes))
                switch kind {
                case .origin: origin = text.path
                case .text: texts.append(text)
                case .included: included.append(text)
                }
            }
        }

        private static func line(_ rest: inout ArraySlice<UInt8>) -> String? {
            guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            defer { rest = rest[(end + 1)...] }
            return String(decoding: rest[..<end], as: UTF8.self)
        }

        /// So many bytes, and the line feed behind them.
        private static func take(_ count: Int?, _ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
            guard let count, count >= 0, count < rest.count else { return nil }
            let end = rest.startIndex + count
            guard rest[end] == UInt8(ascii: "\n") else { return nil }
            defer { rest = rest[(end + 1)...] }
            return rest[rest.startIndex..<end]
        }
    }
}

extension AgentConfig {
    /// The configuration in the file; where that cannot be used, the last good one, which says so in `refused`.
    package static func load(
        path: String, environment: ConfigurationEnvironment, orElse lastGood: LastGoodConfiguration
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        do throws(ConfigurationProblems) {
            return try load(path: path, environment: environment)
        } catch {
            return try lastGood.load(for: error, environment: environment)
        }
    }
}
