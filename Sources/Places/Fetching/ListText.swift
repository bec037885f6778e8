import WaypostCore

/// A text that lists something, read whole or not at all.
package enum ListText {
    package static let bytesMax = 8 << 20
    /// Of a reply: it is in memory beside its copy for the disk, its items and those in force.
    package static let replyBytesMax = 4 << 20
    /// Of a reply that may come beside others.
    package static let shortBytesMax = 256 << 10
    /// Of one item, and of all that is not an item: a polygon of 1000 corners has some 3000.
    private static let valuesMax = 50_000

    /// Reads the items of a text one by one.
    ///
    /// - Parameters:
    ///   - path: from the document to the array of items; empty = the document is that array.
    ///   - expected: what a text that is no JSON should be.
    /// - Returns: the document without the items.
    /// - Throws: `ListProblems` when it is too long, or no JSON that all readers understand alike.
    static func read<Item: ListedItem>(
        _ text: [UInt8], at path: [String], into list: inout ItemCollector<Item>, expected: String = "JSON"
    ) throws(ListProblems) -> JSONValue {
        guard text.count <= bytesMax else {
            throw ListProblems(lines: ["found more than 8 MiB, expected a shorter list"])
        }
        // Readers differ in which of the two counts.
        let repeated = ListProblems(lines: ["found two members of one name, expected each once"])
        var isRepeated = false
        let rest: JSONValue
        do throws(JSONReader.Problem) {
            rest = try JSONReader.parse(text, itemsAt: path, valuesMax: valuesMax, bytesMax: bytesMax) { item in
                isRepeated = item.repeatsAName
                if !isRepeated { list.take(item) }
                return !isRepeated
            }
        } catch {
            if isRepeated { throw repeated }
            let words =
                error.hasTooManyValues
                ? "more than \(valuesMax) values in an item, or beside the items, expected fewer"
                : "no valid JSON at byte \(error.offset), expected \(expected)"
            throw ListProblems(lines: ["found \(words)"])
        }
        if rest.repeatsAName { throw repeated }
        return rest
    }

    static func checkItems(of rest: JSONValue, at path: [String], _ nouns: String) throws(ListProblems) {
        if (path.isEmpty ? rest : rest.value(at: path))?.items != nil { return }
        let place = path.isEmpty ? "the reply" : path.joined(separator: ".")
        throw ListProblems(lines: ["\(place): found no array, expected one of \(nouns)"])
    }

    /// The same limits as in the configuration: both go over the wire with each crossing.
    static func check(id: String, name: String?) throws(Mistake) {
        for (word, text) in [("an id", id), ("a name", name ?? "")] {
            if text.utf8.count > 128 {
                throw Mistake(found: "\(word) of \(text.utf8.count) bytes", expected: "at most 128")
            }
            if text.hasControls { throw Mistake(found: "\(word) with control characters", expected: "plain text") }
        }
        if id.hasBidiControls {
            throw Mistake(found: "an id with characters that change the order of text", expected: "plain text")
        }
    }

    /// A text that is not empty; nil where there is no path or no member.
    static func name(of item: JSONValue, at path: [String]?) throws(Mistake) -> String? {
        guard let path, let value = item.value(at: path) else { return nil }
        guard let text = value.string else {
            throw Mistake(words(path), found: "no text", expected: "a name")
        }
        return text.isEmpty ? nil : text
    }

    /// `center.lat`
    static func words(_ path: [String]?) -> String? { path?.joined(separator: ".") }

    /// What is wrong with one item of a list.
    struct Mistake: Error {
        /// Where it is in the item; nil = in the whole of it.
        var member: String?
        var found: String
        var expected: String

        init(_ member: String? = nil, found: String, expected: String) {
            (self.member, self.found, self.expected) = (member, found, expected)
        }
    }
}

extension String {
    /// As JSON writes it.
    var quoted: String { String(decoding: JSONValue.string(self).bytes, as: UTF8.self) }

    /// Long texts do not drown the message.
    var shortened: String { utf8.count <= 60 ? self : cut(toBytes: 59) + "\"" }
}
