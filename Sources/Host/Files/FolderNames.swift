import Glibc

/// Names in a folder, in no order, without `.` and `..`.
///
/// - Parameter limit: more are not read.
/// - Returns: nil where it cannot be opened; `errno` says why.
package func folderNames(_ path: String, limit: Int = .max) -> [String]? {
    guard let folder = opendir(path) else { return nil }
    defer { closedir(folder) }
    var names: [String] = []
    while names.count < limit, let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}
