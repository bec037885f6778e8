import Configuration
import EventLoop
import Glibc
import Sensors
import Synchronization

/// Replaces a file as a whole, on a thread of its own, since a worn card may take seconds.
///
/// A file that has these bytes already is left alone. While one version is being written, only the newest of those that come
/// waits.
final class FileWriter {
    private let mode: mode_t
    private let isDurable: Bool
    private let loop: EventLoop
    /// Gives what kept it from being written.
    private var call: BackgroundCall<String?>?
    /// What `call` writes.
    private var current: Version?
    private var next: (bytes: [UInt8], path: String)?
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

    func write(_ bytes: [UInt8], to path: String) {
        next = (bytes, path)
        if call == nil { start() }
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
        guard let (bytes, path) = next else { return }
        next = nil
        let version = Version(path: path)
        do {
            let call = try BackgroundCall("cannot write \(path)") { [mode, isDurable] in
                let problem = Self.write(bytes, to: path, mode: mode, isDurable: isDurable)
                version.isUnwanted.withLock { if $0 { unlink(path) } }
                return problem
            }
            // It lives until the call has ended, though its owner may not.
            try loop.watch(call.descriptor) { [self] _, _ in ended() }
            (self.call, current) = (call, version)
        } catch { done("\(error)", path) }
    }

    private static func write(_ bytes: [UInt8], to path: String, mode: mode_t, isDurable: Bool) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor >= 0 {
            defer { close(descriptor) }
            if readAll(descriptor, bytesMax: bytes.count) == bytes { return nil }
        }
        do throws(SystemError) { try replaceFile(path, with: bytes, mode: mode, isDurable: isDurable) } catch {
            return "\(error)"
        }
        return nil
    }

    private func ended() {
        guard let call, let current, let answer = call.answer else { return }
        loop.forget(call.descriptor)
        (self.call, self.current) = (nil, nil)
        done(answer, current.path)
        start()
    }
}
