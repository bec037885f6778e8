/// The events that a page may still ask for, oldest first. What is older than the limit of bytes is forgotten.
struct LiveHistory {
    /// How much of it a reader has.
    struct Position: Equatable {
        /// Which life of the collector the number belongs to.
        var run: String
        /// Of the last event that was read; 0 before the first.
        var number: Int

        init(run: String, number: Int) {
            self.run = run
            self.number = number
        }

        /// - Parameter id: as in `Last-Event-ID`; nil when it is no id of ours.
        init?(id: String) {
            let parts = id.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int(parts[1]), number >= 0 else { return nil }
            self.init(run: String(parts[0]), number: number)
        }

        var id: String { "\(run)-\(number)" }
    }

    /// The most that is handed out at once, unless a single event is larger.
    private static let chunkBytes = 64 << 10

    private let run: String
    private let bytesMax: Int
    private var events: [[UInt8]] = []
    /// Events before this index are forgotten; they are removed many at a time.
    private var first = 0
    private var bytes = 0
    private var newest = 0

    /// - Parameters:
    ///   - run: distinguishes this life of the collector from others; letters and digits.
    ///   - bytesMax: of all events together.
    init(run: String, bytesMax: Int) {
        self.run = run
        self.bytesMax = bytesMax
    }

    /// Before the oldest event that is left.
    var beginning: Position { Position(run: run, number: newest - (events.count - first)) }

    /// - Parameter data: one line of JSON.
    mutating func append(_ name: String, _ data: [UInt8]) {
        newest += 1
        let event = Self.event(name, data, at: Position(run: run, number: newest))
        events.append(event)
        bytes += event.count
        while bytes > bytesMax, first < events.count {
            bytes -= events[first].count
            events[first] = []
            first += 1
        }
        if first > 1000, first > events.count / 2 {
            events.removeFirst(first)
            first = 0
        }
    }

    func knows(_ position: Position) -> Bool {
        position.run == run && (beginning.number...newest).contains(position.number)
    }

    /// The next events after a position that it knows, and where they end. Nil when there is none yet.
    func events(after position: Position) -> (bytes: [UInt8], end: Position)? {
        var index = first + position.number - beginning.number
        guard index < events.count else { return nil }
        var (bytes, end) = (events[index], position.number + 1)
        index += 1
        while index < events.count, bytes.count + events[index].count <= Self.chunkBytes {
            bytes += events[index]
            (index, end) = (index + 1, end + 1)
        }
        return (bytes, Position(run: run, number: end))
    }

    /// One event as it is on the wire. Without a position a reader that comes back is not affected by it.
    static func event(_ name: String, _ data: [UInt8], at position: Position?) -> [UInt8] {
        let id = position.map { "id: \($0.id)\n" } ?? ""
        return Array("event: \(name)\n\(id)data: ".utf8) + data + Array("\n\n".utf8)
    }
}
