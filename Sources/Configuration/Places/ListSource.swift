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
    /// - Parameters:
    ///   - read: one of them; nil when something essential is missing.
    ///   - check: reports what else is wrong with one.
    static func all(
        _ tables: [TableReader], read: (TableReader) -> Self?, check: (Self, TableReader) -> Void = { _, _ in }
    ) -> [Self] {
        var sources: [Self] = []
        for table in tables {
            let source = read(table)
            guard table.isWritten, let source else { continue }
            if sources.contains(where: { $0.name == source.name }) {
                table.report("name", "found \(source.name.asTOML) again, expected a name that no other source has")
            }
            check(source, table)
            sources.append(source)
        }
        return sources
    }

    package var name: String { list.name }

    /// It asks the same server for the same list.
    package func hasSameList(as other: Self) -> Bool {
        name == other.name && list.url == other.list.url && form == other.form
    }
}
