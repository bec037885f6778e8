import WaypostCore

/// Reads values of the tree of a profile, and collects everything that is wrong with it.
final class ProfileReader {
    private(set) var problems: [ProfileProblem] = []
    /// Who sees these sees what is wrong; a suggestion takes time.
    private static let problemsMax = 100

    private var isFull: Bool { problems.count > Self.problemsMax }

    func report(
        _ keyPath: String, _ message: String, suggestion: @autoclosure () -> String? = nil, at position: SourcePosition?
    ) {
        if isFull { return }
        report(ProfileProblem(keyPath, message, suggestion: suggestion(), at: position))
    }

    func report(_ problem: ProfileProblem) {
        if isFull { return }
        problems.append(problem)
        guard problems.count == Self.problemsMax else { return }
        let words = "found more problems than are listed here, expected none"
        problems.append(ProfileProblem(problem.keyPath, words, at: problem.position))
    }

    /// - Returns: nil when a problem was thrown, which is then reported, and where there are too many already.
    func attempt<Value>(_ body: () throws(ProfileProblem) -> Value) -> Value? {
        if isFull { return nil }
        do throws(ProfileProblem) { return try body() } catch {
            report(error)
            return nil
        }
    }

    func report(_ node: ProfileNode, _ keyPath: String, expected: String, suggestion: @autoclosure () -> String? = nil)
    {
        report(keyPath, "found \(node.found), expected \(expected)", suggestion: suggestion(), at: node.position)
    }

    func checkKeys(
        _ members: [ProfileNode.Member], _ known: [String], in path: String = ""
    ) {
        for member in members where !known.contains(member.name) {
            let keyPath = path.isEmpty ? member.name : "\(path).\(member.name)"
            report(
                keyPath, "found the unknown key \(member.name), expected one of \(known.joined(separator: ", "))",
                suggestion: nearest(member.name, in: known), at: member.position ?? member.node.position)
        }
    }

    /// The members of a table; nil when there is none or when it is something else.
    func table(_ node: ProfileNode?, _ keyPath: String, expected: String = "a table") -> [ProfileNode.Member]? {
        guard let node else { return nil }
        if case .table(let members) = node.value { return members }
        report(node, keyPath, expected: expected)
        return nil
    }

    func string(_ node: ProfileNode?, _ keyPath: String, expected: String = "a string") -> String? {
        guard let node else { return nil }
        if case .string(let text) = node.value { return text }
        report(node, keyPath, expected: expected)
        return nil
    }

    /// A list of strings.
    func strings(_ node: ProfileNode?, _ keyPath: String, expected: String) -> [(ProfileNode, String)]? {
        guard let node else { return nil }
        guard case .array(let items) = node.value else {
            report(node, keyPath, expected: expected)
            return nil
        }
        var list: [(ProfileNode, String)] = []
        for (index, item) in items.enumerated() {
            if let text = string(item, "\(keyPath)[\(index)]") { list.append((item, text)) }
        }
        return list
    }

    func flag(_ tree: ProfileNode, _ key: String, in path: String = "") -> Bool? {
        guard let member = tree.member(key) else { return nil }
        if case .boolean(let flag) = member.node.value { return flag }
        report(member.node, path + key, expected: "true or false")
        return nil
    }

    func integer(_ tree: ProfileNode, _ key: String, in range: ClosedRange<Int>, path: String = "") -> Int? {
        guard let member = tree.member(key) else { return nil }
        if case .integer(let number) = member.node.value, let number = Int(exactly: number), range.contains(number) {
            return number
        }
        report(member.node, path + key, expected: "an integer, \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    /// A word out of a list.
    func word<Word: CaseIterable & RawRepresentable>(_ node: ProfileNode, _ keyPath: String) -> Word?
    where Word.RawValue == String {
        let words = Word.allCases.map(\.rawValue)
        let expected = "one of " + words.map { "\"\($0)\"" }.joined(separator: ", ")
        guard let text = string(node, keyPath, expected: expected) else { return nil }
        if let word = Word(rawValue: text) { return word }
        report(node, keyPath, expected: expected, suggestion: nearest(text, in: words).map { "\"\($0)\"" })
        return nil
    }

    func number(_ node: ProfileNode?, _ keyPath: String) -> Double? {
        switch node?.value {
        case .integer(let number)?: return Double(number)
        case .float(let number)? where number.isFinite: return number
        case nil: return nil
        default:
            if let node { report(node, keyPath, expected: "a number") }
            return nil
        }
    }
}
