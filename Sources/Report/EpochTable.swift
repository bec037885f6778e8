import Positioning

/// What a log measured, a row for each epoch, and what became of each.
struct EpochTable {
    /// What became of an epoch.
    struct Verdict: Hashable {
        enum Kind: String {
            /// Believed, and not kept.
            case seen
            case kept
            case refused
            /// The receiver had no position.
            case void
        }

        var kind: Kind
        /// The word for why it was kept or refused.
        var reason: String?
    }

    /// Unix milliseconds, rising.
    private(set) var times: [Int64] = []
    /// Degrees · 10⁷; of a void epoch those of the last fix.
    private(set) var latitudes: [Int32] = []
    private(set) var longitudes: [Int32] = []
    /// cm/s; -1 = unknown, here and below.
    private(set) var speeds: [Int32] = []
    /// Decimetres.
    private(set) var accuracies: [Int32] = []
    private(set) var satellites: [Int32] = []
    /// Metres above mean sea level; `unknownAltitude` = unknown.
    private(set) var altitudes: [Int32] = []
    /// Places in `verdicts`.
    private(set) var judged: [Int32] = []
    private(set) var verdicts: [Verdict] = []
    /// Epochs that are left out: they are not later than one before.
    private(set) var timeSteps = 0

    static let unknownAltitude: Int32 = -32_768

    private var places: [Verdict: Int32] = [:]

    var count: Int { times.count }

    func coordinate(_ row: Int) -> Coordinate {
        Coordinate(latitudeE7: latitudes[row], longitudeE7: longitudes[row])
    }

    func verdict(_ row: Int) -> Verdict { verdicts[Int(judged[row])] }

    /// The first row at this time or later; `count` when there is none.
    func row(from time: Int64) -> Int { times.firstIndex(from: time, by: \.self) }

    /// The row of this very time; nil when no epoch has it.
    func row(at time: Int64) -> Int? {
        let row = row(from: time)
        return row < count && times[row] == time ? row : nil
    }

    /// The rows of a span of time, both ends included.
    func rows(from start: Int64, through end: Int64) -> Range<Int> {
        let first = row(from: start)
        return first..<max(first, end == .max ? count : row(from: end + 1))
    }

    /// - Returns: its row; nil for an epoch that has no time, or none that is later than that before.
    mutating func append(_ epoch: Epoch) -> Int? {
        switch epoch {
        case .fix(let fix):
            guard let time = accepted(fix.time) else { return nil }
            append(
                time, fix.coordinate, speed: fix.speed, accuracy: fix.horizontalAccuracy,
                satellites: fix.satellitesUsed, altitude: fix.altitudeMSL)
            judge(count - 1, Verdict(kind: .seen))
        case .void(let void):
            // Before the first fix there is no place to show it at.
            guard let latitude = latitudes.last, let longitude = longitudes.last, let time = accepted(void.time) else {
                return nil
            }
            append(
                time, Coordinate(latitudeE7: latitude, longitudeE7: longitude), speed: nil, accuracy: nil,
                satellites: void.satellitesUsed, altitude: nil)
            judge(count - 1, Verdict(kind: .void))
        }
        return count - 1
    }

    mutating func judge(_ row: Int, _ verdict: Verdict) { judged[row] = place(of: verdict) }

    /// Leaves out the rows for which `isHidden` holds.
    mutating func hide(where isHidden: (Coordinate) -> Bool) {
        let kept = (0..<count).filter { !isHidden(coordinate($0)) }
        guard kept.count < count else { return }
        times = kept.map { times[$0] }
        latitudes = kept.map { latitudes[$0] }
        longitudes = kept.map { longitudes[$0] }
        speeds = kept.map { speeds[$0] }
        accuracies = kept.map { accuracies[$0] }
        satellites = kept.map { satellites[$0] }
        altitudes = kept.map { altitudes[$0] }
        judged = kept.map { judged[$0] }
    }

    private mutating func accepted(_ time: UTCTime?) -> Int64? {
        guard let time = time?.milliseconds else { return nil }
        guard time > times.last ?? .min else {
            timeSteps += 1
            return nil
        }
        return time
    }

    private mutating func append(
        _ time: Int64, _ coordinate: Coordinate, speed: Double?, accuracy: Double?, satellites: Int?, altitude: Double?
    ) {
        times.append(time)
        latitudes.append(coordinate.latitudeE7)
        longitudes.append(coordinate.longitudeE7)
        speeds.append(Self.scaled(speed, by: 100) ?? -1)
        accuracies.append(Self.scaled(accuracy, by: 10) ?? -1)
        self.satellites.append(satellites.map { Int32(clamping: $0) } ?? -1)
        altitudes.append(Self.scaled(altitude, by: 1) ?? Self.unknownAltitude)
        judged.append(0)
    }

    private static func scaled(_ value: Double?, by factor: Double) -> Int32? {
        value.flatMap { $0.isFinite ? Int32(max(-32_767, min(1e9, ($0 * factor).rounded()))) : nil }
    }

    private mutating func place(of verdict: Verdict) -> Int32 {
        if let place = places[verdict] { return place }
        let place = Int32(verdicts.count)
        verdicts.append(verdict)
        places[verdict] = place
        return place
    }
}

extension Array {
    /// The first element at this time or later, of elements that rise in time; `count` when there is none.
    func firstIndex(from time: Int64, by key: KeyPath<Element, Int64>) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle][keyPath: key] < time { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
