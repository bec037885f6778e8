/// A shell pattern in which `*` (any number of bytes) is the only special character.
package enum ShellPattern {
    /// Whether all of `name` fits.
    package static func matches(_ name: String, _ pattern: String) -> Bool {
        let (name, pattern) = (Array(name.utf8), Array(pattern.utf8))
        var (at, of) = (0, 0)
        // Where to go on when the guess about the last star was too short.
        var retry: (at: Int, of: Int)?
        while at < name.count {
            if of < pattern.count, pattern[of] == UInt8(ascii: "*") {
                retry = (at, of + 1)
                of += 1
            } else if of < pattern.count, pattern[of] == name[at] {
                at += 1
                of += 1
            } else if let (from, behind) = retry {
                retry = (from + 1, behind)
                at = from + 1
                of = behind
            } else {
                return false
            }
        }
        return pattern[of...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
