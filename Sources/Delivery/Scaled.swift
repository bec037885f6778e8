/// Numbers as integers of their last decimal place: how they stand in the queue and how they are rendered.
public enum Scaled {
    static let powersOfTen: [UInt64] = (0...18).map { (0..<$0).reduce(UInt64(1)) { power, _ in power * 10 } }
    private static let factors: [Double] = powersOfTen.map { Double($0) }

    /// 10^`places`.
    static func power(_ places: Int) -> UInt64 { powersOfTen[min(18, max(0, places))] }

    /// `value` · 10^`places`, rounded half away from zero; nil when not finite or beyond ±9·10^15.
    ///
    /// - Parameter places: 0…18.
    public static func integer(_ value: Double?, places: Int) -> Int64? {
        guard let value else { return nil }
        let product = (value * factors[places]).rounded()
        guard product.magnitude <= 9e15 else { return nil }
        return Int64(product)
    }

    /// Metres per second in cm/s.
    public static func speed(_ value: Double?) -> Int64? { integer(value, places: 2) }
    /// Metres of altitude in cm.
    public static func altitude(_ value: Double?) -> Int64? { integer(value, places: 2) }
    /// Metres of odometer in dm.
    public static func odometer(_ value: Double?) -> Int64? { integer(value, places: 1) }
    public static func hdop(_ value: Double?) -> Int64? { integer(value, places: 2) }

    /// Metres of horizontal accuracy in dm, at least 1: an accuracy is never 0. Zero and less are unknown.
    public static func accuracy(_ value: Double?) -> Int64? {
        guard let value, value > 0, let scaled = integer(value, places: 1) else { return nil }
        return max(1, scaled)
    }

    /// Degrees of course in 0.1°, 0…3599: what would round up to 360.0 is 0.0.
    public static func course(_ value: Double?) -> Int64? {
        guard let scaled = integer(value, places: 1), (0...3600).contains(scaled) else { return nil }
        return scaled == 3600 ? 0 : scaled
    }
}
