import Profiles
import WaypostCore

/// How a key is written: what is accepted, how it is described when something else is found, how it is shown.
struct ValueForm<Value> {
    /// With article, for "expected …".
    var expected: String
    var read: (TOMLNode, ConfigurationEnvironment) throws(Mistake) -> Value
    /// As TOML.
    var render: (Value) -> String
    /// What is found is never repeated in a message.
    var isSecret = false
    /// The same as `expected` with limits instead of units; nil = the same.
    var accepted: String?
    /// Why a value that is accepted may mean something else; nil = there is no doubt.
    var doubt: (TOMLNode) -> String? = { _ in nil }
}

/// What is wrong with a value.
package struct Mistake: Error {
    /// Instead of the written value.
    var found: String?
    /// Instead of what the form expects.
    var expected: String?
    /// For "did you mean …?".
    var suggestion: String?
    /// Inside the value, where that is a table or an array.
    var position: SourcePosition?
    /// Key inside the value.
    var subkey: String?
    /// As in `ConfigurationProblem`.
    var dependsOnReader = false
}

extension ValueForm {
    func map<Other>(to: @escaping (Value) -> Other, from: @escaping (Other) -> Value) -> ValueForm<Other> {
        ValueForm<Other>(
            expected: expected,
            read: { node, environment throws(Mistake) in to(try read(node, environment)) },
            render: { render(from($0)) }, isSecret: isSecret, accepted: accepted, doubt: doubt)
    }

    /// The same, where a word means "none".
    func orNone(_ word: String) -> ValueForm<Value?> {
        ValueForm<Value?>(
            expected: "\(expected), or \"\(word)\"",
            read: { node, environment throws(Mistake) in
                if case .string(word) = node.value { return nil }
                do throws(Mistake) {
                    return try read(node, environment)
                } catch {
                    var mistake = error
                    mistake.expected = mistake.expected.map { "\($0), or \"\(word)\"" }
                    throw mistake
                }
            },
            render: { $0.map(render) ?? "\"\(word)\"" }, isSecret: isSecret,
            accepted: accepted.map { "\($0), or \"\(word)\"" }, doubt: doubt)
    }
}

extension ValueForm where Value == String {
    /// Any text but an empty one; `${…}` is replaced.
    static func text(_ expected: String = "a text in quotes") -> ValueForm {
        ValueForm(
            expected: expected,
            read: { node, environment throws(Mistake) in
                let text = try node.text(environment)
                if text.isEmpty { throw Mistake(found: "an empty text") }
                return try withoutControlCharacters(text)
            },
            // Each "$" twice, so that the text is not read as something to replace.
            render: { $0.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "$$").asTOML })
    }

    /// A text that a test accepts.
    /// - Parameter mistake: what is wrong with a text; nil = nothing.
    static func text(_ expected: String, _ mistake: @escaping (String) -> Mistake?) -> ValueForm {
        text(expected).checked(mistake)
    }

    func checked(_ mistake: @escaping (String) -> Mistake?) -> ValueForm {
        var form = self
        form.read = { node, environment throws(Mistake) in
            let text = try read(node, environment)
            if let mistake = mistake(text) { throw mistake }
            return text
        }
        return form
    }

    static func withoutControlCharacters(_ text: String) throws(Mistake) -> String {
        if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            throw Mistake(found: "a text with control characters")
        }
        return text
    }
}

extension ValueForm where Value == Bool {
    static var flag: ValueForm {
        ValueForm(
            expected: "true or false",
            read: { node, _ throws(Mistake) in
                guard case .boolean(let flag) = node.value else { throw Mistake() }
                return flag
            },
            render: { $0 ? "true" : "false" })
    }
}

extension ValueForm where Value == Int {
    static func integer(_ limits: Limits<Int>) -> ValueForm { integer("a whole number", limits) }

    static func integer(_ what: String, _ limits: Limits<Int>) -> ValueForm {
        ValueForm(
            expected: limits.describe(what) { String($0) },
            read: { node, _ throws(Mistake) in
                guard case .integer(let wide) = node.value, let value = Int(exactly: wide), limits.contains(value)
                else { throw Mistake() }
                return value
            },
            render: { String($0) })
    }
}

extension ValueForm where Value == Double {
    static func number(_ what: String, _ limits: Limits<Double>) -> ValueForm {
        ValueForm(
            expected: limits.describe(what) { $0.plain },
            read: { node, _ throws(Mistake) in
                guard let value = node.finiteNumber, limits.contains(value) else { throw Mistake() }
                return value
            },
            render: { $0.plain })
    }

    static func quantity(_ scale: UnitScale, _ limits: Limits<Double>) -> ValueForm {
        ValueForm(
            expected: scale.expectation,
            read: { node, environment throws(Mistake) in
                let value: Double
                if let bare = node.finiteNumber {
                    value = bare
                } else {
                    let text = try node.text(environment)
                    switch scale.read(text) {
                    case .value(let read): value = read
                    case .notANumber: throw Mistake()
                    case .unitMissing: throw Mistake(found: "\(text.asTOML) without a unit")
                    case .unitUnknown(let suggestion): throw Mistake(suggestion: suggestion?.asTOML)
                    }
                }
                if limits.contains(value) { return value }
                throw Mistake(expected: limits.describe(scale.name, found: value, scale.render))
            },
            render: { scale.render($0).asTOML }, accepted: limits.describe(scale.name, scale.render))
    }

