import Delivery

extension EndpointSettings {
    /// `metered_interfaces` and `metered`: what the way out may cost.
    mutating func readMetered(_ table: TableReader) {
        table.read("metered_interfaces", into: &meteredInterfaces, as: .interfacePatterns)
        table.read("metered", into: &metered, as: .word(Metered.allCases.map { ($0.rawValue, $0) }))
    }
}

extension ValueForm where Value == [String] {
    fileprivate static var interfacePatterns: ValueForm {
        ValueForm(
            expected: "an array of interface names such as [\"wwan*\"]",
            read: { node, _ in
                guard case .array(let elements) = node.value else { return .mistake(Mistake()) }
                var names: [String] = []
                for element in elements {
                    // IFNAMSIZ of the kernel is 16 with the final zero, and a star may stand beside all of them.
                    guard case .string(let name) = element.value, (1...32).contains(name.utf8.count),
                        name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
                    else {
                        return .mistake(
                            Mistake(
                                found: element.description,
                                expected: "the name of an interface, in which * stands for anything",
                                position: element.position))
                    }
                    names.append(name)
                }
                return .value(names)
            },
            render: { "[\($0.map(\.asTOML).joined(separator: ", "))]" })
    }
}
