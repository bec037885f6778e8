@testable import Daemon
@testable import Queue
@testable import Sensors
@testable import WaypostCore
@testable import WaypostNMEA
@testable import WaypostTracking

/// libFuzzer entry: what a queue tells of the process before may be any bytes. The daemon goes on from it or starts afresh;
/// what it takes comes back as it is when it is stored again, and keeps its meaning. The first byte says what the rest is.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzStored(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    switch input.byte() % 6 {
    case 0: takeTracker(input.all())
    case 1: takeSource(input.all())
    case 2: takeSalvage(input.all())
    case 3: takeList(&input)
    case 4: takeRanges(&input)
    default: takeRetention(Int64(bitPattern: input.number(bytes: 8)))
    }
    return 0
}

/// A tracker goes on from any state: an hour of fixes, and another restart in between.
private func takeTracker(_ bytes: [UInt8]) {
    guard let state = StoredState(bytes: bytes) else { return }
    demand(StoredState(bytes: state.bytes) == state, "a state that changes by being stored")
    var settings = Tracker.Settings(trackables: [Trackable(id: "van"), Trackable(id: "trailer")])
    settings.tripSummary = true
    settings.geofences.fences = [
        Geofence(
            id: "depot",
            shape: .circle(centre: Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_000_000), radius: 200),
            dwell: .seconds(60))
    ]
    // Later than what is stored, at the same time, and long before.
    let lasts = [state.lastFix?.time.milliseconds ?? 0, 1_700_000_000_000]
    for start in lasts {
        let fresh = Tracker(settings: settings, restored: state)
        if state.isUsable { check(fresh, as: state) }
        var run = TrackerRun(tracker: fresh)
        drive(&run, from: start)
        let next = run.tracker.state
        demand(next.isUsable, "a state that cannot be used")
        demand(StoredState(bytes: next.bytes) == next, "a state that does not come back")
        run = TrackerRun(tracker: Tracker(settings: settings, restored: next))
        check(run.tracker, as: next)
        drive(&run, from: start &- 86_400_000)
    }
}

/// What people see goes on.
private func check(_ tracker: Tracker, as state: StoredState) {
    let told = tracker.state
    demand(
        told.odometer == state.odometer || state.odometer < 0, "an odometer of \(told.odometer), not \(state.odometer)")
    demand(told.moving == state.moving || !state.announced || state.lastFix == nil, "motion was forgotten")
    demand(told.lastFix == state.lastFix, "the last fix was forgotten")
    demand(told.released == state.released, "the receiver was woken")
}

private func drive(_ run: inout TrackerRun, from start: Int64) {
    for step in 0..<60 {
        let at = EventTime(nanoseconds: Int64(step) * 60_000_000_000)
        let time = start.addingReportingOverflow(Int64(step) * 60_000)
        guard !time.overflow, time.partialValue.magnitude < 1_000_000_000_000_000 else { return }
        var fix = Fix(
            time: UTCTime(milliseconds: time.partialValue), timeOfDay: step * 60_000, at: at,
            coordinate: Coordinate(latitudeE7: 525_200_000, longitudeE7: 134_000_000 + Int32(max(0, step - 20) * 5000)),
            mode: .threeD, quality: .gps)
        fix.horizontalAccuracy = 4
        fix.speed = step < 20 ? 0 : 8
        run.epochReceived(.fix(fix), at: at) { effect, _ in
            guard case .record(let location) = effect else { return }
            demand(location.odometer.isFinite, "an odometer of \(location.odometer)")
            if let trip = location.trip {
                demand(trip.distance.isFinite && trip.idle.isFinite, "a trip of \(trip.distance) m, \(trip.idle) s")
            }
        }
    }
}

private func takeSource(_ bytes: [UInt8]) {
    guard let memory = SourceMemory(bytes: bytes) else { return }
    demand(SourceMemory(bytes: memory.bytes) == memory, "a memory that changes by being stored")
    guard let position = memory.position else { return }
    // As a file that is long enough for the place is read.
    var decoder = NMEADecoder(settings: .init(), resume: position.resume)
    let log = Array("$GPRMC,080005.00,A,5231.2000,N,01324.2000,E,12.00,90.0,020326,,,A*67\r\n".utf8)
    decoder.decode(log.span, at: .zero) { _, _ in }
    decoder.endOfInput { _, place in
        demand(place.offset >= position.resume.offset, "it went back to \(place.offset)")
    }
}

private func takeSalvage(_ bytes: [UInt8]) {
    let plan = SalvagePlan(bytes: bytes)
    demand(plan.parts.count <= 8192, "\(plan.parts.count) parts")
    demand(SalvagePlan(bytes: plan.bytes) == plan, "a plan that changes by being stored")
}

private func takeList(_ input: inout Input) {
    let first = Int64(bitPattern: input.number(bytes: 8))
    let last = Int64(bitPattern: input.number(bytes: 8))
    let bytes = input.all()
    guard let seqs = SequenceList.decode(bytes, from: first, through: last) else { return }
    demand(zip(seqs, seqs.dropFirst()).allSatisfy { $0 < $1 }, "numbers that do not rise")
    demand(seqs.first.map { $0 >= first } ?? true, "numbers before the first")
    demand(seqs.last.map { $0 <= last } ?? true, "numbers behind the last")
    let again = SequenceList.encode(seqs, from: first)
    demand(SequenceList.decode(again, from: first, through: last) == seqs, "a list that changes by being stored")
}

/// Small ranges against a set, and their neighbours at the end of all numbers.
private func takeRanges(_ input: inout Input) {
    let isLast = input.byte() & 1 == 1
    let base = isLast ? Int64.max - 300 : 0
    var ranges = SequenceRanges()
    var model: Set<Int64> = []
    while !input.isOver {
        let choice = input.byte()
        let first = base + Int64(input.byte())
        let last = first + Int64(choice >> 4)
        switch choice & 3 {
        case 0:
            ranges.formUnion([first...last])
            model.formUnion(first...last)
        case 1:
            ranges.removeThrough(first)
            // A range goes once all of it may.
            model = model.filter { number in
                (number...base + 300).first { !model.contains($0) }.map { $0 - 1 > first } ?? true
            }
        case 2:
            guard model.max().map({ first > $0 }) ?? true else { continue }
            ranges.append(first)
            model.insert(first)
        default:
            let bounds = first...last
            demand(
                ranges.parts(within: bounds).flatMap { Array($0) } == bounds.filter { model.contains($0) },
                "other parts of \(bounds)")
            demand(ranges.overlaps(bounds) == bounds.contains { model.contains($0) }, "overlaps \(bounds)")
        }
        demand(ranges.ranges.flatMap { Array($0) } == model.sorted(), "\(ranges.ranges) is not \(model.sorted())")
        demand(
            zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound - 1 }
                || choice & 3 == 2, "ranges that touch each other")
    }
}

private func takeRetention(_ number: Int64) {
    let retention = Retention(stored: number)
    demand(Retention(stored: retention.stored).stored == retention.stored, "a pass that changes by being stored")
}
