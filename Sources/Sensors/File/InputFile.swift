import Glibc
import WaypostNMEA

/// An open file, FIFO or standard input.
final class InputFile {
    enum Kind {
        /// Read whenever there is time; epoll refuses it.
        case plain
        /// A FIFO, a pipe, a socket or a terminal: watched for input.
        case stream
    }

    let fd: Int32
    let kind: Kind
    /// A named pipe: its end is only that of the present writer.
    let isFIFO: Bool
    let identity: Identity
    /// Opened by its name, not handed to us.
    let isNamed: Bool
    /// A plain file that can be found again, so that reading can resume.
    let hasPlace: Bool
    private let path: String

    struct Identity: Hashable {
        var device: UInt64
        var inode: UInt64

        init(_ status: stat) {
            device = UInt64(status.st_dev)
            inode = UInt64(status.st_ino)
        }
    }

    /// - Parameter path: `-` is `standardInput`.
    init(path: String, standardInput: Int32) throws(SourceProblem) {
        self.path = path
        isNamed = path != "-"
        if isNamed {
            // Without O_NONBLOCK the open of a FIFO waits for a writer.
            fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
            guard fd >= 0 else { throw Self.openProblem(path, errno) }
        } else {
            fd = standardInput
        }
        var status = stat()
        let code = fstat(fd, &status) == 0 ? 0 : errno
        identity = Identity(status)
        let type = status.st_mode & S_IFMT
        var terminal = termios()
        hasPlace = isNamed && type == S_IFREG
        isFIFO = type == S_IFIFO
        kind = type == S_IFIFO || type == S_IFSOCK || tcgetattr(fd, &terminal) == 0 ? .stream : .plain
        if code != 0 { throw SourceProblem("cannot read \(path == "-" ? "standard input" : path)", errno: code) }
        if type == S_IFDIR { throw SourceProblem("\(path) is a folder; name a file in it", code: EISDIR) }
    }

    deinit {
        if isNamed { close(fd) }
    }

    var size: Int64? {
        var status = stat()
        return fstat(fd, &status) == 0 ? Int64(status.st_size) : nil
    }

    /// Why a place is not one of this file; nil when it is.
    func rejects(_ position: FilePosition) -> String? {
        guard hasPlace else { return "\(path) is not a regular file" }
        guard position.device == identity.device, position.inode == identity.inode else {
            return "\(path) is another file than before"
        }
        guard let size, position.resume.offset >= 0, position.resume.offset <= size else {
            return "\(path) is shorter than before"
        }
        return nil
    }

    /// What the path names now; nil when there is nothing.
    static func at(_ path: String) -> (identity: Identity, size: Int64)? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return (Identity(status), Int64(status.st_size))
    }

    /// Bytes that are there now: 0 = end, nil = none for now.
    ///
    /// Standard input is asked for readiness first instead of being made non-blocking, which would change it for every
    /// program that shares it.
    ///
    /// - Parameter offset: where in a named plain file; anything else is read on.
    func read(into buffer: UnsafeMutableBufferPointer<UInt8>, from offset: Int64) throws(SourceProblem) -> Int? {
        while true {
            if kind == .stream, !isNamed {
                var ready = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
                guard poll(&ready, 1, 0) == 1 else { return nil }
            }
            let count =
                hasPlace
                ? pread(fd, buffer.baseAddress, buffer.count, off_t(offset))
                : Glibc.read(fd, buffer.baseAddress, buffer.count)
            if count >= 0 { return count }
            switch errno {
            case EINTR: continue
            case EAGAIN: return nil
            case let code: throw SourceProblem("cannot read \(path == "-" ? "standard input" : path)", errno: code)
            }
        }
    }

    private static func openProblem(_ path: String, _ code: Int32) -> SourceProblem {
        let hint: String? =
            switch code {
            case ENOENT: "is the name right? Under systemd /home and /tmp of the host are hidden"
            case EACCES: "the user of this program may not read it"
            case ENXIO: "it is a socket; a source of type tcp or udp reads those"
            default: nil
            }
        return SourceProblem("cannot open \(path)", errno: code, hint: hint)
    }
}
