/// The range of a value, both ends included.
struct Limits<Value: Comparable> {
    var lower: Value?
    var upper: Value?
    /// false where `upper` only keeps arithmetic within bounds.
    private var showsUpper = true

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
        limits.showsUpper = false
        return limits
    }

    func contains(_ value: Value) -> Bool {
        (lower.map { value >= $0 } ?? true) && (upper.map { value <= $0 } ?? true)
    }

    /// `a duration of 1s or more`. A limit that only protects arithmetic is named only when exceeded.
    func describe(_ what: String, found value: Value? = nil, _ render: (Value) -> String) -> String {
        let passed = value.map { !contains($0) && $0 > (lower ?? $0) } ?? false
        switch (lower, showsUpper || passed ? upper : nil) {
        case (let low?, let high?): return "\(what) from \(render(low)) to \(render(high))"
        case (let low?, nil): return "\(what) of \(render(low)) or more"
        case (nil, let high?): return "\(what) of at most \(render(high))"
        case (nil, nil): return what
        }
    }
}
