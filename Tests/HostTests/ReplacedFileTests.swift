import Glibc
import TestSupport
import Testing

@testable import WaypostHost

@Suite struct ReplacedFileTests {
    /// Each of them was an error at every attempt, until somebody removed it.
    @Test(.bug(id: 13), arguments: ["pipe", "link", "read-only"]) func whatStandsInTheWayOfTheDraftIsRemoved(
        kind: String
    ) throws {
        let directory = try TemporaryDirectory()
        let (path, draft) = (directory.path + "/file", directory.path + "/file.new")
        try replaceFile(directory.path + "/other", with: Array("other".utf8), mode: 0o644, isDurable: false)
        switch kind {
        case "pipe": #expect(mkfifo(draft, 0o600) == 0)
        case "link": #expect(symlink("other", draft) == 0)
        default: try replaceFile(draft, with: Array("longer than new".utf8), mode: 0o400, isDurable: false)
        }
        try replaceFile(path, with: Array("new".utf8), mode: 0o640)
        #expect(try directory.read("file") == "new" && directory.read("other") == "other")
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode == S_IFREG | 0o640 && access(draft, F_OK) != 0)
    }
}
