/// Numbers as integers of their last decimal place: 271.0 with one place is 2710.
public enum Scaled {
    static let powersOfTen: [UInt64] = (0...18).map { (0..<$0).reduce(UInt64(1)) { power, _ in power * 10 } }
    private static let factors: [Double] = powersOfTen.map { Double($0) }

    /// 10^`places`.
    package static func power(_ places: Int) -> UInt64 { powersOfTen[min(18, max(0, places))] }

    /// `value` · 10^`places`, rounded half away from zero; nil when not finite or beyond ±9·10^15.
    ///
    /// - Parameter places: 0…18.
    public static func integer(_ value: Double?, places: Int) -> Int64? {
        guard let value else { return nil }
        let product = (value * factors[places]).rounded()
        guard product.magnitude <= 9e15 else { return nil }
        return Int64(product)
    }
}