    static func distance(_ limits: Limits<Double> = .atLeast(0)) -> ValueForm {
        quantity(.distance, limits.capped(at: 1e8))
    }
    static func speed(_ limits: Limits<Double> = .atLeast(0)) -> ValueForm { quantity(.speed, limits.capped(at: 1e6)) }
    static func angle(_ limits: Limits<Double> = .between(0, 180)) -> ValueForm { quantity(.angle, limits) }
    static var percent: ValueForm { number("a percentage", .between(0, 100)) }
}

extension ValueForm where Value == Duration {
    /// To the millisecond and up to a hundred years, so that no sum of times overflows.
    static func duration(_ limits: Limits<Double> = .atLeast(0)) -> ValueForm {
        var form = ValueForm<Double>.quantity(.duration, limits.capped(at: 100 * 365.25 * 86_400))
        form.doubt = \.doubtAboutMilliseconds
        return .seconds(form)
    }

    /// The bare number of a vendor, in the vendor's unit.
    static func bare(_ unit: String, seconds factor: Double, _ limits: Limits<Double> = .atLeast(0)) -> ValueForm {
        .seconds(
            ValueForm<Double>.number("a number of \(unit)", limits.capped(at: 1e9))
                .map(to: { $0 * factor }, from: { $0 / factor }))
    }

    private static func seconds(_ form: ValueForm<Double>) -> ValueForm {
        form.map(
            to: { .milliseconds(Int64(($0 * 1000).rounded())) }, from: { Double($0.milliseconds) / 1000 })
    }
}

extension ValueForm where Value == Int64 {
    /// Bytes.
    static func size(_ limits: Limits<Double> = .atLeast(0)) -> ValueForm {
        ValueForm<Double>.quantity(.size, limits.capped(at: 1e15))
            .map(to: { Int64($0.rounded()) }, from: { Double($0) })
    }
}

extension ValueForm {
    /// One of some words.
    static func word(_ words: [(String, Value)]) -> ValueForm where Value: Equatable {
        let quoted = words.map { $0.0.asTOML }
        let list =
            quoted.count < 2 ? quoted.joined() : quoted.dropLast().joined(separator: ", ") + " or " + quoted.last!
        return ValueForm(
            expected: list,
            read: { node, environment throws(Mistake) in
                let text = try node.text(environment)
                if let match = words.first(where: { $0.0 == text }) { return match.1 }
                throw Mistake(suggestion: nearest(text, in: words.map(\.0))?.asTOML)
            },
            render: { value in words.first { $0.1 == value }?.0.asTOML ?? "" })
    }
}

extension TOMLNode {
    /// With `${…}` replaced; a mistake unless it is a text.
    func text(_ environment: ConfigurationEnvironment) throws(Mistake) -> String {
        guard case .string(let raw) = value else { throw Mistake() }
        return try substituted(raw, environment).get()
    }

    /// Reads each element of an array that has as many as expected.
    func elements<Value>(
        _ count: ClosedRange<Int> = 0...Int.max, _ read: (TOMLNode) throws(Mistake) -> Value
    ) throws(Mistake) -> [Value] {
        guard case .array(let elements) = value, count.contains(elements.count) else { throw Mistake() }
        var values: [Value] = []
        for element in elements {
            do throws(Mistake) {
                values.append(try read(element))
            } catch {
                var mistake = error
                mistake.position = mistake.position ?? element.position
                throw mistake
            }
        }
        return values
    }

    var finiteNumber: Double? {
        switch value {
        case .integer(let value): Double(value)
        case .float(let value) where value.isFinite: value
        default: nil
        }
    }

    /// Of a bare number of seconds: as round as milliseconds are, and as odd as seconds rarely are (1000, 5000, 60000).
    fileprivate var doubtAboutMilliseconds: String? {
        guard let seconds = finiteNumber, seconds >= 1000, seconds.truncatingRemainder(dividingBy: 500) == 0,
            seconds.truncatingRemainder(dividingBy: 900) != 0
        else { return nil }
        let span = UnitScale.duration.render(seconds).asTOML
        return "found \(description), which is \(span): a bare number is seconds; write \(span), "
            + "or \"\(description)ms\" for milliseconds"
    }

    /// The written value, for "found …".
    var description: String {
        switch value {
        case .string(let text): text.asTOML.shortened
        case .integer(let value): String(value)
        case .float(let value): value.plain
        case .boolean(let value): value ? "true" : "false"
        case .datetime: "a date or time"
        case .array: "an array"
        case .table: "a table"
        }
    }

    /// The written value without revealing it.
    var kind: String {
        if case .string = value { "a literal" } else { description }
    }
}

extension [String] {
    var asTOML: String { "[\(map(\.asTOML).joined(separator: ", "))]" }
}

extension String {
    /// In quotes, as a basic string of TOML.
    var asTOML: String {
        var text = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\r": text += "\\r"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let hex = String(scalar.value, radix: 16, uppercase: true)
                text += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }

    /// Long texts do not drown the message.
    var shortened: String { utf8.count <= 60 ? self : cut(toBytes: 59) + "\"" }
}
