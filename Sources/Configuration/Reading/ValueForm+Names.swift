extension ValueForm where Value == [String] {
    /// An array of names of the kernel: visible ASCII without a slash.
    ///
    /// - Parameters:
    ///   - each: what one of them is, for "expected …".
    ///   - bytesMax: the longest name.
    static func names(_ expected: String, each: String, bytesMax: Int) -> ValueForm {
        ValueForm(
            expected: expected,
            read: { node, _ throws(Mistake) in
                try node.elements { element throws(Mistake) in
                    guard case .string(let name) = element.value, (1...bytesMax).contains(name.utf8.count),
                        name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
                    else { throw Mistake(found: element.description, expected: each) }
                    return name
                }
            },
            render: \.asTOML)
    }
}
