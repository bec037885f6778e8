import Glibc
import Profiles
import Testing

@testable import Queue

/// A queue on a file system that may only be read from the start. Mounting one needs root: `.ci/run` runs this, `make test`
/// does not.
@Suite struct ReadOnlyMountRootTests {
    /// A file system in memory.
    private final class Disk {
        let directory: String

        init(_ scratch: Scratch) throws {
            directory = scratch.directory + "/disk"
            mkdir(directory, 0o700)
            try #require(mount("waypost", directory, "tmpfs", 0, "size=4m,mode=700") == 0, "errno \(errno)")
        }

        func mayBeWritten(_ isWritable: Bool) throws {
            let flags = UInt(MS_REMOUNT) | (isWritable ? 0 : UInt(MS_RDONLY))
            var tries = 0
            while mount("waypost", directory, "tmpfs", flags, nil) != 0 {
                // A child that another test has just forked holds all open files until it executes.
                try #require(errno == EBUSY && tries < 1000, "errno \(errno)")
                tries += 1
                usleep(10_000)
            }
        }

        deinit {
            umount2(directory, Int32(MNT_DETACH))
            rmdir(directory)
        }
    }

    private func open(_ disk: Disk, random: [UInt8] = testUUID) throws(OutboxError) -> Outbox {
        try Outbox(
            OutboxSettings(path: disk.directory + "/outbox.db"), endpoints: [.test()], bootID: testBoot,
            newUUID: random, worksWithoutDisk: true)
    }

    @Test(arguments: [true, false])
    func whatWaitsThereIsSentAndTheDiskHearsOfItLater(hasLockFile: Bool) throws {
        let scratch = try Scratch()
        let disk = try Disk(scratch)
        let lockFile = disk.directory + "/outbox.db-lock"
        let before = try open(disk)
        try before.append(0..<5)
        let formed = try #require(try before.form(2))
        before.close()
        if hasLockFile { Scratch.write(Array("1\n".utf8), to: lockFile) } else { unlink(lockFile) }
        try disk.mayBeWritten(false)

        let outbox = try open(disk, random: testUUID.reversed())
        #expect(outbox.refusal?.cause == .readOnly)
        #expect(outbox.uuid == testUUID && outbox.current.rows == 5)
        #expect(outbox.inFlight() == [formed])
        if hasLockFile {
            // The file names a process of before.
            #expect(#expect(throws: OutboxError.self) { try open(disk) }?.cause == .locked(pid: nil))
        }
        try outbox.acknowledge(formed)
        #expect(try outbox.append(5..<6).unstored == 1)
        let rest = try #require(try outbox.form(9))
        #expect(rest.rows.map(\.location) == samples(2..<6))
        try outbox.acknowledge(rest)

        try disk.mayBeWritten(true)
        let reply = try outbox.append(6..<7)
        #expect(reply.refusal == nil && !reply.wasFoundLate && reply.rows == 1 && reply.unstored == 0)
        #expect(#expect(throws: OutboxError.self) { try open(disk) }?.cause == .locked(pid: getpid()))
        outbox.close()
        #expect(try open(disk).form(9)?.rows.map(\.location) == [.sample(6)])
    }

    /// On a disk that may only be read there is no lock file, but the queue itself is locked.
    @Test func aSecondWriterIsKeptOutWithoutALockFile() throws {
        let scratch = try Scratch()
        let disk = try Disk(scratch)
        try open(disk).append(0..<5)
        unlink(disk.directory + "/outbox.db-lock")
        try disk.mayBeWritten(false)
        let outbox = try open(disk)
        try disk.mayBeWritten(true)
        #expect(#expect(throws: OutboxError.self) { try open(disk) }?.cause == .locked(pid: nil))
        #expect(try outbox.append(5..<7).refusal == nil)
        #expect(try outbox.form(9)?.rows.map(\.location) == samples(0..<7))
    }
}
