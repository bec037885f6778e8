import WaypostCore

/// A small kind of regular expression that has to match a whole text: characters, `.`, `\d \w \s`, `\p{L} \p{N}`, classes
/// `[…]` and `[^…]`, each with `?`, `*`, `+`, `{n}`, `{n,}` or `{n,m}`.
///
/// It has neither groups nor alternatives, so that matching takes no more than a pass over the text for each atom.
struct TextPattern: Hashable, Sendable {
    fileprivate enum Class: Hashable, Sendable {
        case any, digit, word, space, letter, number
        case range(UInt32, UInt32)
    }

    fileprivate struct Atom: Hashable, Sendable {
        var classes: [Class]
        var isNegated = false
        var least = 1
        /// nil = unlimited.
        var most: Int? = 1
    }

    private var atoms: [Atom] = []
    private static let repeatMax = 1000

    /// nil for what is not supported.
    init?(_ text: String) {
        var scalars = Array(text.unicodeScalars)[...]
        while let scalar = scalars.popFirst() {
            guard var atom = Self.atom(scalar, &scalars) else { return nil }
            guard Self.quantify(&atom, &scalars) else { return nil }
            atoms.append(atom)
        }
    }

    private static func atom(_ first: Unicode.Scalar, _ rest: inout ArraySlice<Unicode.Scalar>) -> Atom? {
        switch first {
        case ".": return Atom(classes: [.any])
        case "\\": return escape(&rest).map { Atom(classes: [$0]) }
        case "[": return bracket(&rest)
        case "(", ")", "|", "*", "+", "?", "{", "}", "]", "^", "$": return nil
        default: return Atom(classes: [.range(first.value, first.value)])
        }
    }

    private static func escape(_ rest: inout ArraySlice<Unicode.Scalar>) -> Class? {
        guard let letter = rest.popFirst() else { return nil }
        switch letter {
        case "d": return .digit
        case "w": return .word
        case "s": return .space
        case "p":
            let name = String(String.UnicodeScalarView(rest.prefix(3)))
            rest = rest.dropFirst(3)
            return name == "{L}" ? .letter : name == "{N}" ? .number : nil
        default:
            // A letter or digit after a backslash means something that is not supported here.
            guard !letter.properties.isAlphabetic, !("0"..."9").contains(letter) else { return nil }
            return .range(letter.value, letter.value)
        }
    }

    private static func bracket(_ rest: inout ArraySlice<Unicode.Scalar>) -> Atom? {
        var atom = Atom(classes: [])
        if rest.first == "^" {
            atom.isNegated = true
            rest.removeFirst()
        }
        while let scalar = rest.popFirst() {
            if scalar == "]" { return atom.classes.isEmpty ? nil : atom }
            if scalar == "\\" {
                guard let escaped = escape(&rest) else { return nil }
                atom.classes.append(escaped)
                continue
            }
            var upper = scalar
            if rest.first == "-", let end = rest.dropFirst().first, end != "]" {
                guard end != "\\", end.value >= scalar.value else { return nil }
                upper = end
                rest = rest.dropFirst(2)
            }
            atom.classes.append(.range(scalar.value, upper.value))
        }
        return nil
    }

    private static func quantify(_ atom: inout Atom, _ rest: inout ArraySlice<Unicode.Scalar>) -> Bool {
        switch rest.first {
        case "?": (atom.least, atom.most) = (0, 1)
        case "*": (atom.least, atom.most) = (0, nil)
        case "+": (atom.least, atom.most) = (1, nil)
        case "{":
            guard let end = rest.firstIndex(of: "}") else { return false }
            let bounds = String(String.UnicodeScalarView(rest[rest.startIndex..<end].dropFirst()))
                .split(separator: ",", omittingEmptySubsequences: false)
            guard let first = bounds.first, let least = Int(first), (0...repeatMax).contains(least) else {
                return false
            }
            atom.least = least
            switch bounds.count {
            case 1: atom.most = least
            case 2 where bounds[1].isEmpty: atom.most = nil
            case 2:
                guard let most = Int(bounds[1]), (least...repeatMax).contains(most) else { return false }
                atom.most = most
            default: return false
            }
            rest = rest[end...]
        default: return true
        }
        rest.removeFirst()
        return true
    }

    /// The whole text.
    func matches(_ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars)
        /// Whether the atoms so far can end before each character.
        var reachable = [Bool](repeating: false, count: scalars.count + 1)
        reachable[0] = true
        for atom in atoms {
            // For each place the fewest repeats that lead there would not do: least and most both count. A run of matching
            // characters is what limits the repeats, so the starts that reach a place form a window.
            var next = [Bool](repeating: false, count: scalars.count + 1)
            var run = 0
            var starts = [Int](repeating: 0, count: scalars.count + 2)
            for index in reachable.indices { starts[index + 1] = starts[index] + (reachable[index] ? 1 : 0) }
            for end in next.indices {
                if end > 0 { run = atom.contains(scalars[end - 1]) ? run + 1 : 0 }
                let nearest = end - atom.least
                let farthest = end - min(run, atom.most ?? run)
                if nearest >= farthest { next[end] = starts[nearest + 1] > starts[farthest] }
            }
            reachable = next
        }
        return reachable[scalars.count]
    }
}

extension TextPattern.Atom {
    fileprivate func contains(_ scalar: Unicode.Scalar) -> Bool {
        classes.contains { $0.contains(scalar) } != isNegated
    }
}

extension TextPattern.Class {
    fileprivate func contains(_ scalar: Unicode.Scalar) -> Bool {
        switch self {
        case .any: true
        case .digit: ("0"..."9").contains(scalar)
        case .word: scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "_")
        case .space: scalar.properties.isWhitespace
        case .letter: scalar.properties.isAlphabetic
        case .number: scalar.properties.numericType != nil
        case .range(let lower, let upper): (lower...upper).contains(scalar.value)
        }
    }
}
