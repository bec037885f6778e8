/// Zeros in front; for values that are not negative.
func padded(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}

/// A decimal number with exactly `decimals` digits after the point (at least one); never "-0.0".
func fixed(_ value: Double, _ decimals: Int) -> String {
    var scale = 1
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int((value * Double(scale)).rounded())
    let (whole, fraction) = abs(scaled).quotientAndRemainder(dividingBy: scale)
    return "\(scaled < 0 ? "-" : "")\(whole).\(padded(fraction, decimals))"
}
