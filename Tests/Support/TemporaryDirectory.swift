import Glibc

/// A new empty directory; the test removes what it puts there.
public func makeTemporaryDirectory(in parent: String = "/tmp") throws -> String {
    var template = Array("\(parent)/waypost-test-XXXXXX".utf8CString)
    guard let path = mkdtemp(&template) else { throw TemporaryDirectoryError(code: errno) }
    return String(cString: path)
}

/// No temporary directory could be made.
public struct TemporaryDirectoryError: Error {
    public let code: Int32
}
