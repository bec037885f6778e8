import Foundation
import TestSupport
import Testing

/// Disks that only root can make. `.ci/run` runs them, `make test` does not.
@Suite(.waiting) struct RootTests {
    private let drive = DemoDrive.path

    /// A file system of 1 MiB in memory.
    private final class SmallDisk {
        let path: String
        private let rig: Rig

        init(_ rig: Rig, mounting line: String = "mount -t tmpfs -o size=1m,mode=700 waypost $DISK") throws {
            self.rig = rig
            path = rig.path("disk")
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            try run("DISK=\(path); \(line)")
        }

        func run(_ line: String) throws { try rig.shell(line) }

        deinit { try? run("umount -l \(path)") }
    }

    private func configure(_ rig: Rig, on disk: SmallDisk) throws {
        try rig.configure(
            source: Rig.log(drive, playback: "300.0"), outbox: "commit_window = \"20ms\"",
            endpoint: "batch_size = 1000\nbatch_window = \"1h\"")
        try rig.reconfigure(rig.path("outbox.db"), to: disk.path + "/outbox.db")
    }

    /// Neither the configuration nor the folder of the socket is open to everyone.
    @Test(arguments: ["status", "flush", "queue", "doctor", "top", "reload"])
    func anyoneElseIsSentToRootOrToTheGroup(command: String) throws {
        let rig = try Rig()
        try rig.configure(source: Rig.log(drive, playback: "300.0"))
        let words = "\(command) --config \(rig.path("waypost.toml"))"
        let text = try rig.shell(
            """
            cd \(rig.directory.path) && chown 0:daemon . && chmod 750 . && chown 0:daemon waypost.toml && chmod 640 waypost.toml
            setpriv --reuid 65534 --regid 65534 --clear-groups $waypost \(words) 2>&1; test $? = 77
            """)
        let lines = text.split(separator: "\n")
        let denial = "not permitted: use sudo, or join group daemon and log in again"
        #expect(lines.contains { $0.hasSuffix(denial) } && (command == "doctor" || lines.count == 1), "\(lines)")
    }

    static let harms: [(String, String, String)] = [
        ("cat /dev/zero > $DISK/filler 2>/dev/null; test -s $DISK/filler", "rm $DISK/filler", "free some space"),
        ("mount -o remount,ro $DISK", "mount -o remount,rw $DISK", "check owner and mode"),
    ]

    @Test(arguments: harms) func aDiskThatRefusesAtTheStartKeepsNothingFromArriving(
        _ harm: String, _ mend: String, _ hint: String
    ) throws {
        let rig = try Rig()
        let disk = try SmallDisk(rig)
        try rig.startCollector()
        try configure(rig, on: disk)
        try rig.reconfigure("batch_size = 1000\nbatch_window = \"1h\"", to: "batch_size = 20\nbatch_window = \"100ms\"")
        try rig.reconfigure("playback = 300.0", to: "playback = 50.0")
        try disk.run("DISK=\(disk.path); \(harm)")
        let daemon = try rig.startDaemon()
        try daemon.waitFor(hint)
        let status = try rig.waitFor("queue", "sent_from_ram") { $0 as? Int ?? 0 > 50 }
        #expect(status["health"] as? String == "degraded")
        try disk.run("DISK=\(disk.path); \(mend)")
        try daemon.waitFor("written to disk again", within: 30)
        #expect(try daemon.exitStatus(within: 60) == 0)
        // Nothing is left for another start.
        try rig.runDaemon()
        let (received, expected) = try (rig.received(), rig.replayed(drive))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
    }

