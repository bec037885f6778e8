@testable import WaypostCore
@testable import WaypostTracking

/// libFuzzer entry: any bytes are a time zone file (or, where they do not begin as one, a rule by itself) or none. One that is
/// taken answers for every time with an offset that holds until the change that is told; and hours by it begin and end when
/// they are said to.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzZones(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    let isFile = bytes.starts(with: Array("TZif".utf8))
    guard
        let zone = isFile
            ? TimeZoneRules(tzif: bytes) : TimeZoneRules(posix: String(decoding: bytes, as: UTF8.self))
    else { return 0 }
    // From 1900 to 9999, and the ends of what can be asked.
    let years: [Int64] = [-2_208_988_800, 0, 951_782_400, 1_700_000_000, 4_102_444_800, 253_402_300_000]
    for start in years { walk(zone, from: start) }
    for time in [Int64.min, -1_000_000_000_000, 1_000_000_000_000, .max] { checkOffset(zone.offset(at: time).seconds) }
    for words in ["mon-fri 08:00-18:00", "sat-sun 22:00-02:30", "00:00-24:00"] {
        guard let hours = try? WeeklyHours(parsing: words) else { fatalError(words) }
        let timetable = Timetable(zone: zone)
        for start in years { walk(timetable, hours, from: UTCTime(milliseconds: start * 1000)) }
        for milliseconds in [Int64.min, .max] {
            _ = timetable.state(of: hours, at: UTCTime(milliseconds: milliseconds))
        }
    }
    return 0
}

private func checkOffset(_ seconds: Int64) { demand(abs(seconds) < 26 * 3600, "an offset of \(seconds) s") }

private func walk(_ zone: TimeZoneRules, from start: Int64) {
    var time = start
    for _ in 0..<12 {
        let (seconds, until) = zone.offset(at: time)
        checkOffset(seconds)
        let later = until ?? time + 300_000_000
        demand(later > time, "a change at \(later), asked at \(time)")
        for inBetween in [time + (later - time) / 2, later - 1] {
            let (same, next) = zone.offset(at: inBetween)
            demand(same == seconds, "\(seconds) at \(time) until \(later), but \(same) at \(inBetween)")
            demand(next == until, "changes at \(String(describing: until)), or \(String(describing: next))")
        }
        guard let until else { return }
        time = until
    }
}

private func walk(_ timetable: Timetable, _ hours: WeeklyHours, from start: UTCTime) {
    var time = start
    for _ in 0..<8 {
        let (isOpen, until) = timetable.state(of: hours, at: time)
        guard let until else { return }
        demand(until > time, "they change at \(until), asked at \(time)")
        let before = UTCTime(milliseconds: until.milliseconds - 1000)
        if before > time {
            demand(timetable.state(of: hours, at: before).isOpen == isOpen, "they changed before \(until)")
        }
        demand(timetable.state(of: hours, at: until).isOpen != isOpen, "they do not change at \(until)")
        time = until
    }
}
