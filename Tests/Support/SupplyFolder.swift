import Glibc

/// A folder that looks like /sys/class/power_supply.
package final class SupplyFolder {
    package let path: String
    private let isOwn: Bool

    package init() throws {
        path = try makeTemporaryDirectory()
        isOwn = true
    }

    /// - Parameter path: a folder in one that the test removes.
    package init(at path: String) {
        self.path = path
        isOwn = false
        mkdir(path, 0o700)
    }

    deinit {
        guard isOwn else { return }
        for name in names(in: path) { remove(name) }
        rmdir(path)
    }

    /// Sets files of an entry; nil takes one away. Whoever reads sees the old or the new text.
    package func set(_ name: String, _ files: KeyValuePairs<String, String?>) throws {
        mkdir("\(path)/\(name)", 0o700)
        for (file, text) in files {
            let place = place(of: file, name)
            guard let text else {
                unlink(place)
                rmdir(place)
                continue
            }
            let draft = "\(path)/.draft"
            guard let stream = fopen(draft, "we") else { throw SupplyFolderError(code: errno) }
            fputs(text, stream)
            guard fclose(stream) == 0, rename(draft, place) == 0 else { throw SupplyFolderError(code: errno) }
        }
    }

    /// A file that opens, and fails when it is read.
    package func breakFile(_ file: String, of name: String) {
        mkdir("\(path)/\(name)", 0o700)
        unlink(place(of: file, name))
        mkdir(place(of: file, name), 0o700)
    }

    /// A file that whoever reads it waits for, until `answer`.
    package func block(_ file: String, of name: String) throws {
        mkdir("\(path)/\(name)", 0o700)
        unlink(place(of: file, name))
        guard mkfifo(place(of: file, name), 0o600) == 0 else { throw SupplyFolderError(code: errno) }
    }

    /// The file holds this text from now on, also for who waits for it.
    /// - Returns: false when no reader waits yet: nothing has changed.
    package func answer(_ file: String, of name: String, _ text: String) throws -> Bool {
        let reader = open(place(of: file, name), O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        guard reader >= 0 else { return false }
        defer { close(reader) }
        try set(name, [file: text])
        return write(reader, text, text.utf8.count) == text.utf8.count
    }

    /// A blocked file stays so, for who waits for it now, until what is returned is called, even when its folder goes.
    package func hold(_ file: String, of name: String) throws -> () -> Void {
        let descriptor = open(place(of: file, name), O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw SupplyFolderError(code: errno) }
        return {
            _ = write(descriptor, "0\n", 2)
            close(descriptor)
        }
    }

    package func remove(_ name: String) {
        for file in names(in: "\(path)/\(name)") {
            unlink(place(of: file, name))
            rmdir(place(of: file, name))
        }
        rmdir("\(path)/\(name)")
    }

    private func place(of file: String, _ name: String) -> String { "\(path)/\(name)/\(file)" }

    private func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

package struct SupplyFolderError: Error {
    package let code: Int32
}
