/// The range of a value, both ends included.
struct Limits<Value: Comparable> {
    var lower: Value?
    var upper: Value?
    /// Whether `upper` is worth telling, or only there to keep arithmetic within bounds.
    private var tellsUpper = true

    static func atLeast(_ lower: Value) -> Limits { Limits(lower: lower, upper: nil) }
    static func between(_ lower: Value, _ upper: Value) -> Limits { Limits(lower: lower, upper: upper) }

    init(lower: Value?, upper: Value?) {
        self.lower = lower
        self.upper = upper
    }

    func capped(at cap: Value) -> Limits {
        guard upper == nil else { return self }
        var limits = self
        limits.upper = cap
        limits.tellsUpper = false
        return limits
    }

    func contains(_ value: Value) -> Bool {
        (lower.map { value >= $0 } ?? true) && (upper.map { value <= $0 } ?? true)
    }

    /// `a duration of 1s or more`. An end that is there for arithmetic alone is told only to those who pass it.
    func describe(_ what: String, found value: Value? = nil, _ render: (Value) -> String) -> String {
        let passed = value.map { !contains($0) && $0 > (lower ?? $0) } ?? false
        switch (lower, tellsUpper || passed ? upper : nil) {
        case (let low?, let high?): return "\(what) from \(render(low)) to \(render(high))"
        case (let low?, nil): return "\(what) of \(render(low)) or more"
        case (nil, let high?): return "\(what) of at most \(render(high))"
        case (nil, nil): return what
        }
    }
}
