import JSON
import Positioning

/// A text that lists something, read whole or not at all.
package enum ListText {
    package static let bytesMax = 8 << 20
    /// Mistakes that are reported one by one.
    static let problemsMax = 20

    /// - Throws: `ListProblems` when it is too long, or no JSON that all readers understand alike.
    static func document(_ text: [UInt8]) throws(ListProblems) -> JSONValue {
        guard text.count <= bytesMax else {
            throw ListProblems(lines: ["found more than 8 MiB, expected a shorter list"])
        }
        let document: JSONValue
        do throws(JSONReader.Problem) { document = try JSONReader.parse(text, bytesMax: bytesMax) } catch {
            throw ListProblems(lines: ["found no valid JSON at byte \(error.offset), expected JSON"])
        }
        // Readers differ in which of the two counts.
        if document.repeatsAName { throw ListProblems(lines: ["found two members of one name, expected each once"]) }
        return document
    }

    /// - Parameters:
    ///   - path: from the document to the array of items; empty = the document is that array.
    static func items(of document: JSONValue, at path: [String], _ nouns: String) throws(ListProblems) -> [JSONValue] {
        if let items = (path.isEmpty ? document : document.value(at: path))?.items { return items }
        let place = path.isEmpty ? "the reply" : path.joined(separator: ".")
        throw ListProblems(lines: ["\(place): found no array, expected one of \(nouns)"])
    }

    /// - Parameters:
    ///   - list: the path of the items.
    ///   - ids: in use.
    ///   - mayRepeat: whether an item may be listed again exactly as it is, which adds nothing.
    ///   - id: of an item that may be mistaken otherwise.
    static func collect<Item: ListedItem>(
        _ items: [JSONValue], named list: String, except ids: Set<String> = [], mayRepeat: Bool = false,
        id: (JSONValue) -> String? = { _ in nil }, _ read: (JSONValue) throws(Mistake) -> Item
    ) throws(ListProblems) -> [Item] {
        var known: [String: Item?] = Dictionary(uniqueKeysWithValues: ids.map { ($0, nil) })
        var found: [Item] = []
        var problems: [String] = []
        for (index, value) in items.enumerated() {
            let path = "\(list)[\(index)]"
            do throws(Mistake) {
                let item = try read(value)
                guard let earlier = known.updateValue(item, forKey: item.id) else {
                    found.append(item)
                    continue
                }
                if mayRepeat, earlier == item { continue }
                problems.append(
                    "\(path): found the id \(item.id.quoted) again, expected an id that no other \(Item.noun) has")
            } catch {
                let member = error.member.map { ".\($0)" } ?? ""
                let id = id(value).map { " (id \($0.quoted.shortened))" } ?? ""
                problems.append("\(path)\(member)\(id): found \(error.found), expected \(error.expected)")
            }
        }
        if problems.count > problemsMax {
            let more = problems.count - problemsMax
            problems = problems.prefix(problemsMax) + ["\(more) more items have mistakes of their own"]
        }
        guard problems.isEmpty else { throw ListProblems(lines: problems) }
        return found
    }

    static func checkCount<Item: ListedItem>(_ items: [Item]) throws(ListProblems) {
        guard items.count > Item.inForceMax else { return }
        throw ListProblems(
            lines: ["found \(InWords.count(items.count, Item.noun)), expected at most \(Item.inForceMax)"])
    }

    /// The same limits as in the configuration: both go over the wire with each crossing.
    static func check(id: String, name: String?) throws(Mistake) {
        for (word, text) in [("an id", id), ("a name", name ?? "")] {
            if text.utf8.count > 128 {
                throw Mistake(found: "\(word) of \(text.utf8.count) bytes", expected: "at most 128")
            }
            if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                throw Mistake(found: "\(word) with control characters", expected: "plain text")
            }
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
