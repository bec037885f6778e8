import Configuration
import EventLoop
import Glibc
import Sensors

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
    private var next: (bytes: [UInt8], path: String)?
    /// What kept a version from being written; nil = it is there.
    var done: (String?) -> Void = { _ in }

    init(mode: mode_t, isDurable: Bool, loop: EventLoop) {
        (self.mode, self.isDurable, self.loop) = (mode, isDurable, loop)
    }

    func write(_ bytes: [UInt8], to path: String) {
        next = (bytes, path)
        if call == nil { start() }
    }

    private func start() {
        guard let (bytes, path) = next else { return }
        next = nil
        do {
            let call = try BackgroundCall("cannot write \(path)") { [mode, isDurable] in
                Self.write(bytes, to: path, mode: mode, isDurable: isDurable)
            }
            try loop.watch(call.descriptor) { [unowned self] _, _ in ended() }
            self.call = call
        } catch { done("\(error)") }
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
        guard let call, let answer = call.answer else { return }
        loop.forget(call.descriptor)
        self.call = nil
        done(answer)
        start()
    }
}