    /// What waits there is sent at once, and nothing of it a second time once the disk has heard of it.
    @Test func aQueueOnADiskThatMayOnlyBeReadIsSent() throws {
        let rig = try Rig()
        let image = rig.path("image")
        let disk = try SmallDisk(
            rig, mounting: "truncate -s 8M \(image) && mkfs.ext4 -q \(image) && mount -o loop \(image) $DISK")
        try rig.startCollector()
        try configure(rig, on: disk)
        try rig.reconfigure("playback = 300.0", to: "playback = 50.0")
        // Nothing is delivered by the first daemon, however late it is killed.
        try rig.stopCollector()
        let first = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 >= 100 }
        first.kill(SIGKILL)
        _ = try first.exitStatus(within: 20)
        let stored = try #require(try rig.newestRow(of: disk.path + "/outbox.db")?.seq)
        try rig.startCollector()
        try disk.run("cd \(disk.path); rm -f outbox.db-lock outbox.db-shm; cd /; mount -o remount,ro \(disk.path)")
        try rig.reconfigure("batch_size = 1000\nbatch_window = \"1h\"", to: "batch_size = 20\nbatch_window = \"100ms\"")
        let second = try rig.startDaemon()
        try second.waitFor("mount -o remount,rw")
        try rig.waitFor("queue", "sent_from_ram") { $0 as? Int ?? 0 > 50 }
        try disk.run("mount -o remount,rw \(disk.path)")
        try second.waitFor("written to disk again", within: 90)
        #expect(try second.exitStatus(within: 60) == 0)
        // Numbers leap at a start, and follow each other after it.
        let (received, expected) = try (rig.received(), rig.replayed(drive))
        let seqs: [Int] = received.map(\.seq)
        let later: [Int] = Array(seqs.dropFirst(stored))
        #expect(Array(seqs.prefix(stored)) == Array(1...stored))
        let least = try #require(later.first)
        #expect(later == Array(least..<(least + later.count)))
        #expect(received.last?.timeMs == expected.last?.timeMs)
    }

    /// The owner of a queue chooses what stands beside it.
    @Test func rootChangesTheQueueOfAnotherUserWithThatUsersRights() throws {
        let rig = try Rig()
        try rig.configure(
            source: Rig.log(drive), outbox: "commit_window = \"20ms\"")
        let daemon = try rig.startDaemon(["--linger", "0"])
        _ = try daemon.exitStatus(within: 60)
        let theirs = try Rig()
        let precious = theirs.path("precious")
        try "do not touch".write(toFile: precious, atomically: true, encoding: .utf8)
        func shell(_ line: String) throws -> String {
            let shell = try RunningProgram(shell: "exec 2>&1; cd \(rig.directory.path); \(line)", in: rig.directory)
            _ = try shell.exitStatus(within: 10)
            return shell.text
        }
        _ = try shell("mkdir q && mv outbox.db* q/ && chown -R nobody q && chmod 711 . && rm -f q/outbox.db-lock")
        try rig.reconfigure(rig.path("outbox.db"), to: rig.path("q/outbox.db"))
        let retry = ["quarantine", "retry", "--all", "--config", rig.path("waypost.toml")]
        // It goes on as before, and what it makes is the owner's.
        let good = try rig.waypost(retry)
        #expect(try good.exitStatus(within: 20) == 0, "\(good.text)")
        #expect(try rig.says("queue", "--config", rig.path("waypost.toml")).contains("endpoint main"))
        #expect(Set(try shell("stat -c %U q/*").split(separator: "\n")) == ["nobody"])
        for part in ["-lock", "-wal", "-shm", ""] {
            _ = try shell("rm -f q/outbox.db\(part); ln -s \(precious) q/outbox.db\(part)")
            let order = try rig.waypost(retry)
            #expect(try order.exitStatus(within: 20) != 0, "\(part): \(order.text)")
            let look = try rig.waypost(["queue", "--config", rig.path("waypost.toml")])
            _ = try look.exitStatus(within: 20)
            #expect(try String(contentsOfFile: precious, encoding: .utf8) == "do not touch")
            _ = try shell("rm q/outbox.db\(part)")
        }
    }

    /// The daemon writes `last-good.conf`: whoever has taken it over writes into it what root is to read.
    @Test func rootReadsTheLastGoodConfigurationWithTheRightsOfItsOwner() throws {
        let rig = try Rig()
        let (state, secret) = (rig.path("state"), rig.path("secret"))
        try rig.shell("chmod 711 \(rig.directory.path); mkdir -m 700 \(state); (umask 77; echo key > \(secret))")
        try rig.configure(
            source: Rig.log(drive, follow: true), endpoint: "auth = { kind = \"bearer\", token = \"file:\(secret)\" }")
        let environment = ["STATE_DIRECTORY": state]
        let daemon = try rig.startDaemon(environment: environment)
        try daemon.waitFor("waypost 0.")
        #expect(eventually(within: 20) { access("\(state)/last-good.conf", F_OK) == 0 ? true : nil } == true)
        try rig.shell("chown -R nobody \(state); echo '[' >> \(rig.path("waypost.toml"))")
        // What it names is root's alone: the queue, the control socket and a secret.
        func fails(_ command: String...) throws -> String {
            let call = try rig.call(command + ["--config", rig.path("waypost.toml")], environment: environment)
            #expect(call.status != 0, "\(call.text)")
            return call.text
        }
        #expect(try fails("queue", "list").contains("cannot be opened"))
        #expect(try fails("status").contains("connect \(rig.path("control.sock")): Permission denied"))
        #expect(try rig.call(["status", "--socket", rig.path("control.sock")]).status < 2)
        // Nor does root run what it says.
        #expect(try fails("run").contains("belongs to another user"))
        // A link of theirs in the place of the socket leads root nowhere.
        try rig.shell("ln -s \(rig.path("control.sock")) \(state)/s; chown -h nobody \(state)/s")
        let linked = try rig.call(["status", "--socket", "\(state)/s"])
        #expect(linked.status == 2 && linked.text.contains("a link that another user can set"), "\(linked.text)")
        try daemon.stop()
    }

    /// Members of the group of the socket; others cannot even ask.
    @Test func theGroupMayAskAndNotDelete() throws {
        let rig = try Rig()
        try rig.configure(source: Rig.log(drive, follow: true))
        try rig.reconfigure("[control]", to: "[control]\ngroup = \"nogroup\"")
        try rig.shell("chmod 711 \(rig.directory.path)")
        // Rows of another device wait for a bind or a drop.
        let first = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 > 50 }
        try first.stop()
        try rig.reconfigure("id = \"rig\"", to: "id = \"van\"")
        let daemon = try rig.startDaemon()
        try daemon.waitFor("waypost 0.")
        func ask(_ command: String, group: String = "nogroup") throws -> (status: Int32, text: String) {
            let user = "setpriv --reuid nobody --regid \(group) --clear-groups"
            let program = try RunningProgram(
                shell: "exec 2>&1 \(user) $waypost \(command) --socket \(rig.path("control.sock"))", in: rig.directory)
            return (try program.exitStatus(within: 20), program.text)
        }
        let status = try ask("status --json")
        let seen = [status.text, daemon.text]
        #expect(status.status < 2 && seen.allSatisfy { !$0.contains("52.51") && !$0.contains("latitude") })
        #expect(try ask("pace moving").status == 0)
        let orders: [String] = [
            "endpoint bind main --force", "endpoint drop main", "queue forget other", "quarantine drop --all",
        ]
        for order in orders {
            let refused = try ask(order)
            #expect(refused.status == 1 && refused.text.contains("this is for root and for the user"), "\(refused)")
        }
        #expect(try ask("status", group: "daemon").text.contains("not permitted: use sudo"))
        try daemon.stop()
    }

    @Test func theUserOfTheDaemonCannotReadItsMemory() throws {
        let rig = try Rig()
        try rig.configure(source: Rig.log(drive, follow: true))
        let user = "setpriv --reuid nobody --regid nogroup --clear-groups"
        try rig.shell("chown -R nobody \(rig.directory.path)")
        let daemon = try RunningProgram(
            shell: "exec \(user) $waypost run --config \(rig.path("waypost.toml"))", in: rig.directory)
        try daemon.waitFor("waypost 0.")
        try rig.shell("\(user) cat /proc/\(daemon.processID)/cmdline > /dev/null")
        try rig.shell("! \(user) cat /proc/\(daemon.processID)/environ > /dev/null 2>&1")
        try daemon.stop()
    }

    @Test func theOdometerOutlivesAStartWithoutADisk() throws {
        let rig = try Rig()
        let disk = try SmallDisk(rig)
        try configure(rig, on: disk)
        try rig.reconfigure("playback = 300.0", to: "playback = 20.0")
        let first = try rig.startDaemon()
        try first.waitFor("stationary since")
        let set = try rig.waypost(["odometer", "set", "5000000", "--socket", rig.path("control.sock")])
        #expect(try set.exitStatus(within: 60) == 0)
        try first.stop()
        // Another file system stands before the queue, of which nothing is to be seen.
        try disk.run("mount -t tmpfs -o ro waypost \(disk.path)")
        let second = try rig.startDaemon()
        try second.waitFor("check owner and mode")
        try rig.waitFor("motion", "odometer") { (1..<5_000_000).contains($0 as? Double ?? 0) }
        try disk.run("umount \(disk.path)")
        try rig.waitFor("motion", "odometer", within: 60) { $0 as? Double ?? 0 > 5_000_000 }
        try second.stop()
    }

    /// The index of the log is mapped by those who look at a queue: a page of it that found no blocks would end them, and
    /// the daemon that lets them in, with SIGBUS.
    @Test func aDiskOfSmallBlocksThatIsFullEndsNothingBySignal() throws {
        let rig = try Rig()
        let image = rig.path("image")
        let disk = try SmallDisk(
            rig, mounting: "truncate -s 6M \(image) && mkfs.ext4 -q -b 1024 \(image) && mount -o loop \(image) $DISK")
        try configure(rig, on: disk)
        // Slow enough that most rows are still to come when the disk is full: they need more than the log has room for.
        try rig.reconfigure("playback = 300.0", to: "playback = 20.0")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 >= 50 }
        daemon.kill(SIGKILL)
        _ = try daemon.exitStatus(within: 20)
        // Room for one block of each page, and not for all four.
        let fill = "for size in 64k 1k; do dd if=/dev/zero bs=$size >> filler 2>/dev/null; done"
        try disk.run("cd \(disk.path); rm -f outbox.db-shm; \(fill); truncate -s -12K filler; sync -f filler")
        let later = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 > 0 }
        try disk.run("cd \(disk.path); \(fill); sync -f filler")
        try rig.waitFor("queue", "commit_failed") { $0 as? Int ?? 0 > 0 }
        for _ in 0..<3 {
            let look = try rig.waypost(["queue", "--path", disk.path + "/outbox.db"])
            #expect(try (0...78).contains(look.exitStatus(within: 60)))
            // With the index that the look has left, as far as there was room.
            try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 > 0 }
        }
        try disk.run("rm \(disk.path)/filler")
        try later.waitFor("written to disk again", within: 40)
        #expect(later.isRunning)
    }

    /// A network of its own, in which `wwan0` is the only way out, and `eth7` may become another.
    private final class Network {
        let name = "waypost-\(UUID().uuidString.prefix(8))"
        private let rig: Rig

        init(_ rig: Rig) throws {
            self.rig = rig
            try run("ip netns add \(name)")
            try run("\(inside) ip link set lo up")
            try connect("wwan0", "10.99.0.2/24")
        }

        var inside: String { "ip netns exec \(name)" }

        func connect(_ interface: String, _ address: String) throws {
            try run("\(inside) ip link add \(interface) type veth peer name \(interface)-far")
            try run("\(inside) ip addr add \(address) dev \(interface)")
            try run("\(inside) ip link set \(interface) up; \(inside) ip link set \(interface)-far up")
        }

        func run(_ line: String) throws { try rig.shell(line) }

        deinit { try? run("ip netns del \(name)") }
    }

    @Test func aMeteredLinkHoldsUntilTheKernelReportsAnotherRoute() throws {
        let rig = try Rig()
        let network = try Network(rig)
        try rig.configure(
            source: Rig.log(drive, follow: true),
            endpoint: "batch_window = \"100ms\"\ntimeout = \"2s\"\nmetered = \"hold\"")
        try rig.reconfigure("127.0.0.1:9", to: "10.99.0.1:9")
        let daemon = try RunningProgram(
            shell: "exec \(network.inside) $waypost run --config \(rig.path("waypost.toml"))", in: rig.directory)
        let held = try rig.waitFor("motion", "kept") { $0 as? Int ?? 0 >= 724 }
        let endpoint = try #require(held.list("endpoints").first)
        #expect(endpoint.string("interface") == "wwan0" && endpoint.int("requests") == 0, "\(endpoint)")
        #expect(endpoint.words("held").contains("wwan0"))
        // Nothing asks again and again: what wakes it is the message of the kernel.
        try network.connect("eth7", "10.99.0.3/32")
        try network.run("\(network.inside) ip route add 10.99.0.1/32 dev eth7")
        try daemon.waitFor("no longer metered")
        try network.run("\(network.inside) ip link set eth7 down")
        try daemon.waitFor("the route to it is over wwan0, which is metered", within: 20)
        try daemon.stop()
    }

    @Test func aDiskThatIsFullForAWhileCostsNothing() throws {
        let rig = try Rig()
        let disk = try SmallDisk(rig)
        try rig.startCollector()
        try configure(rig, on: disk)
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "state") { $0 as? String == "moving" }
        try disk.run("cat /dev/zero > \(disk.path)/filler 2>/dev/null; test -s \(disk.path)/filler")
        let status = try rig.waitFor("queue", "commit_failed") { ($0 as? Int ?? 0) > 0 }
        #expect(status.string("health") == "degraded" && status.words("problems").contains("free some space"))
        try disk.run("rm \(disk.path)/filler")
        #expect(try daemon.exitStatus(within: 60) == 0)
        let (received, expected) = try (rig.received(), rig.replayed(drive))
        #expect(received.map(\.timeMs) == expected.map(\.timeMs))
        #expect(received.map(\.seq) == Array(1...max(1, expected.count)))
    }
}
