import Foundation

/// The main job on one log, with what may go wrong on the way: used on our own drive and on recorded ones.
package enum MainJob {
    /// Runs the log to its end into a collector and returns what arrived, next to what replay says.
    package static func run(
        _ log: String, collector: [String] = [], endpoint: String = ""
    ) throws -> (received: [Rig.Received], expected: [Rig.Kept]) {
        try run(collector, endpoint) { _ in log }
    }

    /// The same with a part of the demo drive.
    package static func run(
        _ part: DemoDrive.Part, collector: [String] = [], endpoint: String = ""
    ) throws -> (received: [Rig.Received], expected: [Rig.Kept]) {
        try run(collector, endpoint) { try $0.write(part) }
    }

    private static func run(
        _ collector: [String], _ endpoint: String, _ log: (Rig) throws -> String
    ) throws -> (received: [Rig.Received], expected: [Rig.Kept]) {
        let rig = try Rig()
        let log = try log(rig)
        try rig.startCollector(collector)
        try rig.configure(source: Rig.log(log), endpoint: endpoint)
        try rig.runDaemon(within: 120)
        try checkNothingWasRefused(rig)
        return (try rig.received(), try rig.replayed(log))
    }

    /// What became of a log whose daemon was killed again and again.
    package struct Survival {
        package var received: [Rig.Received]
        package var expected: [Rig.Kept]
        package var kills = 0
        /// The newest row on disk after each kill that left one: sequence number and time.
        package var stored: [(seq: Int, time: String)] = []

        /// Rows that were on disk and did not arrive, or arrived as something else.
        package var lost: [Int] {
            let times = Dictionary(received.map { ($0.seq, $0.timeMs) }, uniquingKeysWith: { first, _ in first })
            let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            return stored.filter { row in
                guard let time = try? Date(row.time, strategy: format) else { return true }
                return times[row.seq] != Int((time.timeIntervalSince1970 * 1000).rounded())
            }.map(\.seq)
        }
    }

    /// Kills the daemon at random moments, starts it again each time, and at last lets it finish.
    package static func runKilling(_ log: String, times: Int, seed: UInt64) throws -> Survival {
        var random = SeededGenerator(seed: seed)
        let rig = try Rig()
        try rig.startCollector()
        // Slow enough that every life gets somewhere and none gets to the end at once.
        try rig.configure(source: Rig.log(log), outbox: "commit_window = \"20ms\"")
        var survival = Survival(received: [], expected: try rig.replayed(log))
        while survival.kills < times {
            let daemon = try rig.startDaemon()
            if daemon.ended(within: Double.random(in: 0.03...0.25, using: &random)),
                try daemon.exitStatus(within: 1) != 0
            {
                throw RunningProgram.Unfinished(text: daemon.text)
            }
            daemon.kill(SIGKILL)
            survival.kills += 1
            if let row = try rig.newestRow() { survival.stored.append(row) }
        }
        try rig.runDaemon(within: 120)
        try checkNothingWasRefused(rig)
        survival.received = try rig.received()
        return survival
    }

    /// The collector refuses a batch whose id came before with other rows, which is how rows would vanish in silence.
    private static func checkNothingWasRefused(_ rig: Rig) throws {
        let summary = try rig.stopCollector()
        guard summary.contains("refused: 0") else { throw RunningProgram.Unfinished(text: summary) }
    }

    /// The first expected location that has no received one within `milliseconds`; nil when all have. Heartbeats are
    /// left out: their time is counted from the last record or start, and nothing is behind them that could be lost.
    package static func firstHole(
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

/// Whether each number is greater than the one before it.
package func isRising(_ numbers: [Int]) -> Bool { zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 } }
