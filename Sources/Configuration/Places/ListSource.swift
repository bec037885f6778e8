import Places

/// A server that lists something of one kind, in the configuration.
package protocol ListSource: Hashable, Sendable {
    associatedtype Item: ListedItem
    associatedtype Form: Hashable, Sendable

    /// Where the list is, and when it is fetched.
    var list: ListSourceConfig { get }
    /// How the server writes it.
    var form: Form { get }

    /// What a reply lists.
    ///
    /// - Throws: `ListProblems` when it is not wholly valid.
    func items(of reply: [UInt8]) throws(ListProblems) -> [Item]
}

extension ListSource {
    package var name: String { list.name }

    /// It asks the same server for the same list.
    package func hasSameList(as other: Self) -> Bool {
        name == other.name && list.url == other.list.url && form == other.form
    }
}
