@testable import Places
@testable import WaypostCore
@testable import WaypostTracking

/// libFuzzer entry: any text is a list of geofences in each of its forms or has mistakes, named in few words; a fence that is
/// taken is one that the configuration would take, and no position outside of its rectangle is near it. The monitor takes all
/// of them, and fixes at their corners and beside them. The same text may be a list of beacon regions, or one that was stored.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFences(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    demand(kinds.allSatisfy { $0.inForceMax > 0 }, "a kind of list that may have no item")
    for form in forms {
        do throws(ListProblems) { check(try FenceList.read(bytes, form, source: "venue")) } catch { check(error) }
    }
    for mapping in [.accessoBeacons, regions] {
        do throws(ListProblems) { check(try BeaconList.read(bytes, mapping)) } catch { check(error) }
    }
    if let stored = StoredList(bytes) { demand(StoredList(stored.bytes) == stored, "a stored list does not come back") }
    return 0
}

/// Named for the linker, which leaves out what nothing calls: at run time metadata is made of these conformances.
private let kinds: [any ListedItem.Type] = [Geofence.self, BeaconRegion.self]

private let regions: BeaconMapping = {
    var mapping = BeaconMapping()
    mapping.uuid = ["proximityUUID"]
    mapping.major = ["major"]
    mapping.minor = ["minor"]
    mapping.name = ["name"]
    return mapping
}()

private func check(_ problems: ListProblems) {
    demand((1...21).contains(problems.lines.count), "\(problems.lines.count) mistakes are named")
    for problem in problems.lines {
        demand(problem.utf8.count <= 1024, "a mistake in \(problem.utf8.count) bytes: \(problem.prefix(200))")
    }
}

/// Each is a region of its own, and its id leads back to it.
private func check(_ regions: [BeaconRegion]) {
    demand(regions.count <= 256, "\(regions.count) regions")
    demand(Set(regions.map(\.id)).count == regions.count, "a region comes twice")
    demand(BeaconMonitor(regions).regions == regions, "the monitor has other regions")
    for region in regions {
        var plain = region
        plain.name = nil
        demand(BeaconRegion(id: region.id) == plain, "the id \(region.id)")
        demand(region.name.map { (1...128).contains($0.utf8.count) } ?? true, "the name of \(region.id)")
    }
}

private let forms: [FenceList.Form] = {
    var mapping = FenceMapping()
    mapping.list = ["features"]
    mapping.name = ["properties", "name"]
    mapping.radius = ["properties", "radius"]
    mapping.latitude = ["geometry", "coordinates", "1"]
    mapping.longitude = ["geometry", "coordinates", "0"]
    mapping.polygon = ["geometry", "coordinates", "0"]
    mapping.dwell = ["properties", "dwell"]
    return [.geoJSON, .mapping(.accessoVenue), .mapping(mapping)]
}()

private func check(_ fences: [Geofence]) {
    var ids: Set<String> = []
    for fence in fences {
        demand(ids.insert(fence.id).inserted, "two fences \(fence.id)")
        demand(fence.serverID.map { "venue/\($0)" } == fence.id, "the id \(fence.id)")
        demand((1...128).contains(fence.id.utf8.count - 6), "an id of \(fence.id.utf8.count) bytes")
        demand(fence.name.map { $0.utf8.count <= 128 } ?? true, "a name without end")
        demand(fence.flaw == nil, "a fence with \(String(describing: fence.flaw)) was taken")
        demand(fence.dwell.map { (.seconds(1)...(.seconds(30 * 86_400))).contains($0) } ?? true, "its dwell")
        guard let area = FenceArea(fence.shape) else { fatalError("\(fence) has no area") }
        demand(area.size.isFinite && area.size >= 0, "a size of \(area.size)")
        for place in places(at: fence) {
            let distance = area.signedDistance(to: place)
            demand(distance.isFinite, "no distance from \(place)")
            // The largest hysteresis.
            demand(
                distance > 30 || area.bounds.contains(place), "\(place) is \(distance) m from \(fence), out of bounds")
        }
    }
    if !fences.isEmpty { visit(fences) }
}

/// The corners of a fence, or points of its circle, and places some metres away from them.
private func places(at fence: Geofence) -> [Coordinate] {
    var corners: [Coordinate]
    switch fence.shape {
    case .polygon(let vertices): corners = Array(vertices.prefix(40))
    case .circle(let centre, let radius):
        let reach = Int64(radius * 90)
        corners = [centre]
        for (north, east) in [(reach, Int64(0)), (-reach, 0), (0, reach), (0, -reach)] {
            corners.append(moved(centre, north, east))
        }
    }
    return corners.flatMap { corner in
        [corner] + [(2500, 0), (-2500, 0), (0, 2500), (0, -2500)].map { moved(corner, $0, $1) }
    }
}

/// - Parameters:
///   - north: 1e-7 degree.
///   - east: the same.
private func moved(_ place: Coordinate, _ north: Int64, _ east: Int64) -> Coordinate {
    let whole: Int64 = 3_600_000_000
    var longitude = (Int64(place.longitudeE7) + east) % whole
    if longitude > whole / 2 { longitude -= whole }
    if longitude < -whole / 2 { longitude += whole }
    return Coordinate(
        latitudeE7: Int32(max(-900_000_000, min(900_000_000, Int64(place.latitudeE7) + north))),
        longitudeE7: Int32(longitude))
}

/// A drive from fence to fence.
private func visit(_ fences: [Geofence]) {
    var settings = Tracker.Settings(trackables: [Trackable(id: "van")])
    settings.geofences.fences = fences
    settings.geofences.initialEnter = true
    var run = TrackerRun(tracker: Tracker(settings: settings, restored: nil))
    var second: Int64 = 0
    var inside: Set<String> = []
    for fence in fences.prefix(8) {
        for place in places(at: fence).prefix(12) {
            for _ in 0..<4 {
                second += 5
                var fix = Fix(
                    time: UTCTime(milliseconds: 1_700_000_000_000 + second * 1000),
                    timeOfDay: Int(second % 86_400) * 1000, at: EventTime(nanoseconds: second * 1_000_000_000),
                    coordinate: place, mode: .threeD, quality: .gps)
                fix.horizontalAccuracy = 4
                run.epochReceived(.fix(fix), at: fix.at) { effect, _ in
                    guard case .record(let location) = effect, let crossing = location.geofence else { return }
                    switch crossing.action {
                    case .enter: demand(inside.insert(crossing.id).inserted, "entered \(crossing.id) twice")
                    case .exit: demand(inside.remove(crossing.id) != nil, "left \(crossing.id) without having entered")
                    case .dwell: demand(inside.contains(crossing.id), "dwelled outside of \(crossing.id)")
                    }
                }
            }
        }
    }
    let snapshot = run.tracker.snapshot
    demand(snapshot.fences == fences.count || fences.count > GeofenceMonitor.fencesMax, "\(snapshot.fences) fences")
    demand(snapshot.fencesRefused == 0, "\(snapshot.fencesRefused) fences were taken, and then refused")
    let state = run.tracker.state
    demand(StoredState(bytes: state.bytes) == state, "the stays do not come back")
}
