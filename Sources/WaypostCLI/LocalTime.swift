import Glibc
import WaypostCore

/// Times for people: of the zone of whoever reads them, with its offset.
enum LocalTime {
    /// `2026-03-02 08:12 +01:00`
    static func words(_ time: UTCTime) -> String { words(time, withSeconds: false) }

    /// `2026-03-02 08:12:04 +01:00`
    static func stamp(_ time: UTCTime) -> String { words(time, withSeconds: true) }

    /// Seconds east of UTC.
    static func offset(at time: UTCTime) -> Int {
        var seconds = time_t(time.milliseconds / 1000)
        var parts = tm()
        return localtime_r(&seconds, &parts) == nil ? 0 : Int(parts.tm_gmtoff)
    }

    /// `+01:00`
    static func zone(offset seconds: Int) -> String {
        let minutes = abs(seconds) / 60
        return "\(seconds < 0 ? "-" : "+")\(padded(minutes / 60)):\(padded(minutes % 60))"
    }

    private static func padded(_ number: Int, _ width: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func words(_ time: UTCTime, withSeconds: Bool) -> String {
        var seconds = time_t(time.milliseconds / 1000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return time.iso8601 }
        let date =
            "\(padded(Int(parts.tm_year) + 1900, 4))-\(padded(Int(parts.tm_mon) + 1))-\(padded(Int(parts.tm_mday)))"
        let clock = "\(padded(Int(parts.tm_hour))):\(padded(Int(parts.tm_min)))"
        let rest = withSeconds ? ":\(padded(Int(parts.tm_sec)))" : ""
        return "\(date) \(clock)\(rest) \(zone(offset: Int(parts.tm_gmtoff)))"
    }
}
