import Profiles

extension EndpointSettings {
    /// `metered_interfaces` and `metered`: what the way out may cost.
    mutating func readMetered(_ table: TableReader) {
        table.read("metered_interfaces", into: &meteredInterfaces, as: .interfacePatterns)
        table.read("metered", into: &metered, as: .word(Metered.allCases.map { ($0.rawValue, $0) }))
    }
}

extension ValueForm where Value == [String] {
    fileprivate static var interfacePatterns: ValueForm {
        // IFNAMSIZ of the kernel is 16 with the final zero, and a pattern may add a star.
        names(
            "an array of interface names such as [\"wwan*\"]",
            each: "the name of an interface, in which * matches anything", bytesMax: 32)
    }
}
