/// What a check came to.
package struct Finding: Hashable, Sendable {
    package enum State: String, CaseIterable, Sendable {
        /// It works, or does not apply to this host.
        case ok
        /// It works, but not as it should, or not for long.
        case degraded
        /// It keeps waypost from doing its work.
        case broken
        /// It cannot be known here: never taken for a no.
        case unknown
        /// Another check found what explains it.
        case skipped
    }

    package var state: State
    /// For people. It holds texts from outside as they are, and never a coordinate or a secret.
    package var found: String
    /// What helps: one command, or a line for a file. nil where there is nothing to do.
    package var advice: String?
    /// Number of the check that explains it; nil unless skipped.
    package var cause: Int?

    static func ok(_ found: String) -> Finding { Finding(state: .ok, found: found) }

    static func degraded(_ found: String, _ advice: String) -> Finding {
        Finding(state: .degraded, found: found, advice: advice)
    }

    static func broken(_ found: String, _ advice: String) -> Finding {
        Finding(state: .broken, found: found, advice: advice)
    }

    static func unknown(_ found: String, _ advice: String? = nil) -> Finding {
        Finding(state: .unknown, found: found, advice: advice)
    }

    static func skipped(because cause: Int) -> Finding {
        Finding(state: .skipped, found: "because of \(cause)", cause: cause)
    }
}
