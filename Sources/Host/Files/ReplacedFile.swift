import Glibc
import WaypostCore

/// Replaces a file as a whole: readers find the old bytes or the new ones. The draft is `PATH.new`; what has that name is
/// removed.
///
/// - Parameter isDurable: the bytes are on the medium when it returns. Without that, the file may be empty after a power cut.
/// - Throws: `SystemError`; the old file is as it was.
package func replaceFile(
    _ path: String, with bytes: [UInt8], mode: mode_t, isDurable: Bool = true
) throws(SystemError) {
    let draft = path + ".new"
    // A pipe, or a file of another user, would be an error each time.
    unlink(draft)
    let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw SystemError("open \(draft)") }
    var written = 0
    while written < bytes.count {
        let count = bytes[written...].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { break }
        written += count
    }
    let isSafe =
        written == bytes.count && fchmod(descriptor, mode) == 0 && (!isDurable || fsync(descriptor) == 0)
    let error = SystemError("write \(draft)")
    close(descriptor)
    guard isSafe else {
        unlink(draft)
        throw error
    }
    guard rename(draft, path) == 0 else {
        let error = SystemError("rename \(draft)")
        unlink(draft)
        throw error
    }
    guard isDurable else { return }
    let directory = open(path.parentDirectory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if directory >= 0 {
        fsync(directory)
        close(directory)
    }
}
