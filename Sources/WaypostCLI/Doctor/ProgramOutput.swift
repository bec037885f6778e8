import Glibc
import WaypostHost

/// What a program of the system prints, bounded in time and bytes.
enum ProgramOutput {
    private static let bytesMax = 64 * 1024

    /// nil when it cannot be started, fails, prints too much or takes too long.
    static func read(_ command: [String], seconds: Int) -> String? {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        guard let process = start(command, output: ends[1]) else { return nil }
        var status: Int32 = 0
        let bytes = drain(ends[0], seconds: seconds)
        if bytes == nil { kill(process, SIGKILL) }
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status == 0 ? bytes.map { String(decoding: $0, as: UTF8.self) } : nil
    }

    /// Closes the output of ours.
    private static func start(_ command: [String], output: Int32) -> pid_t? {
        defer { close(output) }
        var actions = posix_spawn_file_actions_t()
        guard posix_spawn_file_actions_init(&actions) == 0 else { return nil }
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        return posix_spawnp(&process, command[0], &actions, nil, &arguments, environ) == 0 ? process : nil
    }

    private static func drain(_ descriptor: Int32, seconds: Int) -> [UInt8]? {
        let end = HostIdentity.wallClockMs() + Int64(seconds) * 1000
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count <= bytesMax {
            let rest = end - HostIdentity.wallClockMs()
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard rest > 0, rest <= Int64(seconds) * 1000 else { return nil }
            let ready = poll(&watched, 1, Int32(rest))
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return nil }
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
        }
        return nil
    }
}
