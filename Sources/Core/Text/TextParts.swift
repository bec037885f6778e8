extension BidirectionalCollection {
    /// Without the elements at both ends for which this holds.
    @inlinable
    package func trimming(while isBlank: (Element) -> Bool) -> SubSequence {
        let rest = drop(while: isBlank)
        return rest.lastIndex { !isBlank($0) }.map { rest[...$0] } ?? rest
    }
}

extension StringProtocol {
    package var trimmingSpaces: String { String(trimming { $0 == " " || $0 == "\t" }) }

    /// Where a text first occurs, byte for byte: without Foundation and regular expressions.
    @inlinable
    package func firstOccurrence(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if utf8[start...].starts(with: text.utf8) { return start..<utf8.index(start, offsetBy: text.utf8.count) }
            utf8.formIndex(after: &start)
        }
        return nil
    }
}

extension String {
    /// How many bytes come before this end; 0 where the text does not end so, or is no longer than it.
    package func count(before end: String?) -> Int {
        guard let end, utf8.count > end.utf8.count, utf8.reversed().starts(with: end.utf8.reversed()) else { return 0 }
        return utf8.count - end.utf8.count
    }

    /// The end after so many bytes; nil where there is none, or it begins within a character.
    package func end(after count: Int) -> String? {
        guard count > 0, count < utf8.count else { return nil }
        return String(validating: utf8.dropFirst(count), as: UTF8.self)
    }

    /// The directory of a file, from its path.
    package var parentDirectory: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
