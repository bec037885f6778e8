import Configuration
import Glibc
import Synchronization
import WaypostHost

/// Replaces a file as a whole, on a thread of its own, since a worn card may take seconds.
///
/// A file that has these bytes already is left alone. While one version is being written, only the newest of those that come
/// waits.
final class FileWriter {
    /// What kept one version from being written; nil = it is there.
    typealias Ended = (String?) -> Void

    private let mode: mode_t
    private let isDurable: Bool
    private let loop: EventLoop
    /// What is being written.
    private var current: Version?
    private var next: (bytes: [UInt8], path: String, ended: Ended)?
    /// What kept a version from being written, nil = it is there; and its path.
    var done: (String?, String) -> Void = { _, _ in }

    /// One that is being written.
    private final class Version: Sendable {
        let path: String
        let isUnwanted = Mutex(false)

        init(path: String) { self.path = path }
    }

    init(mode: mode_t, isDurable: Bool, loop: EventLoop) {
        (self.mode, self.isDurable, self.loop) = (mode, isDurable, loop)
    }

    /// - Parameter ended: called when this version was written, or could not be; never where a newer one took its place.
    func write(_ bytes: [UInt8], to path: String, _ ended: @escaping Ended = { _ in }) {
        next = (bytes, path, ended)
        if current == nil { start() }
    }

    /// Removes the file, and with it what is being written: that does not come back.
    func remove(_ path: String) {
        if next?.path == path { next = nil }
        guard let current, current.path == path else {
            unlink(path)
            return
        }
        current.isUnwanted.withLock {
            $0 = true
            unlink(path)
        }
    }

    private func start() {
        guard let (bytes, path, ended) = next else { return }
        next = nil
        let version = Version(path: path)
        current = version
        do {
            // It lives until the call has ended, though its owner may not.
            try loop.inBackground("cannot write \(path)") { [mode, isDurable] in
                let problem = Self.write(bytes, to: path, mode: mode, isDurable: isDurable)
                version.isUnwanted.withLock { if $0 { unlink(path) } }
                return problem
            } then: { [self] problem in
                current = nil
                report(problem, path, ended)
                if current == nil { start() }
            }
        } catch {
            current = nil
            report("\(error)", path, ended)
        }
    }

    private func report(_ problem: String?, _ path: String, _ ended: Ended) {
        ended(problem)
        done(problem, path)
    }

    private static func write(_ bytes: [UInt8], to path: String, mode: mode_t, isDurable: Bool) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor >= 0 {
            defer { close(descriptor) }
            if holds(descriptor, bytes) { return nil }
        }
        do throws(SystemError) { try replaceFile(path, with: bytes, mode: mode, isDurable: isDurable) } catch {
            return "\(error)"
        }
        return nil
    }

    /// Whether a file has these bytes, piece by piece: it may be as long as all the rest of the process.
    private static func holds(_ descriptor: Int32, _ bytes: [UInt8]) -> Bool {
        var piece = [UInt8](repeating: 0, count: 16 * 1024)
        var rest = bytes[...]
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return count == 0 && rest.isEmpty }
            guard rest.starts(with: piece[..<count]) else { return false }
            rest = rest.dropFirst(count)
        }
    }
}
