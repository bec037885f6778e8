import JSON
import Positioning
import Tracking

/// A text that lists geofences, read whole or not at all.
package enum FenceList {
    package static let bytesMax = 8 << 20
    /// Mistakes that are reported one by one.
    static let problemsMax = 20

    /// How a server writes its list.
    package enum Form: Hashable, Sendable {
        case geoJSON
        case mapping(FenceMapping)
    }

    /// The fences of a server's reply, with ids `SOURCE/ID`.
    ///
    /// - Parameter source: name of the list in the configuration.
    package static func read(_ reply: [UInt8], _ form: Form, source: String) throws(ListProblems) -> [Geofence] {
        let document = try document(reply)
        var fences =
            switch form {
            case .geoJSON: try GeoJSONFences.read(document, except: [])
            case .mapping(let mapping): try mapping.read(document)
            }
        if fences.count > GeofenceMonitor.fencesMax {
            throw ListProblems(
                lines: ["found \(fences.count) geofences, expected at most \(GeofenceMonitor.fencesMax)"])
        }
        for index in fences.indices { fences[index].belong(to: source) }
        return fences
    }

    private static func document(_ reply: [UInt8]) throws(ListProblems) -> JSONValue {
        guard reply.count <= bytesMax else {
            throw ListProblems(lines: ["found more than 8 MiB, expected a shorter list"])
        }
        let document: JSONValue
        do throws(JSONReader.Problem) { document = try JSONReader.parse(reply, bytesMax: bytesMax) } catch {
            throw ListProblems(lines: ["found no valid JSON at byte \(error.offset), expected JSON"])
        }
        // Readers differ in which of the two counts.
        if document.repeatsAName { throw ListProblems(lines: ["found two members of one name, expected each once"]) }
        return document
    }

    /// - Parameters:
    ///   - list: the path of the items.
    ///   - ids: in use.
    ///   - id: of an item that may be mistaken otherwise.
    static func collect(
        _ items: [JSONValue], named list: String, except ids: Set<String>, id: (JSONValue) -> String?,
        _ fence: (JSONValue) throws(Mistake) -> Geofence
    ) throws(ListProblems) -> [Geofence] {
        var ids = ids
        var fences: [Geofence] = []
        var problems: [String] = []
        for (index, item) in items.enumerated() {
            let path = "\(list)[\(index)]"
            do throws(Mistake) {
                let fence = try fence(item)
                if ids.insert(fence.id).inserted {
                    fences.append(fence)
                } else {
                    problems.append(
                        "\(path): found the id \(fence.id.quoted) again, expected an id that no other geofence has")
                }
            } catch {
                let member = error.member.map { ".\($0)" } ?? ""
                let id = id(item).map { " (id \($0.quoted.shortened))" } ?? ""
                problems.append("\(path)\(member)\(id): found \(error.found), expected \(error.expected)")
            }
        }
        if problems.count > problemsMax {
            let more = problems.count - problemsMax
            problems = problems.prefix(problemsMax) + ["\(more) more features have mistakes of their own"]
        }
        guard problems.isEmpty else { throw ListProblems(lines: problems) }
        return fences
    }

    /// A text, or a whole number.
    static func id(_ value: JSONValue?) -> String? { value?.string ?? value?.integer.map(String.init) }

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

    /// A number in the SI unit, or a text with a unit; nil where there is none.
    static func quantity(_ value: JSONValue?, _ name: String, _ scale: UnitScale) throws(Mistake) -> Double? {
        guard let value, value != .null else { return nil }
        if let bare = value.number { return bare }
        if let text = value.string, case .value(let value) = scale.read(text) { return value }
        throw Mistake(found: "another \(name)", expected: scale.expectation)
    }

    static func dwell(_ value: JSONValue?) throws(Mistake) -> Duration? {
        guard let seconds = try quantity(value, "dwell", .duration) else { return nil }
        guard (1...30 * 86_400).contains(seconds) else {
            throw Mistake(found: "a dwell of \(seconds.plain) s", expected: "a duration from 1s to 30d")
        }
        return .milliseconds(Int64((seconds * 1000).rounded()))
    }

    /// What is wrong with one fence of a list.
    struct Mistake: Error {
        /// Where it is in the fence; nil = in the whole of it.
        var member: String?
        var found: String
        var expected: String

        init(_ member: String? = nil, found: String, expected: String) {
            (self.member, self.found, self.expected) = (member, found, expected)
        }

        init(_ flaw: Geofence.Flaw, at member: String? = nil) {
            self.init(member, found: flaw.found, expected: flaw.expected)
        }
    }
}

extension String {
    /// As JSON writes it.
    var quoted: String { String(decoding: JSONValue.string(self).bytes, as: UTF8.self) }

    /// Long texts do not drown the message.
    var shortened: String { utf8.count <= 60 ? self : cut(toBytes: 59) + "\"" }
}
