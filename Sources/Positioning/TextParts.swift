extension BidirectionalCollection {
    /// Without the elements at both ends for which this holds.
    @inlinable
    package func trimming(while isBlank: (Element) -> Bool) -> SubSequence {
        let rest = drop(while: isBlank)
        return rest.lastIndex { !isBlank($0) }.map { rest[...$0] } ?? rest
    }
}

extension StringProtocol {
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
    /// The directory of a file, from its path.
    package var parentDirectory: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
