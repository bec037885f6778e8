import Doctor
import Glibc
import WaypostCore
import WaypostHost

/// Writes what `init` has made, with the owners that it needs, on this host or below the folder of an image.
struct Installation {
    /// nil = this host.
    let root: String?
    /// As the daemon knows it.
    let configuration: String
    let host: HostFolder

    static let example = "/usr/share/waypost/waypost.toml"
    static let rules = "/etc/udev/rules.d/69-waypost-local.rules"

    enum Former: Equatable {
        case nothing
        /// What the package has put there, or no setting at all.
        case example
        case other
    }

    /// - Parameter path: as the host knows it.
    func place(_ path: String) -> String { (root ?? "") + path }

    var former: Former {
        guard let text = host.text(configuration, bytesMax: 1 << 20) else {
            return access(place(configuration), F_OK) == 0 ? .other : .nothing
        }
        let settings = InitPlan.settings(of: text)
        return settings.isEmpty || settings == host.text(Self.example).map(InitPlan.settings) ? .example : .other
    }

    /// The user of the daemon; nil where it does not exist.
    var owner: (user: UInt32, group: UInt32)? {
        host.user(ServiceUser.name).map { ($0.id, host.group(ServiceUser.name) ?? $0.group) }
    }

    /// - Throws: `SystemError`
    func write(configuration text: String) throws {
        let path = place(configuration)
        if former == .other || former == .example && host.text(configuration) != host.text(Self.example) {
            let former = open(path, O_RDONLY | O_CLOEXEC)
            guard former >= 0 else { throw SystemError("open \(path)") }
            defer { close(former) }
            var bytes: [UInt8] = []
            var chunk = [UInt8](repeating: 0, count: 4096)
            while case let count = read(former, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
            try put(bytes, path + ".bak", mode: 0o640, user: 0)
        }
        try put(Array(text.utf8), path, mode: 0o640, user: 0)
    }

    /// What the former configuration was is put back; nothing where there was none.
    ///
    /// - Throws: `SystemError`
    func restore() throws {
        let path = place(configuration)
        guard rename(path + ".bak", path) == 0 else { throw SystemError("rename \(path).bak") }
    }

    /// A certificate is no secret.
    ///
    /// - Throws: `SystemError`
    func write(certificate: [UInt8], to path: String) throws {
        try put(certificate, place(path), mode: 0o644, user: 0)
    }

    /// - Throws: `SystemError`
    func write(secret: String, to path: String) throws {
        try put(Array((secret + "\n").utf8), place(path), mode: 0o600, user: owner?.user)
    }

    /// Adds a rule to those of the owner of the host, once.
    ///
    /// - Throws: `SystemError`
    func add(rule: String) throws {
        let path = place(Self.rules)
        let before = host.text(Self.rules) ?? "# Written by waypost init: receivers that waypost may read.\n"
        guard !before.split(separator: "\n").contains(where: { $0 == rule }) else { return }
        try makeFolder(path.parentDirectory)
        try replaceFile(
            path, with: Array((before + (before.hasSuffix("\n") ? "" : "\n") + rule + "\n").utf8), mode: 0o644)
    }

    private func put(_ bytes: [UInt8], _ path: String, mode: mode_t, user: UInt32?) throws {
        try makeFolder(path.parentDirectory)
        // Before it has its bytes nobody else may read it; the owner comes with its name.
        let draft = path + ".init"
        try replaceFile(draft, with: bytes, mode: 0o600)
        if geteuid() == 0, let owner {
            guard chown(draft, user ?? owner.user, owner.group) == 0 else { throw SystemError("chown \(draft)") }
        }
        guard chmod(draft, mode) == 0, rename(draft, path) == 0 else { throw SystemError("write \(path)") }
    }

    private func makeFolder(_ path: String) throws {
        guard access(path, F_OK) != 0, path != path.parentDirectory else { return }
        try makeFolder(path.parentDirectory)
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw SystemError("mkdir \(path)") }
    }
}
