import Queue
import WaypostHost

/// Why the daemon cannot start, with the exit status that says so (sysexits.h).
package struct StartupError: Error, CustomStringConvertible {
    package let description: String
    package let exitCode: Int32

    init(_ error: OutboxError) {
        description = error.description
        exitCode =
            switch error.cause {
            case .locked: 75  // EX_TEMPFAIL: the other instance may end
            case .full, .readOnly, .cannotOpen: 73  // EX_CANTCREAT
            case .io: 74  // EX_IOERR
            case .corrupt, .foreign, .otherSchema: 65  // EX_DATAERR
            case .refused: 70  // EX_SOFTWARE
            }
    }

    init(_ description: String, exitCode: Int32) {
        self.description = description
        self.exitCode = exitCode
    }

    init(_ error: SystemError) {
        description = error.description
        exitCode = 71  // EX_OSERR
    }
}
