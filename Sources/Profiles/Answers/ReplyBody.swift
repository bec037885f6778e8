import Protocols
import WaypostCore

/// The body of a reply, as far as a rule can rely on it.
enum ReplyBody: Hashable {
    /// Complete, with nothing but blanks at most.
    case empty
    /// Longer than a limit, or broken off.
    case cut
    /// Complete, but not JSON.
    case notJSON
    /// An object has two members of one name: which of them counts would be a guess.
    case repeatedName
    case json(JSONValue)

    init(_ reply: UplinkReply) {
        guard !reply.bodyIncomplete else {
            self = .cut
            return
        }
        // Some servers begin with a byte order mark, which RFC 8259 lets a reader pass over.
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let body = reply.body.starts(with: mark) ? Array(reply.body.dropFirst(mark.count)) : reply.body
        if body.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }) {
            self = .empty
            return
        }
        do throws(JSONReader.Problem) {
            let value = try JSONReader.parse(body, bytesMax: body.count)
            self = value.repeatsAName ? .repeatedName : .json(value)
        } catch {
            self = error.hasTooManyValues ? .cut : .notJSON
        }
    }

    var json: JSONValue? {
        if case .json(let value) = self { value } else { nil }
    }

    /// Why nothing in it can be relied on, whatever it is read for; nil = there is no such reason.
    var doubt: UnclearBody? {
        switch self {
        case .cut: .cut
        case .repeatedName: .repeatedName
        case .empty, .notJSON, .json: nil
        }
    }
}

extension JSONValue {
    /// What a path leads to.
    enum Find: Hashable {
        /// To nothing, or to null.
        case absent
        case found(JSONValue)
        /// Through something that has no members or places.
        case otherForm
    }

    func find(_ path: [String]) -> Find {
        var value = self
        for step in path {
            switch value {
            case .object(let members):
                guard let member = members.first(where: { $0.name == step }) else { return .absent }
                value = member.value
            case .array(let items):
                guard let index = Int(step) else { return .otherForm }
                guard items.indices.contains(index) else { return .absent }
                value = items[index]
            case .null: return .absent
            case .bool, .int, .decimal, .double, .string: return .otherForm
            }
        }
        return value == .null ? .absent : .found(value)
    }
}
