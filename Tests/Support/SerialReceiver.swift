import Foundation

/// A receiver that can be plugged and unplugged: a pseudo-terminal behind a name that stays the same.
package final class SerialReceiver {
    package let path: String
    private var controller: Int32 = -1
    private var line: Int32 = -1

    package init(path: String) { self.path = path }

    package func plug() throws {
        var name = [CChar](repeating: 0, count: 128)
        guard openpty(&controller, &line, &name, nil, nil) == 0 else {
            throw RunningProgram.Unfinished(text: "openpty: \(String(cString: strerror(errno)))")
        }
        for descriptor in [controller, line] { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(controller, F_SETFL, O_NONBLOCK)
        // As a program leaves it that has used the line before: nothing is echoed or translated.
        var settings = termios()
        tcgetattr(line, &settings)
        cfmakeraw(&settings)
        tcsetattr(line, TCSANOW, &settings)
        unlink(path)
        symlink(name, path)
    }

    package func unplug() {
        unlink(path)
        for descriptor in [controller, line] where descriptor >= 0 { close(descriptor) }
        (controller, line) = (-1, -1)
    }

    /// Returns when everything is on the line, which holds some kilobytes, or when nothing was read for this number of seconds.
    /// - Returns: how many bytes are.
    @discardableResult
    package func send(_ bytes: [UInt8], timeout: Int32 = 5) -> Int {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { write(controller, $0.baseAddress! + sent, min(1024, $0.count - sent)) }
            if count > 0 {
                sent += count
                continue
            }
            var wait = pollfd(fd: controller, events: Int16(POLLOUT), revents: 0)
            guard errno == EAGAIN, poll(&wait, 1, timeout * 1000) == 1 else { break }
        }
        return sent
    }

    /// What was written to the receiver, until it ends with `ending`; whatever came when that does not within 20 s.
    package func written(until ending: String) -> String {
        var text = ""
        var chunk = [UInt8](repeating: 0, count: 1024)
        var wait = pollfd(fd: controller, events: Int16(POLLIN), revents: 0)
        while !text.hasSuffix(ending), poll(&wait, 1, 20_000) == 1 {
            let count = read(controller, &chunk, chunk.count)
            guard count > 0 else { break }
            text += String(decoding: chunk[..<count], as: UTF8.self)
        }
        return text
    }

    deinit { unplug() }
}
