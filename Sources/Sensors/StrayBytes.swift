import WaypostCore
import WaypostNMEA

/// Judges, minute by minute, how much of what arrives is part of no sentence.
struct StrayBytes {
    private static let window = Duration.seconds(60)
    /// Of the bytes of a window. Less is lost on any long cable.
    private static let share = 0.05
    /// Fewer say nothing.
    private static let bytesMin = 100

    /// Percent of the bytes of the last whole window; nil while that is little.
    private(set) var percent: Int?
    private var windowEnd: EventTime?
    private var base = NMEACounters()

    /// - Returns: whether a problem has begun.
    mutating func received(_ counters: NMEACounters, at now: EventTime) -> Bool {
        guard let windowEnd else {
            begin(counters, at: now)
            return false
        }
        guard now >= windowEnd else { return false }
        let (stray, all) = (counters.strayBytes - base.strayBytes, counters.bytes - base.bytes)
        let isMuch = stray >= Self.bytesMin && Double(stray) > Self.share * Double(all)
        let began = isMuch && percent == nil
        percent = isMuch ? min(100, (stray * 100 + all / 2) / all) : nil
        begin(counters, at: now)
        return began
    }

    private mutating func begin(_ counters: NMEACounters, at now: EventTime) {
        base = counters
        windowEnd = now + Self.window
    }

    /// - Parameter cause: of ``SourceKind``.
    func words(_ cause: String) -> String? { percent.map { "\($0) % of the bytes belong to no sentence: \(cause)" } }
}

/// What bytes that are no sentences come from, and what to do, for people.
package enum StrayCause {
    package static let serial =
        "another speed, noise, a second reader, or a binary protocol; try baud = \"auto\" and another cable, and let the "
        + "receiver send NMEA alone"

    /// Bytes of a serial line that are no NMEA.
    package static func unreadable(at speed: SerialSettings.Speed) -> String {
        switch speed {
        case .fixed(let speed):
            "the receiver sends data, but no NMEA: set baud = \"auto\" (now \(speed.baud)), or switch it from binary to NMEA"
        case .auto:
            "the receiver sends data, but no NMEA at any speed: switch it from binary to NMEA, and look for a second reader or "
                + "a bad cable"
        }
    }

    /// The same of any other source.
    package static func unreadable(_ cause: String) -> String { "data comes, but no NMEA: \(cause)" }

    package static let tcp =
        "the line behind the server has another speed or noise, or it sends a binary protocol; set its speed, and let the "
        + "receiver send NMEA alone"
    package static let udp =
        "datagrams are lost or overtaken, or carry a binary protocol; let the sender put whole sentences into each, and NMEA "
        + "alone"
    package static let file = "it is no log of NMEA, or was damaged; waypost decode shows what of it is not understood"
    package static let gpsd = "what answers there is not gpsd, or a proxy changes its lines; check host and port"
}
