import WaypostCore

/// Bounds that a value has to keep: of numbers, or of the length and the characters of a text.
struct LimitRule: Sendable {
    var min: Double?
    var max: Double?
    /// In characters (Unicode scalars).
    var minLength: Int?
    var maxLength: Int?
    var pattern: TextPattern?

    /// The bound that does not hold, as its key is called; nil = it is good.
    func broken(by value: RenderedValue) -> String? {
        switch value {
        case .int(let number): broken(by: Double(number))
        case .decimal(let scaled, let places): broken(by: Double(scaled) / Double(Scaled.power(places)))
        case .text(let text): broken(by: text)
        case .bool, .masked, .null: nil
        }
    }

    private func broken(by number: Double) -> String? {
        if let min, number < min { return "min" }
        if let max, number > max { return "max" }
        return nil
    }

    private func broken(by text: String) -> String? {
        let length = text.unicodeScalars.count
        if let minLength, length < minLength { return "min_len" }
        if let maxLength, length > maxLength { return "max_len" }
        if let pattern, !pattern.matches(text) { return "pattern" }
        return nil
    }
}
