import Foundation

/// Where tests keep files: memory, unless it has no room or may not hold the programs that some tests write. What is about
/// a disk names a folder of its own.
package let scratchFolder: String = {
    let noExec: UInt = 8  // ST_NOEXEC, which glibc declares for C with its extensions alone
    var memory = statvfs()
    let isUsable =
        access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &memory) == 0
        && memory.f_flag & noExec == 0 && memory.f_bavail * memory.f_frsize > 1 << 29
    return isUsable ? "/dev/shm" : "/tmp"
}()

/// A new empty directory; the test removes what it puts there.
package func makeTemporaryDirectory(in parent: String = scratchFolder) throws -> String {
    var template = Array("\(parent)/waypost-test-XXXXXX".utf8CString)
    guard let path = mkdtemp(&template) else { throw TemporaryDirectoryError(code: errno) }
    return String(cString: path)
}

/// No temporary directory could be made.
package struct TemporaryDirectoryError: Error {
    package let code: Int32

    package init(code: Int32) { self.code = code }
}

/// A directory of its own for one test, removed afterwards.
package final class TemporaryDirectory: Sendable {
    package let path: String

    package init() throws {
        path = try makeTemporaryDirectory()
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    package func read(_ name: String) throws -> String {
        try String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)
    }

    package func write(_ name: String, _ text: String, mode: mode_t = 0o600) throws {
        let descriptor = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard descriptor >= 0 else { throw TemporaryDirectoryError(code: errno) }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count, fchmod(descriptor, mode) == 0 else {
            throw TemporaryDirectoryError(code: errno)
        }
    }

    package func makeDirectory(_ name: String) throws {
        guard mkdir("\(path)/\(name)", 0o700) == 0 else { throw TemporaryDirectoryError(code: errno) }
    }
}
