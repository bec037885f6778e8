import TestSupport
import Testing
import WaypostCore

@testable import Places
@testable import WaypostTracking

/// Lists of a server, drives and deaths of the process, all at random: what is recorded is paired for ever.
@Suite struct FencePairingTests {
    private static let plane = LocalPlane(origin: Coordinate(latitude: 52, longitude: 13)!)
    private static let start = UTCTime(milliseconds: 1_700_000_000_000)

    /// Few ids, so that the same fence comes with other shapes and names.
    private func reply(_ random: inout SeededGenerator, around place: PlanePoint) -> [UInt8] {
        let fences = (0..<8).filter { _ in Int.random(in: 0..<3, using: &random) > 0 }.map { id in
            let centre = Self.plane.coordinate(
                place
                    + PlanePoint(
                        east: .random(in: -400...400, using: &random), north: .random(in: -400...400, using: &random)))
            let radius = Int.random(in: 10...300, using: &random)
            return #"{"id":"f\#(id)","name":"Fence \#(id)","radius":\#(radius),"#
                + #""center":{"lat":\#(centre.latitude),"lon":\#(centre.longitude)}}"#
        }
        return Array(#"{"geofences":[\#(fences.joined(separator: ","))]}"#.utf8)
    }

    private struct Books {
        var inside: Set<String> = []
        var crossings = 0
        /// The first that has no other half, or not the names of its fence.
        var wrong: GeofenceCrossing?

        mutating func enter(_ effects: [Effect]) {
            for case .record(let record) in effects {
                guard let crossing = record.geofence else { continue }
                crossings += 1
                let isPaired =
                    switch crossing.action {
                    case .enter: inside.insert(crossing.id).inserted
                    case .exit: inside.remove(crossing.id) != nil
                    case .dwell: inside.contains(crossing.id)
                    }
                let own = String(crossing.id.dropFirst("venue/".count))
                let isNamed = crossing.serverID == own && crossing.name == "Fence \(own.dropFirst())"
                if wrong == nil, !isPaired || !isNamed { wrong = crossing }
            }
        }
    }

    @Test(arguments: testSeeds(0..<15)) func enterAndExitAlternate(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var books = Books()
        var place = PlanePoint.zero
        var seconds = 0.0
        var state: StoredState?
        // What is on disk: the list is there before it is in force.
        var kept: [UInt8]?

        for _ in 0..<10 {
            var lists = JoinedLists<Geofence>(own: [], sources: ["venue"])
            // Sometimes the stored list is damaged, which is as none.
            if let kept, Int.random(in: 0..<8, using: &random) > 0 {
                _ = try lists.received(FenceList.read(kept, .mapping(.accessoVenue), source: "venue"), of: "venue")
            }
            var settings = Tracker.Settings(trackables: [Trackable(id: "a")])
            settings.geofences.fences = lists.joined
            var tracker = Tracker(settings: settings, restored: state)
            let origin = seconds
            var speed = 0.0
            for _ in 0..<Int.random(in: 3...200, using: &random) {
                if Int.random(in: 0..<15, using: &random) == 0 {
                    speed = [0, 0, 3, 12, 25].randomElement(using: &random)!
                }
                seconds += Int.random(in: 0..<80, using: &random) == 0 ? 200 : 1
                let heading = Double.random(in: -1...1, using: &random)
                place = place + PlanePoint(east: speed * heading, north: speed * (1 - abs(heading)))
                let at = EventTime(nanoseconds: Int64((seconds - origin) * 1e9))
                while let due = tracker.nextDeadline, due < at {
                    books.enter(tracker.handle(.deadlineReached, at: due))
                    guard tracker.nextDeadline.map({ $0 > due }) ?? true else { break }
                }
                if Int.random(in: 0..<40, using: &random) == 0 {
                    let next = reply(&random, around: place)
                    kept = next
                    // It may be killed between the two.
                    if Int.random(in: 0..<6, using: &random) == 0 { break }
                    let fences = try FenceList.read(next, .mapping(.accessoVenue), source: "venue")
                    _ = try lists.received(fences, of: "venue")
                    books.enter(tracker.handle(.fencesChanged(lists.joined), at: at - .milliseconds(100)))
                }
                let time = Self.start + .milliseconds(Int64(seconds * 1000))
                let fix = Fix(
                    time: time, timeOfDay: time.timeOfDay, at: at, coordinate: Self.plane.coordinate(place),
                    horizontalAccuracy: .random(in: 2...30, using: &random), speed: speed, mode: .threeD)
                books.enter(tracker.handle(.fixReceived(fix), at: at))
            }
            state = StoredState(bytes: tracker.state.bytes)
            #expect(state == tracker.state, "seed \(seed)")
            seconds += Double.random(in: 1...1000, using: &random)
        }
        #expect(books.wrong == nil, "seed \(seed)")
        #expect(books.crossings > 0, "seed \(seed)")
    }
}
