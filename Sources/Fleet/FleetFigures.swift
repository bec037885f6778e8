import WaypostCore

/// What the server sees, second by second from the beginning of the run.
package struct FleetFigures: Sendable {
    private var requests: [Int32]
    private var handshakes: [Int32]
    /// Connections opened less those closed.
    private var connections: [Int32]
    /// Of requests, answers and handshakes.
    package private(set) var bytes = 0
    package private(set) var rowsAccepted = 0
    private let counted: Range<Int>

    /// Bytes of a row in the native format with gzip, measured on recorded drives.
    private static let rowBytes = 35
    /// Heads of request and answer, and what TLS adds, measured.
    private static let requestBytes = 520
    /// Both directions, with a chain of two certificates.
    private static let handshakeBytes = 4500

    /// - Parameter counted: seconds.
    init(counted: Range<Int>) {
        self.counted = counted
        requests = [Int32](repeating: 0, count: counted.upperBound)
        handshakes = requests
        connections = requests
    }

    mutating func requested(rows: Int, at now: EventTime) {
        guard let second = second(now) else { return }
        requests[second] += 1
        if counted.contains(second), rows > 0 { bytes += Self.requestBytes + rows * Self.rowBytes }
    }

    mutating func handshake(at now: EventTime) {
        guard let second = second(now) else { return }
        handshakes[second] += 1
        if counted.contains(second) { bytes += Self.handshakeBytes }
    }

    mutating func connected(from start: EventTime, to end: EventTime) {
        guard let first = second(start) else { return }
        connections[first] += 1
        if let last = second(end) { connections[last] -= 1 }
    }

    mutating func accepted(_ rows: Int) { rowsAccepted += rows }

    private func second(_ time: EventTime) -> Int? {
        let second = Int(time.nanoseconds / 1_000_000_000)
        return requests.indices.contains(second) ? second : nil
    }
}

extension FleetFigures {
    /// Requests in these seconds, as far as they were counted.
    package func requests(_ seconds: Range<Int>? = nil) -> Int { Self.sum(requests, within(seconds)) }
    package func handshakes(_ seconds: Range<Int>? = nil) -> Int { Self.sum(handshakes, within(seconds)) }

    /// Requests per second in these seconds.
    package func rate(_ seconds: Range<Int>? = nil) -> Double {
        Double(requests(seconds)) / Double(max(1, within(seconds).count))
    }

    /// The most requests per second in any window of this length that lies in these seconds.
    package func peak(window: Int, _ seconds: Range<Int>? = nil) -> Double {
        Self.peak(requests, window, within(seconds))
    }

    package func handshakePeak(window: Int, _ seconds: Range<Int>? = nil) -> Double {
        Self.peak(handshakes, window, within(seconds))
    }

    /// The most connections that were open at once.
    package var connectionPeak: Int {
        var open = 0
        var peak = 0
        for (second, change) in connections.enumerated() {
            open += Int(change)
            if counted.contains(second) { peak = max(peak, open) }
        }
        return peak
    }

    private func within(_ seconds: Range<Int>?) -> Range<Int> { seconds.map { $0.clamped(to: counted) } ?? counted }

    private static func sum(_ counts: [Int32], _ seconds: Range<Int>) -> Int {
        counts[seconds].reduce(0) { $0 + Int($1) }
    }

    private static func peak(_ counts: [Int32], _ window: Int, _ seconds: Range<Int>) -> Double {
        guard window > 0, seconds.count >= window else { return 0 }
        var sum = Self.sum(counts, seconds.lowerBound..<seconds.lowerBound + window)
        var peak = sum
        for second in seconds.dropFirst(window) {
            sum += Int(counts[second]) - Int(counts[second - window])
            peak = max(peak, sum)
        }
        return Double(peak) / Double(window)
    }
}
