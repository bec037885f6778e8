import WaypostCore

/// Numbers for people, in few columns. They come from another process: none is trusted to be finite or small.
enum TopFigures {
    /// With this many decimals; `?` where it is no number.
    static func fixed(_ value: Double, _ places: Int) -> String {
        guard value.isFinite, abs(value) < 1e12, let scaled = Scaled.integer(value, places: places) else { return "?" }
        guard places > 0 else { return String(scaled) }
        let unit = (0..<places).reduce(Int64(1)) { product, _ in product * 10 }
        return (scaled < 0 ? "-" : "") + "\(abs(scaled / unit)).\(padded(Int(abs(scaled % unit)), places))"
    }

    /// `8 s`, `12 min`, `3 h 05`, `9 d`
    static func span(_ seconds: Double) -> String {
        let seconds = seconds.isFinite ? Int(min(max(0, seconds), 1e11)) : 0
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3600: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h \(padded(seconds / 60 % 60, 2))"
        default: return "\(seconds / 86_400) d"
        }
    }

    /// Until something happens: a minute that has begun counts.
    static func wait(_ seconds: Double) -> String { span(seconds < 60 ? seconds.rounded(.up) : seconds + 59) }

    static func metres(_ value: Double) -> String { "\(fixed(value, abs(value) < 10 ? 1 : 0)) m" }

    static func distance(_ metres: Double) -> String {
        metres < 1000 ? "\(fixed(metres, 0)) m" : "\(fixed(metres / 1000, 1)) km"
    }

    static func speed(_ metresPerSecond: Double, in units: DisplayUnits) -> String {
        let speed = units.speed(metresPerSecond)
        return "\(fixed(speed, speed < 9.95 ? 1 : 0)) \(units.rawValue)"
    }

    static func bytes(_ count: Int64) -> String {
        count < 1_000_000 ? "\(fixed(Double(count) / 1000, 0)) kB" : "\(fixed(Double(count) / 1e6, 1)) MB"
    }

    /// `13:51:20` of an ISO 8601 time.
    static func clock(_ iso8601: String) -> String { String(iso8601.dropFirst(11).prefix(8)) }

    static func clock(_ time: UTCTime) -> String { clock(time.iso8601) }

    /// A line of bars, one for each value; nil is a blank.
    static func sparkline(_ values: some Collection<Double?>, top: Double) -> String {
        let bars: [Character] = Array("▁▂▃▄▅▆▇█")
        let highest = Double(bars.count - 1)
        let characters = values.map { value -> Character in
            guard let value, value.isFinite else { return " " }
            let part: Double = min(max(0, value / max(top, 1e-9)), 1)
            return bars[Int(part * highest + 0.5)]
        }
        return String(characters)
    }

    /// A bar that is filled to this part, 0 to 1.
    static func bar(_ part: Double, width: Int) -> String {
        let filled = part.isFinite ? Int(min(max(0, part), 1) * Double(width) + 0.5) : 0
        return String(repeating: "━", count: filled) + String(repeating: "─", count: max(0, width - filled))
    }
}
