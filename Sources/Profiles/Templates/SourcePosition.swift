/// A place in a configuration file, counted from 1; columns count characters, not bytes.
package struct SourcePosition: Hashable, Sendable {
    package var file: String
    package var line: Int
    package var column: Int

    package init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }
}

extension SourcePosition: CustomStringConvertible {
    package var description: String { "\(file):\(line):\(column)" }
}
