import Positioning

/// Which waypost this is.
public enum AgentVersion {
    /// As in `--version`, `User-Agent` and `status`.
    public static let current = "0.1.0"

    /// No receiver can truly report an earlier date: one that does has missed a rollover of the GPS week.
    public static let released = CivilDate(year: 2026, month: 11, day: 1)
}
