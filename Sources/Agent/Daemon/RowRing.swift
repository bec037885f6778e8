import Delivery
import Outbox
import Positioning

/// Rows in memory, oldest first, up to a bound: what waits for a commit, and what a disk that refuses does not take.
///
/// While the disk refuses they can be sent from here. A row has a number of its own from the moment it comes, so that a key
/// made of an episode's uuid and this number names one record only.
struct RowRing {
    struct Held {
        var row: NewRow
        var number: Int64
        /// Endpoints that are being sent this row from memory.
        var sending: Set<String> = []
    }

    private(set) var held: [Held] = []
    private var lastNumber: Int64 = 0
    /// Rows that were given up for want of memory.
    private(set) var dropped = 0
    /// Rows that left because everybody who must have them got them from here.
    private(set) var sent = 0
    /// Of the pass of thinning that is under way; 0 = none.
    private var thinLevel = 0

    var rows: [NewRow] { held.map(\.row) }
    var count: Int { held.count }
    var isEmpty: Bool { held.isEmpty }
    var isSending: Bool { held.contains { !$0.sending.isEmpty } }

    mutating func append(_ row: NewRow) {
        lastNumber += 1
        held.append(Held(row: row, number: lastNumber))
    }

    mutating func takeAll() -> [Held] {
        defer { held = [] }
        thinLevel = 0
        return held
    }

    /// Rows that a commit did not store, ahead of those that came since.
    mutating func putBack(_ rows: [Held]) { held = rows + held }

    /// Keeps the bound as the queue would: plain fixes before events, never a row that is being sent if others can go.
    mutating func limit(to count: Int, onFull: OutboxSettings.OnFull, bound: Double) {
        guard held.count > max(1, count) else { return }
        if onFull == .thin { thin(to: count - count / 10, bound: bound) }
        while held.count > max(1, count) {
            func canGo(_ held: Held) -> Bool { held.sending.isEmpty && held.row.location.event.isPlain }
            let index = onFull == .dropNewest ? held.lastIndex(where: canGo) : held.firstIndex(where: canGo)
            held.remove(at: index ?? held.firstIndex { $0.sending.isEmpty } ?? 0)
            dropped += 1
        }
    }

    private mutating func thin(to count: Int, bound: Double) {
        while held.count > count, !(thinLevel > 0 && TrackThinning.isCoarsest(level: thinLevel, bound: bound)) {
            thinLevel += 1
            var tracks: [String?: [Int]] = [:]
            for index in held.indices { tracks[held[index].row.location.trackable, default: []].append(index) }
            var superfluous: Set<Int> = []
            for track in tracks.values {
                let points = track.map { index in
                    let location = held[index].row.location
                    return TrackThinning.Point(
                        time: location.time, coordinate: location.coordinate,
                        isFixed: !location.event.isPlain || !held[index].sending.isEmpty)
                }
                let tolerance = TrackThinning.tolerance(level: thinLevel, bound: bound)
                superfluous.formUnion(TrackThinning.superfluous(points, tolerance: tolerance).map { track[$0] })
            }
            held = held.indices.filter { !superfluous.contains($0) }.map { held[$0] }
            dropped += superfluous.count
        }
    }

    /// The oldest rows that this endpoint wants and has not had.
    func waiting(for endpoint: EndpointSettings) -> [Held] {
        held.filter { endpoint.wants($0.row.location) && !$0.row.settledFor.contains(endpoint.name) }
    }

    func count(for endpoint: EndpointSettings) -> Int {
        held.count { endpoint.wants($0.row.location) && !$0.row.settledFor.contains(endpoint.name) }
    }

    func isSending(to endpoint: String) -> Bool { held.contains { $0.sending.contains(endpoint) } }

    /// Marks rows as being sent to an endpoint.
    mutating func send(_ numbers: Set<Int64>, to endpoint: String) {
        for index in held.indices where numbers.contains(held[index].number) { held[index].sending.insert(endpoint) }
    }

    /// What was being sent to an endpoint was answered. Rows that all have who must have them leave.
    /// - Parameter had: the numbers of those that the endpoint has, or is never to have.
    mutating func settle(_ endpoint: String, had: Set<Int64>, among endpoints: [EndpointSettings]) {
        let owners = endpoints.filter { $0.backupFor == nil }
        let needing = owners.contains(where: \.required) ? owners.filter(\.required) : owners
        for index in held.indices where held[index].sending.remove(endpoint) != nil && had.contains(held[index].number)
        {
            held[index].row.settledFor.append(endpoint)
        }
        held.removeAll { held in
            let names = Set(held.row.settledFor)
            guard !names.isEmpty, held.sending.isEmpty,
                needing.allSatisfy({ !$0.wants(held.row.location) || names.contains($0.name) })
            else { return false }
            sent += 1
            return true
        }
    }

    /// Nothing is being sent any more, as far as anybody knows.
    mutating func abandonSending() {
        for index in held.indices { held[index].sending = [] }
    }
}

extension LocationEvent {
    /// Plain fixes and heartbeats give way to all others.
    fileprivate var isPlain: Bool { self == .none || self == .heartbeat }
}

extension EndpointSettings {
    func wants(_ location: Location) -> Bool { feed == .engine || location.published }
}
