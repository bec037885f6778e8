import Configuration
import Glibc
import WaypostCore
import WaypostHost

/// The user that the daemon runs as, whom root becomes for what the daemon would do.
enum ServiceUser {
    static let name = "waypost"
    private static let credentials = "/run/credentials/waypost.service"

    /// Root becomes the user for good; anybody else stays.
    /// - Throws: `ExitCode` where the rights cannot be put aside.
    static func assume() throws {
        guard geteuid() == 0, let entry = getpwnam(name) else { return }
        let (user, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
        guard initgroups(name, group) == 0, setgid(group) == 0, setuid(user) == 0 else {
            throw fail(SystemError("become user \(name)"))
        }
    }

    /// The variables of this process, with what systemd has given to the unit as far as that is there.
    static var environment: [String: String] {
        ProcessEnvironment.variables.merging(["CREDENTIALS_DIRECTORY": credentials]) { own, _ in own }
    }
}
