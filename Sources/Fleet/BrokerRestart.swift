import DriveSimulation
import WaypostCore

/// A broker restarts under connections that are kept open: when each of them comes back.
///
/// It accepts so many connections per second, and refuses the others.
package struct BrokerRestart: Sendable {
    /// Attempts to connect in each second.
    package private(set) var attempts: [Int] = []
    /// Connections accepted per second.
    package let accepts: Int
    /// Until all are connected, in seconds.
    package var lasts: Int { attempts.count }
    package var peak: Int { attempts.max() ?? 0 }
    package var total: Int { attempts.reduce(0, +) }

    private static let longest = 7200

    /// - Parameters:
    ///   - connections: that are closed at second 0.
    ///   - accepts: connections per second, 1 or more.
    package init(connections: Int, accepts: Int, seed: UInt64) {
        self.accepts = max(1, accepts)
        var random = SplitMix64(seed: seed)
        var coming = [[ReconnectDelay]](repeating: [], count: Self.longest)
        func schedule(_ delay: ReconnectDelay, after start: Double, _ random: inout SplitMix64) {
            var delay = delay
            // Not in a second that has been counted.
            let second = max(attempts.count, Int(start + delay.lost(jitter: random.unit()).seconds))
            if second < coming.count { coming[second].append(delay) }
        }
        var connected = ReconnectDelay()
        connected.connected()
        for _ in 0..<connections { schedule(connected, after: 0, &random) }
        var left = connections
        var second = 0
        while left > 0, second < coming.count {
            attempts.append(coming[second].count)
            left -= min(coming[second].count, self.accepts)
            for refused in coming[second].dropFirst(self.accepts) {
                schedule(refused, after: Double(second) + random.unit(), &random)
            }
            coming[second] = []
            second += 1
        }
    }
}
