import CLinux
import Foundation
import TestSupport
import Testing
import WaypostHost

@testable import Inspect

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
        let folder = open("/tmp", O_RDONLY | O_DIRECTORY)
        defer { close(folder) }
        let descriptor = waypost_open_unnamed(folder)
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

    @Test func aTerminalGetsNothingThatSteersIt() throws {
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(terminal >= 0)
        defer { close(terminal) }
        // TIOCSPTLCK and TIOCGPTN.
        var (lock, number) = (Int32(0), Int32(-1))
        try #require(ioctl(terminal, 0x4004_5431, &lock) == 0 && ioctl(terminal, 0x8004_5430, &number) == 0)
        let shown = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        try #require(shown >= 0)
        defer { close(shown) }
        try OutputBuffer(descriptor: shown).write(Array("a,\u{9b}2J\u{202e}\n".utf8))
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = read(terminal, &bytes, bytes.count)
        #expect(String(decoding: bytes[..<max(0, count)], as: UTF8.self) == "a,\\x9b2J\\u{202e}\r\n")
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

    /// Whoever may write to a folder may point its links elsewhere.
    @Test(arguments: ["link.gpx", "folder/out.gpx"], [0o775, 0o777, 0o1777] as [mode_t])
    func aLinkThatOthersCanSetIsNotFollowed(_ name: String, _ mode: mode_t) throws {
        try folder.makeDirectory("shared")
        try folder.makeDirectory("there")
        try folder.write("there/out.gpx", "old")
        for (link, target) in [("link.gpx", "there/out.gpx"), ("folder", "there")] {
            #expect(symlink("../\(target)", "\(folder.path)/shared/\(link)") == 0)
        }
        #expect(chmod("\(folder.path)/shared", mode) == 0)
        let error = #expect(throws: SystemError.self) { try write("new", to: "shared/\(name)") }
        #expect(error?.code == EPERM && error?.what.contains("a link that another user can set") == true)
        #expect(try folder.read("there/out.gpx") == "old")
    }

    /// Between the look at a name and its use, others may make a file there.
    @Test func whatAppearsMeanwhileIsNotOverwritten() throws {
        let file = try OutputFile(path: "\(folder.path)/drive.gpx")
        try folder.write("drive.gpx", "of another")
        let late = #expect(throws: SystemError.self) { try file.commit() }
        let early = #expect(throws: SystemError.self) {
            try OutputFile(path: "\(folder.path)/drive.gpx", replaces: false)
        }
        #expect([late?.code, early?.code] == [EEXIST, EEXIST])
        #expect(try folder.read("drive.gpx") == "of another" && names() == ["drive.gpx"])
    }

    /// A folder that is renamed, and another or a link in its place, changes nothing.
    @Test func theFolderIsTheOneThatWasLookedAt() throws {
        try folder.makeDirectory("one")
        try folder.makeDirectory("other")
        let file = try OutputFile(path: "\(folder.path)/one/drive.gpx")
        #expect(rename("\(folder.path)/one", "\(folder.path)/moved") == 0)
        #expect(symlink("other", "\(folder.path)/one") == 0)
        try file.commit()
        #expect(access("\(folder.path)/moved/drive.gpx", F_OK) == 0)
        #expect(access("\(folder.path)/other/drive.gpx", F_OK) != 0)
    }

    @Test func anOpenFileIsContinued() throws {
        try folder.write("so.far", "first ")
        let descriptor = open("\(folder.path)/so.far", O_WRONLY)
        defer { close(descriptor) }
        let file = try OutputFile(path: "/dev/fd/\(descriptor)")
        try OutputBuffer(descriptor: file.descriptor).write(Array("second".utf8))
        try file.commit()
        #expect(try folder.read("so.far") == "first second")
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

/// What root does with files of another user. `.ci/run` runs them, `make test` does not.
@Suite struct OutputFileRootTests {
    private static let nobody: uid_t = 65_534

    @Test func linksAndPipesOfOthersAreRefused() throws {
        let folder = try TemporaryDirectory()
        try folder.write("precious", "old")
        let names: [String] = ["link", "dangling", "pipe"]
        #expect(symlink("precious", "\(folder.path)/link") == 0 && symlink("none", "\(folder.path)/dangling") == 0)
        #expect(mkfifo("\(folder.path)/pipe", 0o666) == 0)
        for name in names {
            #expect(lchown("\(folder.path)/\(name)", Self.nobody, Self.nobody) == 0)
            let error = #expect(throws: SystemError.self) { try OutputFile(path: "\(folder.path)/\(name)") }
            #expect(error?.code == EPERM)
        }
        #expect(try folder.read("precious") == "old" && access("\(folder.path)/none", F_OK) != 0)
        // A link of root's in the folder of another user can be replaced by one of that user.
        try folder.makeDirectory("theirs")
        #expect(symlink("../precious", "\(folder.path)/theirs/link") == 0)
        #expect(chown("\(folder.path)/theirs", Self.nobody, Self.nobody) == 0)
        #expect(throws: SystemError.self) { try OutputFile(path: "\(folder.path)/theirs/link") }
        // A file of theirs is replaced, and not written to.
        #expect(chown("\(folder.path)/precious", Self.nobody, Self.nobody) == 0)
        try OutputFile(path: "\(folder.path)/precious").commit()
        var info = stat()
        #expect(stat("\(folder.path)/precious", &info) == 0 && info.st_uid == 0 && info.st_size == 0)
    }
}
