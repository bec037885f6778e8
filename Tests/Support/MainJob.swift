import Foundation

/// The main job on one log, with what may go wrong on the way: used on our own drive and on recorded ones.
public enum MainJob {
    /// Runs the log to its end into a collector and returns what arrived, next to what replay says.
    public static func run(
        _ log: String, collector: [String] = [], endpoint: String = ""
    ) throws -> (received: [Rig.Received], expected: [Rig.Kept]) {
        let rig = try Rig()
        try rig.startCollector(collector)
        try rig.configure(source: source(log), endpoint: endpoint)
        let daemon = try rig.startDaemon()
        guard try daemon.exitStatus(within: 120) == 0 else { throw RunningProgram.Unfinished(text: daemon.text) }
        return (try rig.received(), try rig.replayed(log))
    }

    /// Kills the daemon at random moments and starts it again until the log is done.
    /// - Returns: what arrived, and how often it was killed.
    public static func runKilling(
        _ log: String, times: Int, seed: UInt64
    ) throws -> (received: [Rig.Received], expected: [Rig.Kept], kills: Int) {
        var random = SeededGenerator(seed: seed)
        let rig = try Rig()
        try rig.startCollector()
        // Slow enough that every life gets somewhere and none gets to the end.
        try rig.configure(source: source(log), outbox: "commit_window = \"20ms\"")
        var kills = 0
        while kills < times {
            let daemon = try rig.startDaemon()
            if daemon.ended(within: Double.random(in: 0.03...0.25, using: &random)) {
                guard try daemon.exitStatus(within: 1) == 0 else { throw RunningProgram.Unfinished(text: daemon.text) }
                // The log is done: the remaining kills hit starts, uploads and ends.
                try Data().write(to: URL(fileURLWithPath: rig.path("done")))
            }
            daemon.kill(SIGKILL)
            kills += 1
        }
        let last = try rig.startDaemon()
        guard try last.exitStatus(within: 120) == 0 else { throw RunningProgram.Unfinished(text: last.text) }
        return (try rig.received(), try rig.replayed(log), kills)
    }

    private static func source(_ log: String) -> String {
        "kind = \"file\"\npath = \"\(log)\"\nplayback = \"max\""
    }

    /// The first expected location that has no received one within `milliseconds`; nil when all have. Heartbeats are
    /// left out: their time is counted from the last record or start, and nothing is behind them that could be lost.
    public static func firstHole(
        _ received: [Rig.Received], _ expected: [Rig.Kept],
        milliseconds: Int
    ) -> Int? {
        let times = received.map(\.timeMs).sorted()
        for location in expected where location.event != "heartbeat" {
            var (low, high) = (0, times.count)
            while low < high {
                let middle = (low + high) / 2
                if times[middle] < location.timeMs - milliseconds { low = middle + 1 } else { high = middle }
            }
            if low == times.count || times[low] > location.timeMs + milliseconds { return location.timeMs }
        }
        return nil
    }
}
