import Foundation
import Testing

/// What `body` writes to the descriptor that it gets.
package func printed(_ body: (Int32) throws -> Void) throws -> String {
    let file = try #require(tmpfile())
    defer { fclose(file) }
    try body(fileno(file))
    rewind(file)
    return String(decoding: try FileHandle(fileDescriptor: fileno(file)).readToEnd() ?? Data(), as: UTF8.self)
}
