import WaypostCore

/// A decimal number with exactly `decimals` digits after the point (at least one); never "-0.0".
func fixed(_ value: Double, _ decimals: Int) -> String {
    var scale = 1
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int((value * Double(scale)).rounded())
    let (whole, fraction) = abs(scaled).quotientAndRemainder(dividingBy: scale)
    return "\(scaled < 0 ? "-" : "")\(whole).\(padded(fraction, decimals))"
}
