import Glibc
import WaypostCore
import WaypostHost

extension AgentConfig {
    /// Reads the file and the drop-ins beside it (`waypost.d/*.toml`, in the order of their names, later ones win).
    ///
    /// Throws every problem at once; a file that is missing, unreadable or not TOML is one.
    package static func load(
        path: String, environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        var texts: [(name: String, bytes: [UInt8])] = []
        var total = 0
        var problems: [ConfigurationProblem] = []
        for name in [path] + dropIns(beside: path, &problems) {
            switch contents(of: name) {
            case .success(let bytes):
                texts.append((name, bytes))
                total += bytes.count
                guard total <= totalMax else {
                    let words = "found more than \(totalMax >> 20) MiB with the files before it, expected less"
                    throw ConfigurationProblems(problems + [ConfigurationProblem("\(name): \(words)")])
                }
            case .failure(let unreadable): problems.append(unreadable.problem)
            }
        }
        if !problems.isEmpty { throw ConfigurationProblems(problems) }
        return try parse(texts, environment: environment)
    }

    /// What can be read of a file and its drop-ins, as far as they are no larger than `load` takes.
    static func readableTables(_ path: String) -> TOMLTable {
        var merged = TOMLTable()
        var total = 0
        var problems: [ConfigurationProblem] = []
        for name in [path] + dropIns(beside: path, &problems) {
            guard let bytes = try? contents(of: name).get() else { continue }
            total += bytes.count
            guard total <= totalMax else { break }
            guard let table = try? TOMLTable.parse(bytes, file: name) else { continue }
            merged.merge(table)
        }
        return merged
    }

    /// Parses texts that are already in memory; later ones override earlier ones.
    package static func parse(
        _ files: [(name: String, bytes: [UInt8])], environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        try parse(files, over: nil, environment: environment)
    }

    /// - Parameter overlay: laid over the files.
    static func parse(
        _ files: [(name: String, bytes: [UInt8])], over overlay: TOMLTable?, environment: ConfigurationEnvironment
    ) throws(ConfigurationProblems) -> LoadedConfiguration {
        var merged = TOMLTable()
        var problems: [ConfigurationProblem] = []
        for file in files {
            do throws(ConfigurationProblems) {
                merged.merge(try TOMLTable.parse(file.bytes, file: file.name))
            } catch {
                problems += error.problems
            }
        }
        // A file that is not TOML hides its keys: problems reported for the rest could be wrong.
        if !problems.isEmpty { throw ConfigurationProblems(problems) }
        if let overlay { merged.merge(overlay) }
        let reader = ConfigurationReader(files: files.map(\.name), environment: environment)
        let config = AgentConfig(reading: reader.root(merged))
        reader.finish()
        let warnings = reader.sortedWarnings
        guard let config, reader.sortedProblems.isEmpty else {
            throw ConfigurationProblems(reader.sortedProblems, warnings: warnings)
        }
        return LoadedConfiguration(
            config: config, warnings: warnings, effective: reader.effective,
            texts: files.map { ConfigurationText(path: $0.name, bytes: $0.bytes) }, included: reader.included)
    }

    private struct Unreadable: Error {
        var problem: ConfigurationProblem

        init(_ path: String, _ reason: String, isForbidden: Bool = false) {
            problem = ConfigurationProblem("\(path): \(reason)", at: nil, key: nil, dependsOnReader: isForbidden)
        }
    }

    private static func contents(of path: String) -> Result<[UInt8], Unreadable> {
        do throws(RegularFile.Failure) {
            let file = try RegularFile(path)
            guard file.status.st_size <= bytesMax, let bytes = readAll(file.descriptor, bytesMax: bytesMax) else {
                return .failure(Unreadable(path, "found more than 1 MiB, expected a configuration"))
            }
            return .success(bytes)
        } catch {
            switch error {
            case .notRegular(S_IFDIR): return .failure(Unreadable(path, "found a directory, expected a file"))
            case .notRegular: return .failure(Unreadable(path, "found a device or pipe, expected a file"))
            case .system(let code):
                let hint =
                    switch code {
                    case ENOENT: "found no such file, expected the configuration (name another one with --config)"
                    case EACCES: "may not be read by this user (see its owner and mode)"
                    default: "cannot be opened: \(errorText(code))"
                    }
                return .failure(Unreadable(path, hint, isForbidden: code == EACCES))
            }
        }
    }

    private static let bytesMax = 1 << 20
    /// Bytes of the file and all its drop-ins.
    private static let totalMax = 2 << 20

    /// A missing directory is no problem, an unreadable one is.
    private static func dropIns(beside path: String, _ problems: inout [ConfigurationProblem]) -> [String] {
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        let directory = parent + "waypost.d"
        guard let names = folderNames(directory) else {
            let code = errno
            if code != ENOENT {
                let reason = "cannot be listed: \(errorText(code))"
                problems.append(Unreadable(directory, reason, isForbidden: code == EACCES).problem)
            }
            return []
        }
        return names.filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }.map { "\(directory)/\($0)" }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
