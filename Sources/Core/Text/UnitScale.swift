/// A physical quantity as the file writes it: a number with one of the units, or a bare number in the SI unit.
package struct UnitScale: Sendable {
    package struct Unit: Sendable {
        var symbol: String
        /// SI units in one of these.
        var factor: Double
    }

    /// With article: `a duration`.
    package var name: String
    var example: String
    /// From small to large.
    var units: [Unit]
    /// What else people write, and what it should be.
    var slips: [String: String] = [:]
    /// Units that are not read: how much of which of ours one of them is.
    var foreign: [String: (factor: Double, unit: String)] = [:]
    /// Whether several numbers may follow one another, from large to small: `1h30m`.
    var compound = false
    /// The unit of a bare number.
    var base: String

    package enum Reading: Equatable {
        /// In the SI unit.
        case value(Double)
        case notANumber
        case unitMissing
        /// `suggestion`: the same text with the unit that was probably meant.
        case unitUnknown(suggestion: String?)
    }

    package func read(_ text: String) -> Reading {
        let text = text.trimmingSpaces
        var rest = Substring(text)
        var sum = 0.0
        var previous = Double.infinity
        repeat {
            let digits = rest.prefix { $0.isASCII && ($0.isNumber || $0 == "." || $0 == "-") }
            guard let number = Double(digits), number.isFinite else { return .notANumber }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let symbol = compound ? rest.prefix { !$0.isNumber && $0 != " " } : rest
            if symbol.isEmpty { return .unitMissing }
            guard let unit = units.first(where: { $0.symbol == symbol }) else {
                let small = symbol.lowercased()
                if let (factor, unit) = foreign[small] {
                    let converted = number * factor
                    let rounded = converted < 10 ? (converted * 100).rounded() / 100 : (converted * 10).rounded() / 10
                    return .unitUnknown(suggestion: rounded.decimal + unit)
                }
                let meant = slips[small] ?? units.first { $0.symbol.lowercased() == small }?.symbol
                return .unitUnknown(
                    suggestion: meant.map { String(text[..<symbol.startIndex]) + $0 + text[symbol.endIndex...] })
            }
            guard unit.factor < previous else { return .notANumber }
            previous = unit.factor
            sum += number * unit.factor
            rest = rest.dropFirst(symbol.count).drop { $0 == " " }
        } while !rest.isEmpty
        return .value(sum)
    }

    /// `a duration such as "5m" (units ms, s, m, h, d)`
    package var expectation: String {
        "\(name) such as \"\(example)\" (units \(units.map(\.symbol).joined(separator: ", ")); a bare number is \(base))"
    }

    /// In the largest unit that leaves at most three decimals; the SI unit wins over smaller ones.
    package func render(_ value: Double) -> String {
        if compound, value > 0 { return renderCompound(value) }
        for unit in units.reversed() where value >= unit.factor || unit.factor == 1 {
            let number = value / unit.factor
            if (number * 1000).rounded() / 1000 == number { return number.decimal + unit.symbol }
        }
        return value.decimal + (units.first { $0.factor == 1 }?.symbol ?? "")
    }

    private func renderCompound(_ value: Double) -> String {
        var rest = (value / units[0].factor).rounded()
        var text = ""
        for unit in units.reversed() {
            let size = (unit.factor / units[0].factor).rounded()
            let whole = (rest / size).rounded(.down)
            if whole > 0 { text += whole.plain + unit.symbol }
            rest -= whole * size
        }
        return text.isEmpty ? "0" + units[0].symbol : text
    }
}

extension UnitScale {
    package static let duration = UnitScale(
        name: "a duration", example: "5m",
        units: [
            Unit(symbol: "ms", factor: 0.001), Unit(symbol: "s", factor: 1), Unit(symbol: "m", factor: 60),
            Unit(symbol: "h", factor: 3600), Unit(symbol: "d", factor: 86_400),
        ],
        slips: [
            "sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m",
            "minutes": "m", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "day": "d", "days": "d", "msec": "ms",
        ],
        compound: true, base: "seconds")

    package static let distance = UnitScale(
        name: "a distance", example: "50m",
        units: [Unit(symbol: "m", factor: 1), Unit(symbol: "km", factor: 1000)],
        slips: ["meter": "m", "meters": "m", "metre": "m", "metres": "m"],
        foreign: [
            "ft": (0.3048, "m"), "feet": (0.3048, "m"), "foot": (0.3048, "m"), "'": (0.3048, "m"), "yd": (0.9144, "m"),
            "yards": (0.9144, "m"), "mi": (1.609344, "km"), "mile": (1.609344, "km"), "miles": (1.609344, "km"),
            "nmi": (1.852, "km"),
        ], base: "metres")

    package static let speed = UnitScale(
        name: "a speed", example: "10km/h",
        units: [
            Unit(symbol: "km/h", factor: 1000.0 / 3600), Unit(symbol: "kn", factor: 1852.0 / 3600),
            Unit(symbol: "m/s", factor: 1),
        ],
        slips: ["kmh": "km/h", "kph": "km/h", "kmph": "km/h", "kt": "kn", "kts": "kn", "knots": "kn", "mps": "m/s"],
        foreign: [
            "mph": (1.609344, "km/h"), "mi/h": (1.609344, "km/h"), "miles/h": (1.609344, "km/h"),
            "ft/s": (0.3048, "m/s"),
            "fps": (0.3048, "m/s"),
        ], base: "m/s")

    package static let angle = UnitScale(
        name: "an angle", example: "20deg", units: [Unit(symbol: "deg", factor: 1)],
        slips: ["°": "deg", "degree": "deg", "degrees": "deg"], base: "degrees")

    package static let size = UnitScale(
        name: "a size", example: "256MiB",
        units: [
            Unit(symbol: "B", factor: 1), Unit(symbol: "kB", factor: 1e3), Unit(symbol: "KiB", factor: 1024),
            Unit(symbol: "MB", factor: 1e6), Unit(symbol: "MiB", factor: 1_048_576), Unit(symbol: "GB", factor: 1e9),
            Unit(symbol: "GiB", factor: 1_073_741_824),
        ],
        slips: ["k": "KiB", "m": "MiB", "g": "GiB"], base: "bytes")
}

extension Double {
    /// Without an exponent or a needless fraction.
    package var plain: String {
        self == rounded() && abs(self) < 1e15 ? String(Int64(self)) : String(self)
    }

    /// The same without an exponent, which a number before a unit does not have: of those below 1e15.
    package var decimal: String {
        let parts = plain.split(separator: "e-")
        guard parts.count == 2, let exponent = Int(parts[1]), exponent > 0 else { return plain }
        let digits = parts[0].filter { $0 != "." && $0 != "-" }
        return (self < 0 ? "-0." : "0.") + String(repeating: "0", count: exponent - 1)
            + (parts[0].hasSuffix(".0") ? digits.dropLast() : digits[...])
    }
}
