import WaypostCore

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

        /// Believed, but [schedule] excludes its time.
        static let outsideHours = Verdict(kind: .seen, reason: "schedule")
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
    /// That are used; of a void epoch those in view.
    private(set) var satellites: [Int32] = []
    /// Metres above mean sea level; `unknownAltitude` = unknown.
    private(set) var altitudes: [Int32] = []
    /// Places in `verdicts`.
    private(set) var judged: [Int32] = []
    private(set) var verdicts: [Verdict] = []
    /// Rows before which others were hidden.
    private(set) var cuts: [Int] = []
    /// Epochs that are left out, since their time does not fit to that of the others. One that repeats a time is none of them.
    private(set) var leftOut = 0

    static let unknownAltitude: Int32 = -32_768
    /// Milliseconds without a row that part two recordings.
    private static let recordingPause: Int64 = 366 * 86_400_000

    private var places: [Verdict: Int32] = [:]

    var count: Int { times.count }

    func coordinate(_ row: Int) -> Coordinate {
        Coordinate(latitudeE7: latitudes[row], longitudeE7: longitudes[row])
    }

    func verdict(_ row: Int) -> Verdict { verdicts[Int(judged[row])] }

    /// Whether it has a fix that the tracker believed.
    func isBelieved(_ row: Int) -> Bool {
        let kind = verdict(row).kind
        return kind == .seen || kind == .kept
    }

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
                satellites: void.satellitesInView, altitude: nil)
            judge(count - 1, Verdict(kind: .void))
        }
        return count - 1
    }

    mutating func judge(_ row: Int, _ verdict: Verdict) { judged[row] = place(of: verdict) }

    /// The receiver's clock was set back to this time: what has this time or a later one was dated wrongly.
    mutating func rewind(to time: Int64) {
        let first = row(from: time)
        let wrong = count - first
        leftOut += wrong
        // Not as `keep`: a clock that is set back again and again would copy the table each time.
        times.removeLast(wrong)
        latitudes.removeLast(wrong)
        longitudes.removeLast(wrong)
        speeds.removeLast(wrong)
        accuracies.removeLast(wrong)
        satellites.removeLast(wrong)
        altitudes.removeLast(wrong)
        judged.removeLast(wrong)
    }

    /// Where rows lie more than a year apart, the longest part of the table stays: a receiver that knows no date yet may say 1980,
    /// and one wrong date far away would leave no room for the others on any axis.
    mutating func keepLongestRecording() {
        let starts =
            [0] + times.indices.dropFirst().filter { times[$0] - times[$0 - 1] > Self.recordingPause } + [count]
        let parts = zip(starts, starts.dropFirst()).map { $0..<$1 }
        guard parts.count > 1, let longest = parts.max(by: { $0.count < $1.count }) else { return }
        leftOut += count - longest.count
        keep(Array(longest))
    }

    /// The longest time between two rows, in milliseconds, and when it began; nil with less than two rows.
    var longestSilence: (from: Int64, length: Int64)? {
        times.indices.dropFirst().map { (from: times[$0 - 1], length: times[$0] - times[$0 - 1]) }
            .max { $0.length < $1.length }
    }

    /// The median time between rows, of the first thousands; nil with less than two rows.
    var usualInterval: Int64? {
        let times = times.prefix(5000)
        let intervals = zip(times, times.dropFirst()).map { $1 - $0 }.sorted()
        return intervals.isEmpty ? nil : intervals[intervals.count / 2]
    }

    /// Metres, of all fixes that have one, rising.
    var sortedAccuracies: [Double] {
        (0..<count).filter { verdict($0).kind != .void && accuracies[$0] >= 0 }.map { accuracies[$0] }.sorted()
            .map { Double($0) / 10 }
    }

    /// What the receiver saw of the sky while it had no fix, for people.
    var satellitesMeanwhile: String {
        let seen = (0..<count).filter { verdict($0).kind == .void && satellites[$0] >= 0 }.map { satellites[$0] }
        guard let least = seen.min(), let most = seen.max() else { return "not reported" }
        return least == most ? "\(most)" : "\(least) to \(most)"
    }

    /// The rows with believed fixes before and after a time, or at it.
    func believedRows(around time: Int64) -> [Int] {
        let next = row(from: time)
        return [(0..<next).last(where: isBelieved), (next..<count).first(where: isBelieved)].compactMap(\.self)
    }

    /// Leaves out the believed fixes whose place is hidden, and what lies beside them: a fix that was not believed may be near
    /// the same place, and so may those outside of the hours that are tracked, where no end of a trip is known.
    mutating func hide(where isHidden: (Coordinate) -> Bool) {
        let shown = (0..<count).map { isBelieved($0) && verdict($0) != .outsideHours && !isHidden(coordinate($0)) }
        var isBesideShown = shown
        var last = false
        for row in 0..<count {
            if isBelieved(row) { last = shown[row] } else { isBesideShown[row] = last }
        }
        last = false
        for row in (0..<count).reversed() {
            if isBelieved(row) { last = shown[row] } else { isBesideShown[row] = isBesideShown[row] && last }
        }
        let rows = (0..<count).filter { isBesideShown[$0] && !isHidden(coordinate($0)) }
        cuts = rows.indices.dropFirst().filter { rows[$0] > rows[$0 - 1] + 1 }
        keep(rows)
    }

    /// Leaves out all rows but these, which rise.
    private mutating func keep(_ rows: [Int]) {
        guard rows.count < count else { return }
        times = rows.map { times[$0] }
        latitudes = rows.map { latitudes[$0] }
        longitudes = rows.map { longitudes[$0] }
        speeds = rows.map { speeds[$0] }
        accuracies = rows.map { accuracies[$0] }
        satellites = rows.map { satellites[$0] }
        altitudes = rows.map { altitudes[$0] }
        judged = rows.map { judged[$0] }
    }

    private mutating func accepted(_ time: UTCTime?) -> Int64? {
        guard let time = time?.milliseconds else { return nil }
        guard let last = times.last, time <= last else { return time }
        if time < last { leftOut += 1 }
        return nil
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
    /// The first element with this value or a greater one, of elements that rise by it; `count` when there is none.
    func firstIndex<Value: Comparable>(from value: Value, by key: KeyPath<Element, Value>) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle][keyPath: key] < value { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
