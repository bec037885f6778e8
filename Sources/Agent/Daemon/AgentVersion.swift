/// The version of waypost, as in `--version`, `User-Agent` and `status`.
public enum AgentVersion {
    public static let current = "0.1.0"
}
