import WaypostCore

/// Reads items of a list as they come, and keeps no more of them, and of their mistakes, than can be used.
struct ItemCollector<Item: ListedItem> {
    /// Mistakes that are reported one by one.
    private static var problemsMax: Int { 20 }

    private let list: String
    private let itemsMax: Int
    private let mayRepeat: Bool
    private let id: (JSONValue) -> String?
    private let read: (JSONValue) throws(ListText.Mistake) -> Item
    private var known: [String: Item?]
    private var found: [Item] = []
    private var surplus = 0
    private var corners = 0
    private var problems: [String] = []
    private var moreProblems = 0
    private var index = 0

    /// - Parameters:
    ///   - list: the path of the items.
    ///   - ids: in use.
    ///   - itemsMax: more are counted, and not kept.
    ///   - mayRepeat: whether an item may be listed again exactly as it is, which adds nothing.
    ///   - id: of an item that may be mistaken otherwise.
    init(
        named list: String, except ids: Set<String> = [], itemsMax: Int = Item.inForceMax, mayRepeat: Bool = false,
        id: @escaping (JSONValue) -> String? = { _ in nil },
        _ read: @escaping (JSONValue) throws(ListText.Mistake) -> Item
    ) {
        self.list = list
        self.itemsMax = itemsMax
        self.mayRepeat = mayRepeat
        self.id = id
        self.read = read
        known = Dictionary(uniqueKeysWithValues: ids.map { ($0, nil) })
    }

    mutating func take(_ value: JSONValue) {
        defer { index += 1 }
        do throws(ListText.Mistake) {
            let item = try read(value)
            guard let earlier = known[item.id] else {
                corners += item.cornerCount
                if found.count >= itemsMax { surplus += 1 }
                guard found.count < itemsMax, corners <= Item.cornersMax else { return }
                known[item.id] = item
                found.append(item)
                return
            }
            if mayRepeat, earlier == item { return }
            note { "\($0): found the id \(item.id.quoted) again, expected an id that no other \(Item.noun) has" }
        } catch {
            let member = error.member.map { ".\($0)" } ?? ""
            let id = id(value).map { " (id \($0.quoted.shortened))" } ?? ""
            note { "\($0)\(member)\(id): found \(error.found), expected \(error.expected)" }
        }
    }

    /// - Throws: `ListProblems` when an item has a mistake, or there are too many items or corners.
    func items() throws(ListProblems) -> [Item] {
        guard problems.isEmpty else {
            let more = moreProblems > 0 ? ["\(moreProblems) more items have mistakes of their own"] : []
            throw ListProblems(lines: problems + more)
        }
        guard surplus == 0 else {
            let count = InWords.count(found.count + surplus, Item.noun)
            throw ListProblems(lines: ["found \(count), expected at most \(itemsMax)"])
        }
        guard corners <= Item.cornersMax else {
            let count = InWords.count(corners, "corner")
            throw ListProblems(lines: ["found polygons with \(count), expected at most \(Item.cornersMax)"])
        }
        return found
    }

    private mutating func note(_ words: (_ path: String) -> String) {
        if problems.count < Self.problemsMax { problems.append(words("\(list)[\(index)]")) } else { moreProblems += 1 }
    }
}
