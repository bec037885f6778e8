import CSimDisk
import Configuration
import Daemon
import Logging
import Queue
import Testing
import WaypostCore

@testable import Simworld

extension SimulatedDiskTests {
    /// The whole daemon with a queue that was damaged, on a clock that costs no time.
    @Suite(.serialized) struct RecoveryTests {
        @Test(.bug(id: 11)) func theReceiverIsNotAskedToBindBeforeAllRowsAreBack() throws {
            let bench = Bench()
            bench.network.behaves("alpha", .refused)
            try bench.live(for: 800, device: "van-7")
            try bench.damage()
            bench.network.behaves("alpha", .good)
            let bind = #"{"do":"endpoint","action":"bind","endpoint":"alpha","force":true}"#
            try bench.live(for: 120, device: "van-8", [(0.5, bind), (60, bind)])
            #expect(bench.replies[0].contains(#""busy""#), "\(bench.replies)")
            #expect(bench.replies[1].contains(#""ok":true"#), "\(bench.replies)")
            let requests = bench.lines.filter { $0.hasPrefix("alpha: ") }
            #expect(requests.first == "alpha: bind" && requests.count > 1)
            #expect(requests.filter { $0 == "alpha: bind" }.count == 1)
        }

        /// It had everything, and is held only until it is certain that nothing that is brought back is for it.
        @Test(.bug(id: 11)) func anEndpointThatIsReleasedSends() throws {
            let bench = Bench()
            bench.network.behaves("alpha", .refused)
            try bench.live(for: 1200, device: "van-7")
            try bench.damage()
            try bench.live(for: 0.5, device: "van-7")
            try bench.live(for: 300, device: "van-8", [(0.5, Bench.status), (299, Bench.status)])
            #expect(bench.replies[0].contains(#""rebind""#), "\(bench.replies)")
            #expect(bench.states == [["rebind", "rebind"], ["rebind", "active"]])
            #expect(bench.lines.contains { $0.hasPrefix("beta: ") })
        }

        /// The address was mistyped, and no server has accepted anything at it.
        @Test func whatNoServerAcceptedGoesToAnotherAddress() throws {
            let bench = Bench()
            for name in ["alpha", "beta"] { bench.network.behaves(name, .refused) }
            try bench.live(for: 300, device: "van-7")
            bench.network.behaves("alpha", .good)
            bench.network.behaves("beta", .good)
            try bench.live(for: 300, device: "van-7", path: "/v2", [(299, Bench.status)])
            #expect(bench.states == [["active", "active"]])
            #expect(bench.waiting == [0, 0])
            let notices = bench.lines.filter {
                $0.contains("base_url has changed, and the server at the old address had")
            }
            #expect(notices.count == 2, "\(bench.lines)")
            // Now it has.
            bench.network.behaves("alpha", .refused)
            try bench.live(for: 300, device: "van-7", path: "/v2")
            try bench.live(for: 300, device: "van-7", path: "/v3", [(299, Bench.status)])
            #expect(bench.states == [["rebind", "active"]])
        }

        @Test(.bug(id: 11)) func rowsOfAnEndpointThatIsNoLongerConfiguredAreSpokenOf() throws {
            let bench = Bench()
            bench.network.behaves("alpha", .refused)
            try bench.live(for: 300, device: "van-7")
            let rows = try #require(bench.waiting.first)
            for _ in 0..<2 {
                try bench.live(for: 120, device: "van-7", endpoints: ["beta"])
                let line = "endpoint alpha is no longer configured: \(rows) locations"
                #expect(bench.lines.contains { $0.hasPrefix(line) }, "\(bench.lines)")
            }
        }

        /// The daemon began without knowing that rows of another device wait.
        @Test(.bug(id: 11), arguments: [false, true]) func whatADiskReportsLateIsHeld(isDamaged: Bool) throws {
            let bench = Bench()
            bench.network.behaves("alpha", .refused)
            try bench.live(for: 300, device: "van-7")
            let rows = try #require(bench.waiting.first)
            if isDamaged { try bench.damage() }
            simdisk_set(Int32(simdisk_fail_read), 1_000_000)
            bench.network.behaves("alpha", .good)
            try bench.live(for: 300, device: "van-8", [(30, Bench.status), (299, Bench.status)]) {
                simdisk_set(Int32(simdisk_fail_read), 0)
            }
            #expect(bench.states == [["active", "active"], ["rebind", "active"]])
            #expect(try #require(bench.waiting.first) >= rows)
        }
    }

    /// A daemon that sends to two servers, and drives.
    private final class Bench {
        static let status = #"{"do":"status"}"#
        let host: SimulatedHost
        let network: SimulatedNetwork
        private let asset: Asset
        /// What the servers get, and what the daemon answers.
        private final class Kept {
            var lines: [String] = []
        }
        private let kept = Kept()
        var lines: [String] { kept.lines }
        private(set) var replies: [String] = []
        private(set) var waiting: [Int] = []

