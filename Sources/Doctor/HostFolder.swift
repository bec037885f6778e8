import CLinux
import Glibc
import WaypostCore
import WaypostHost

/// The files of a host below a folder: `/` for the host itself. Everything is read only, and bounded.
package struct HostFolder: Sendable {
    /// Of a file in `/proc`, `/sys` or `/run`; what is longer is cut.
    package static let bytesMax = 64 * 1024
    private static let namesMax = 65_536

    /// Who owns a node, and who may use it.
    struct Permissions {
        var mode: UInt32
        var user: UInt32
        var group: UInt32
        /// Users who may read and write by an entry of the access control list.
        var listed: Set<UInt32> = []
    }

    /// Without a slash at the end: empty for the host itself.
    private let root: String

    /// - Parameter root: links below it are followed as long as they are relative, as those of sysfs and udev are.
    package init(root: String) {
        let real = realpath(root, nil).map { pointer in
            defer { free(pointer) }
            return String(cString: pointer)
        }
        self.root = (real ?? root) == "/" ? "" : real ?? root
    }

    /// nil where it is not there or may not be read.
    package func text(_ path: String, bytesMax: Int = bytesMax) -> String? {
        let descriptor = open(root + path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count < bytesMax {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Without blanks and zero bytes at the ends; nil also when nothing is left.
    package func word(_ path: String) -> String? {
        guard let text = text(path) else { return nil }
        let word = text.trimming { $0.isWhitespace || $0 == "\0" }
        return word.isEmpty ? nil : String(word)
    }

    package func lines(_ path: String, bytesMax: Int = bytesMax) -> [String]? {
        text(path, bytesMax: bytesMax).map { $0.split(separator: "\n").map(String.init) }
    }

    /// Names in a folder, sorted; nil where it is not there or may not be read.
    package func names(_ path: String) -> [String]? {
        folderNames(root + path, limit: Self.namesMax)?.sorted()
    }

    package func exists(_ path: String) -> Bool { access(root + path, F_OK) == 0 }

    /// What a link says; nil where it is none.
    package func link(_ path: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = bytes.withUnsafeMutableBytes { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { readlink(root + path, $0, text.count) } ?? -1
            }
        }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }

    /// The path without links; nil where it does not exist.
    package func resolved(_ path: String) -> String? {
        guard let pointer = realpath(root + path, nil) else { return nil }
        defer { free(pointer) }
        let real = String(cString: pointer)
        guard real.utf8.starts(with: root.utf8) else { return nil }
        return String(decoding: real.utf8.dropFirst(root.utf8.count), as: UTF8.self)
    }

    /// The folder that a file is in or will be in, without links: the nearest that exists.
    func realFolder(of path: String) -> String {
        var folder = path.parentDirectory
        while folder != folder.parentDirectory {
            if let real = resolved(folder) { return real == "/" ? "" : real }
            folder = folder.parentDirectory
        }
        return ""
    }

    /// `188:0`; nil where there is no character device.
    func deviceNumber(_ path: String) -> String? {
        var info = stat()
        guard stat(root + path, &info) == 0, info.st_mode & S_IFMT == S_IFCHR else { return nil }
        // As glibc packs them, in macros that Swift does not see.
        let device = UInt64(info.st_rdev)
        let major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
        let minor = device & 0xFF | (device >> 12) & ~0xFF
        return "\(major):\(minor)"
    }

    func permissions(_ path: String) -> Permissions? {
        var info = stat()
        guard stat(root + path, &info) == 0 else { return nil }
        return Permissions(
            mode: info.st_mode & 0o7777, user: info.st_uid, group: info.st_gid, listed: listed(path))
    }

    /// As the kernel keeps the list: a version, then entries of tag, permissions and id. Where there is one, the bits of the group are
    /// its mask.
    private func listed(_ path: String) -> Set<UInt32> {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Int(waypost_access_list(root + path, &bytes, bytes.count))
        let (readWrite, user, mask): (UInt16, UInt16, UInt16) = (6, 0x02, 0x10)
        var users: Set<UInt32> = []
        var isMasked = false
        bytes.withUnsafeBytes { bytes in
            for place in stride(from: 4, through: count - 8, by: 8) {
                let tag = bytes.loadUnaligned(fromByteOffset: place, as: UInt16.self)
                let granted = bytes.loadUnaligned(fromByteOffset: place + 2, as: UInt16.self)
                if tag == user, granted & readWrite == readWrite {
                    users.insert(bytes.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self))
                } else if tag == mask, granted & readWrite != readWrite {
                    isMasked = true
                }
            }
        }
        return isMasked ? [] : users
    }
}

// Processes.
extension HostFolder {
    /// Numbers of the processes that are seen.
    package var processes: [Int] { (names("/proc") ?? []).compactMap { Int($0) } }

    /// The program, cut by the kernel to 15 bytes; nil when it ended.
    package func program(of process: Int) -> String? { word("/proc/\(process)/comm") }

    package func isRunning(_ program: String) -> Bool { processes.contains { self.program(of: $0) == program } }

    /// `gpsd.service`; nil when it runs in none.
    func unit(of process: Int) -> String? {
        (lines("/proc/\(process)/cgroup") ?? []).lazy
            .compactMap { $0.split(separator: "/").last { $0.hasSuffix(".service") || $0.hasSuffix(".scope") } }
            .first.map(String.init)
    }
}

// Groups and users.
extension HostFolder {
    /// nil where there is no such group.
    package func group(_ name: String) -> UInt32? {
        entries("/etc/group").first { $0.count > 2 && $0[0] == name }.flatMap { UInt32($0[2]) }
    }

    /// nil where there is no such group.
    func groupName(_ id: UInt32) -> String? {
        entries("/etc/group").first { $0.count > 2 && UInt32($0[2]) == id }.map { $0[0] }
    }

    /// Whether `/etc/group` lists a user there, which counts for processes that start from now on.
    func isListed(_ user: String, inGroup id: UInt32) -> Bool {
        entries("/etc/group").contains { entry in
            entry.count > 3 && UInt32(entry[2]) == id && entry[3].split(separator: ",").contains { $0 == user }
        }
    }

    /// User id and main group of a user.
    package func user(_ name: String) -> (id: UInt32, group: UInt32)? {
        guard let entry = entries("/etc/passwd").first(where: { $0.count > 3 && $0[0] == name }),
            let id = UInt32(entry[2]), let group = UInt32(entry[3])
        else { return nil }
        return (id, group)
    }

    private func entries(_ path: String) -> [[String]] {
        (lines(path) ?? []).map { $0.split(separator: ":", omittingEmptySubsequences: false).map(String.init) }
    }
}
