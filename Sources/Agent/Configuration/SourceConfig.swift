/// Where the fixes come from.
public enum SourceConfig: Sendable {
    case none
    init?(reading table: TableReader) { self = .none }
}