        init() {
            simdisk_reset(7)
            let epochMs: Int64 = 1_790_000_000_000
            host = SimulatedHost(
                dice: Dice(seed: 1), at: EventTime(nanoseconds: 100_000_000_000), wallOffsetMs: epochMs)
            let kept = kept
            network = SimulatedNetwork(
                host: host, oracle: RequestOracle(Books(host: host)), dice: Dice(seed: 2), contactDice: Dice(seed: 3)
            ) {
                kept.lines.append($0())
            }
            for name in ["alpha", "beta"] {
                network.servers[name] = .init(
                    endpoint: WorldEndpoint(name: name, profile: "bound", binds: true, identity: name))
            }
            asset = Asset(dice: Dice(seed: 3), at: host.time, epochMs: epochMs, isLong: false)
        }

        /// One process. Nothing is received in its last minute, and it ends in good order.
        ///
        /// - Parameters:
        ///   - orders: what an operator asks, and when; `replies` has the answers.
        ///   - later: what happens to the world a minute after the start.
        func live(
            for seconds: Double, device: String, path: String = "", endpoints: [String] = ["alpha", "beta"],
            _ orders: [(at: Double, line: String)] = [], later: @escaping () -> Void = {}
        ) throws {
            (replies, kept.lines) = ([], [])
            let config = try AgentConfig.parse(
                [("waypost.toml", Array(Self.text(device, path, endpoints).utf8))],
                environment: ConfigurationEnvironment(
                    variables: [:], hostname: { "sim" }, machineID: { "0123456789abcdef" })
            ).config
            let host = host
            let world = SimulatedWriter.World(
                host: host, dice: Dice(seed: 4), duration: { .milliseconds(5) }, committed: { _, _ in }, died: {})
            let edges = Edges(
                host: host, medium: SimulatedMedium { host.bootTime.nanoseconds }, bootID: nil,
                makeWriter: { SimulatedWriter($0, world: world) }, uplink: network,
                source: SimulatedReceiver(asset: asset, host: host), isDaemon: false)
            let kept = kept
            let sink = WorldLog.Sink { _, text in kept.lines.append(text) }
            let agent = try Agent(
                config: config, environment: [:], logger: Logger(label: "") { _ in WorldLog(sink: sink) },
                options: Agent.Options(), edges: edges)
            try agent.eventLoop.watch(SimulatedHost.worldDescriptor) { _, _ in host.runActions() }
            func after(_ seconds: Double, _ action: @escaping () -> Void) {
                host.after(.milliseconds(Int64(seconds * 1000)), ofProcess: true, action)
            }
            for (at, line) in orders {
                after(at) { [unowned self] in
                    agent.ask(Array(line.utf8), peer: 0) { [unowned self] reply in
                        replies.append(String(decoding: reply, as: UTF8.self))
                    }
                }
            }
            asset.reception = .good
            after(max(0, seconds - 60)) { [asset] in asset.reception = .silent }
            after(60, later)
            after(seconds) { agent.terminate() }
            network.opened()
            agent.start()
            try agent.eventLoop.run()
            waiting = agent.backlog.map(\.1)
            _ = agent.end()
            network.close()
            simdisk_kill()
            host.processEnded()
        }

        /// States of the endpoints, of each reply that contains them.
        var states: [[String]] {
            replies.map { reply in
                reply.components(separatedBy: #""state":""#).dropFirst().map { String($0.prefix { $0 != "\"" }) }
                    .filter { ["active", "rebind"].contains($0) }
            }
        }

        /// The queue is of another program, by its header.
        func damage() throws {
            let queue = try #require(Handle("/sim/outbox.db"))
            try #require(queue.run("PRAGMA application_id = 5; PRAGMA wal_checkpoint(TRUNCATE)"))
        }

        private static func text(_ device: String, _ path: String, _ endpoints: [String]) -> String {
            """
            [device]
            id = "\(device)"
            [source]
            kind = "udp"
            port = 10110
            [control]
            socket = "/sim/control.sock"
            [outbox]
            path = "/sim/outbox.db"
            commit_window = "1s"
            [sampling]
            rule = "either"
            [profile.bound]
            extends = "waypost"
            [profile.bound.bind]
            url = "${base_url}/bind"
            body = { device = "$device" }
            \(endpoints.map { name in
                """
                [[endpoint]]
                name = "\(name)"
                base_url = "https://\(name).example\(path)"
                profile = "bound"
                batch_window = "\(name == "beta" ? 1 : 60)s"
                """
            }.joined(separator: "\n"))
            """
        }
    }
}
