import CLinux
import EventLoop
import Foundation
import TestSupport
import Testing

@testable import Replay

@Suite struct OutputFileTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    private func write(_ text: String, to name: String) throws {
        let file = try OutputFile(path: "\(folder.path)/\(name)")
        try OutputBuffer(descriptor: file.descriptor).write(Array(text.utf8))
        try file.commit()
    }

    /// Whether the file system of temporary files knows files without a name; overlays of old kernels do not.
    private static let knowsUnnamedFiles: Bool = {
        let descriptor = waypost_open_unnamed("/tmp")
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0
    }()

    /// So nothing is left behind when the process is killed.
    @Test(.enabled(if: knowsUnnamedFiles)) func anUnfinishedFileHasNoName() throws {
        let file = try OutputFile(path: "\(folder.path)/drive.gpx")
        try OutputBuffer(descriptor: file.descriptor).write(Array("half".utf8))
        #expect(try names() == [])
        try file.commit()
        #expect(try names() == ["drive.gpx"])
        var info = stat()
        #expect(stat("\(folder.path)/drive.gpx", &info) == 0 && info.st_mode & 0o777 == 0o600)
    }

    @Test func replacesWhatALinkNamesAndNotTheLink() throws {
        try folder.makeDirectory("there")
        try folder.write("there/old.gpx", "old")
        #expect(symlink("there/old.gpx", "\(folder.path)/link.gpx") == 0)
        try write("new", to: "link.gpx")
        #expect(try folder.read("there/old.gpx") == "new")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: "\(folder.path)/link.gpx") == "there/old.gpx")
    }

    @Test func makesWhatADanglingLinkNames() throws {
        try folder.makeDirectory("there")
        #expect(symlink("again.gpx", "\(folder.path)/link.gpx") == 0)
        #expect(symlink("there/new.gpx", "\(folder.path)/again.gpx") == 0)
        try write("new", to: "link.gpx")
        #expect(try folder.read("there/new.gpx") == "new")
        #expect(try names() == ["again.gpx", "link.gpx", "there"])
    }

    @Test func aLinkToItselfIsAnErrorOrAFile() throws {
        #expect(symlink("link.gpx", "\(folder.path)/link.gpx") == 0)
        try? write("new", to: "link.gpx")
        #expect(try names() == ["link.gpx"])
    }

    @Test func aDeviceIsWrittenInPlace() throws {
        let file = try OutputFile(path: "/dev/null")
        try OutputBuffer(descriptor: file.descriptor).write(Array("text".utf8))
        try file.commit()
        var info = stat()
        #expect(stat("/dev/null", &info) == 0 && info.st_mode & S_IFMT == S_IFCHR)
    }

    @Test func aFullDiskIsAnError() {
        #expect(throws: SystemError.self) {
            let file = try OutputFile(path: "/dev/full")
            try OutputBuffer(descriptor: file.descriptor).write([1])
        }
    }

    @Test func aNameThatCannotBeTakenIsAnErrorAndLeavesNothing() throws {
        do {
            let file = try OutputFile(path: "\(folder.path)/drive.gpx")
            try folder.makeDirectory("drive.gpx")
            #expect(throws: SystemError.self) { try file.commit() }
        }
        #expect(try names() == ["drive.gpx"])
    }
}
