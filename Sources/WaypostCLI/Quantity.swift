import ArgumentParser
import WaypostCore

/// A number with a unit on the command line.
enum Quantity {
    /// A bare number has the base unit of the scale.
    static func read(_ text: String, _ scale: UnitScale, _ range: ClosedRange<Double>) throws -> Double {
        let value: Double
        switch scale.read(text) {
        case .value(let read): value = read
        case .unitMissing where Double(text) != nil: value = Double(text) ?? 0
        case .unitUnknown(let suggestion?):
            throw ValidationError("expected \(scale.expectation) (did you mean \(suggestion)?)")
        default:
            throw ValidationError("expected \(scale.expectation)")
        }
        guard range.contains(value) else {
            let least = range.lowerBound == 0 ? "0" : scale.render(range.lowerBound)
            throw ValidationError("expected \(scale.name) from \(least) to \(scale.render(range.upperBound))")
        }
        return value
    }
}
