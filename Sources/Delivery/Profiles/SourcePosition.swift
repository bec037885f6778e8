/// A place in a configuration file, counted from 1; columns count characters, not bytes.
public struct SourcePosition: Hashable, Sendable {
    public var file: String
    public var line: Int
    public var column: Int

    public init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }
}

extension SourcePosition: CustomStringConvertible {
    public var description: String { "\(file):\(line):\(column)" }
}
