import Foundation
import TestSupport
import Testing

@testable import Configuration

/// What servers know an installation by: it never changes for one machine, and nobody can tell the machine from it.
@Suite struct MachineIDTests {
    @Test func isTheSameForOneMachine() throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/machine-id"
        try "0123456789abcdef0123456789abcdef\n".write(toFile: file, atomically: true, encoding: .utf8)
        // HMAC-SHA256 of the application id, computed with Python's hmac.
        #expect(MachineID.read(file: file) == "fc83ff67b90d3cf8")
    }

    @Test(arguments: ["", "uninitialized\n", "0123"]) func isUnknownWithoutAValidID(text: String) throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/machine-id"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        #expect(MachineID.read(file: file) == nil)
    }
}
