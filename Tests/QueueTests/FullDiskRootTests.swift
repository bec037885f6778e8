import Foundation
import Profiles
import TestSupport
import Testing

@testable import Queue

/// A file system without a free block. Mounting one needs root: `.ci/run` runs this, `make test` does not.
@Suite(.serialized) struct FullDiskRootTests {
    private func shell(_ line: String) throws {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", line]
        try shell.run()
        shell.waitUntilExit()
        try #require(shell.terminationStatus == 0, "\(line)")
    }

    private func mount(in scratch: Scratch) throws -> String {
        let (image, disk) = (scratch.directory + "/image", scratch.directory + "/disk")
        try shell(
            "truncate -s 6M \(image) && mkfs.ext4 -q -b 1024 \(image) && mkdir \(disk) && mount -o loop \(image) \(disk)"
        )
        return disk
    }

    private func fill(_ disk: String) throws {
        try shell(
            "cd \(disk); for size in 64k 1k; do dd if=/dev/zero bs=$size >> filler 2>/dev/null; done; sync -f filler")
    }

    private func open(_ disk: String) throws -> Outbox {
        try Outbox(
            OutboxSettings(path: disk + "/outbox.db", minFree: nil), endpoints: [.test()], bootID: testBoot,
            newUUID: testUUID, worksWithoutDisk: true, locksExclusively: true)
    }

    /// More goes than comes, and the log that has been in use for a while, or has not, has to be copied back for it.
    @Test(arguments: [0, 500, 3000], [5, 300])
    func whatWasSentFromAFullDiskIsNotSentAgainAfterAKill(backlog: Int, commitsBefore: Int) throws {
        let scratch = try Scratch()
        let disk = try mount(in: scratch)
        defer { try? shell("umount -l \(disk) && rmdir \(disk)") }
        let outbox = try open(disk)
        var next = 0
        func record(_ count: Int) throws -> CommitReply {
            next += count
            return try outbox.append(next - count..<next)
        }
        for _ in 0..<commitsBefore {
            _ = try record(10)
            if let batch = try outbox.form(100) { try outbox.acknowledge(batch) }
        }
        for _ in 0..<backlog / 10 { _ = try record(10) }
        try fill(disk)
        var sent: Set<Int64> = []
        var refusals = 0
        for _ in 0..<400 {
            _ = try record(5)
            guard let batch = try outbox.form(20) else { continue }
            sent.formUnion(batch.rows.map(\.seq))
            if try outbox.acknowledge(batch).refusal != nil { refusals += 1 }
        }
        // The log of a queue that was a few commits old when it met a full disk has room for some 11 of these rounds. When it is used up
        // one commit is refused, and the log is copied back. Older logs have room for hundreds.
        let most = commitsBefore == 5 && backlog <= 500 ? 400 / 10 : 10
        #expect(sent.count >= 2000 && refusals <= most, "\(refusals) of 400 refused")
        outbox.close()
        try shell("rm \(disk)/filler")
        let left = try OutboxReader(path: disk + "/outbox.db").oldest(10_000).map(\.seq)
        // A kill loses no more than the last answers.
        #expect(sent.intersection(left).count <= 20)
    }

    /// Memory holds enough rows for the disk to give up older ones for them.
    @Test(.bug(id: 11)) func aBatchThatWasFormedInMemoryKeepsItsRowsOnAFullDisk() throws {
        let scratch = try Scratch()
        let disk = try mount(in: scratch)
        defer { try? shell("umount -l \(disk) && rmdir \(disk)") }
        let outbox = try open(disk)
        for start in stride(from: 0, to: 6000, by: 100) { try outbox.append(start..<start + 100) }
        try fill(disk)
        #expect(try outbox.append(6000..<12_000).refusal?.cause == .full)
        var form = Commit(forms: [FormRequest(endpoint: "main", limit: 20, sentMs: nil)])
        form.asksDisk = false
        let batch = try #require(try outbox.commit(form).formed.first)
        try shell("truncate -s -2M \(disk)/filler")
        let reply = try outbox.append(12_000..<12_001)
        #expect(reply.refusal == nil)
        #expect(reply.dropped.oldest > 0 && reply.dissolved.isEmpty, "\(reply.dropped)")
        #expect(outbox.inFlight() == [batch])
        outbox.close()
    }
}
