import WaypostCore

/// Receptions → sentences, in the manner of a u-blox receiver.
package struct NMEAWriter: Sendable {
    package struct Sentences: OptionSet, Hashable, Sendable {
        package let rawValue: Int
        package init(rawValue: Int) { self.rawValue = rawValue }

        package static let rmc = Sentences(rawValue: 1)
        package static let gga = Sentences(rawValue: 2)
        package static let gsa = Sentences(rawValue: 4)
        package static let gst = Sentences(rawValue: 8)
        /// RMC, GGA, GSA.
        package static let standard: Sentences = [.rmc, .gga, .gsa]
    }

    package let sentences: Sentences
    /// Metres of the geoid above the ellipsoid.
    private static let geoidSeparation = 39.6

    package init(sentences: Sentences) { self.sentences = sentences }

    /// The sentences of one measurement instant; empty when the receiver is off.
    package func epoch(_ reception: Reception, at time: UTCTime, on plane: LocalPlane) -> [UInt8] {
        switch reception {
        case .silent: []
        case .void(let knowsTime): void(knowsTime ? time : nil)
        case .fix(let fix): solution(fix, at: time, coordinate: plane.coordinate(fix.place))
        }
    }

    private func solution(_ fix: NoisyFix, at time: UTCTime, coordinate: Coordinate) -> [UInt8] {
        let clock = Self.clock(time)
        let position = Self.position(coordinate)
        let hdop = fixed(min(fix.hdop, 99.99), 2)
        var lines = Lines()
        if sentences.contains(.rmc) {
            let knots = fixed(fix.speed * 3600 / 1852, 3)
            let course = fixed(fix.course >= 359.995 ? 0 : fix.course, 2)
            lines.add("GNRMC,\(clock),A,\(position),\(knots),\(course),\(Self.date(time)),,,A")
        }
        if sentences.contains(.gga) {
            let satellites = padded(fix.satellites, 2)
            let altitude = fixed(fix.altitude, 1)
            lines.add(
                "GNGGA,\(clock),\(position),1,\(satellites),\(hdop),\(altitude),M,\(fixed(Self.geoidSeparation, 1)),M,,"
            )
        }
        if sentences.contains(.gsa) {
            let used = (0..<12).map { $0 < fix.satellites ? padded(2 + $0 * 5 % 31, 2) : "" }.joined(separator: ",")
            let pdop = fixed(min(fix.hdop * 1.8, 99.99), 2)
            let vdop = fixed(min(fix.hdop * 1.5, 99.99), 2)
            lines.add("GNGSA,A,3,\(used),\(pdop),\(hdop),\(vdop)")
        }
        if sentences.contains(.gst) {
            let sigma = fixed(fix.sigma, 2)
            lines.add("GNGST,\(clock),\(fixed(fix.sigma * 3, 1)),,,,\(sigma),\(sigma),\(fixed(fix.sigma * 1.7, 2))")
        }
        return lines.bytes
    }

    private func void(_ time: UTCTime?) -> [UInt8] {
        let clock = time.map(Self.clock) ?? ""
        var lines = Lines()
        if sentences.contains(.rmc) { lines.add("GNRMC,\(clock),V,,,,,,,\(time.map(Self.date) ?? ""),,,N") }
        if sentences.contains(.gga) { lines.add("GNGGA,\(clock),,,,,0,00,99.99,,,,,,") }
        if sentences.contains(.gsa) { lines.add("GNGSA,A,1,,,,,,,,,,,,,99.99,99.99,99.99") }
        if sentences.contains(.gst) { lines.add("GNGST,\(clock),,,,,,,") }
        return lines.bytes
    }

    /// `hhmmss.ss`.
    private static func clock(_ time: UTCTime) -> String {
        let (seconds, milliseconds) = time.timeOfDay.quotientAndRemainder(dividingBy: 1000)
        return padded(seconds / 3600, 2) + padded(seconds / 60 % 60, 2) + padded(seconds % 60, 2) + "."
            + padded(milliseconds / 10, 2)
    }

    /// `ddmmyy`.
    private static func date(_ time: UTCTime) -> String {
        let date = CivilDate(daysSince1970: time.daysSince1970)
        return padded(date.day, 2) + padded(date.month, 2) + padded(date.year % 100, 2)
    }

    /// `ddmm.mmmmm,N,dddmm.mmmmm,E`.
    private static func position(_ coordinate: Coordinate) -> String {
        let latitude = angle(coordinate.latitudeE7, degreeDigits: 2)
        let longitude = angle(coordinate.longitudeE7, degreeDigits: 3)
        return "\(latitude),\(coordinate.latitudeE7 < 0 ? "S" : "N"),"
            + "\(longitude),\(coordinate.longitudeE7 < 0 ? "W" : "E")"
    }

    /// Integers all the way, so that minutes never round up to 60.00000.
    private static func angle(_ valueE7: Int32, degreeDigits: Int) -> String {
        let minutesE5 = (Int64(valueE7.magnitude) * 60 + 50) / 100
        let (degrees, rest) = minutesE5.quotientAndRemainder(dividingBy: 6_000_000)
        return padded(Int(degrees), degreeDigits) + padded(Int(rest) / 100_000, 2) + "."
            + padded(Int(rest) % 100_000, 5)
    }
}

/// Sentences with their checksum and CR LF.
private struct Lines {
    var bytes: [UInt8] = []

    mutating func add(_ body: String) {
        bytes.append(UInt8(ascii: "$"))
        let start = bytes.count
        bytes += body.utf8
        let checksum = bytes[start...].reduce(0, ^)
        bytes.append(UInt8(ascii: "*"))
        bytes += [hexDigit(checksum >> 4), hexDigit(checksum & 15), 13, 10]
    }

    private func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
