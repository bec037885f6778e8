import WaypostCore

/// Which waypost this is.
package enum AgentVersion {
    /// As in `--version`, `User-Agent` and `status`.
    package static let current = "0.1.0"

    /// No receiver can truly report an earlier date: one that does has missed a rollover of the GPS week.
    package static let released = CivilDate(year: 2026, month: 11, day: 1)
}
