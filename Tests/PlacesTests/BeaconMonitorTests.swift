import TestSupport
import Testing
import WaypostCore

@testable import Places

@Suite struct BeaconMonitorTests {
    private static let uuid = ProximityUUID("F7826DA6-4FA2-4E98-8024-BC5B71E0893E")!
    private static let region = BeaconRegion(uuid: uuid, major: 123, name: "hall")

    private func at(_ seconds: Double) -> EventTime { .zero + .milliseconds(Int64(seconds * 1000)) }

    private func beacon(_ major: UInt16, _ minor: UInt16) -> Beacon {
        Beacon(uuid: Self.uuid, major: major, minor: minor)
    }

    private func scanning(_ regions: [BeaconRegion] = [region]) -> BeaconMonitor {
        var monitor = BeaconMonitor(regions)
        monitor.scanStarted(at: .zero)
        return monitor
    }

    private func see(
        _ monitor: inout BeaconMonitor, at seconds: Double, major: UInt16 = 123, minor: UInt16 = 1, power: Int8 = -59,
        rssi: Int? = -70
    ) -> [BeaconMonitor.Event] {
        let advertisement = BeaconAdvertisement(beacon: beacon(major, minor), measuredPower: power)
        return monitor.sighted(advertisement, rssi: rssi, at: at(seconds))
    }

    /// Seen at 0 and at 1 s.
    private func inside() -> BeaconMonitor {
        var monitor = scanning()
        _ = see(&monitor, at: 0) + see(&monitor, at: 1)
        return monitor
    }

    @Test func theSecondSightingWithin25SecondsEnters() {
        var monitor = scanning()
        // The second one is the same, reported twice.
        for seconds in [0, 0.05, 26] { #expect(see(&monitor, at: seconds) == []) }
        #expect(see(&monitor, at: 50, minor: 2) == [.entered(Self.region)])
        #expect(see(&monitor, at: 51) == [.sighted(beacon(123, 1))])
        #expect(see(&monitor, at: 52) == [])
        #expect(monitor.inside == [Self.region])
    }

    @Test func beaconsOfOtherRegionsAreNothing() {
        var monitor = scanning()
        let events = (0..<10).flatMap { see(&monitor, at: Double($0), major: 124, rssi: nil) }
        #expect(events == [] && monitor.nearest(at: at(10)) == nil)
    }

    @Test func thirtySecondsOfScanningWithoutASightingLeave() {
        var monitor = inside()
        #expect(monitor.nextDeadline == at(31))
        #expect(monitor.deadlineReached(at: at(30.9)) == [])
        #expect(monitor.deadlineReached(at: at(31)) == [.left(Self.region, isRemoved: false), .leftAll])
        #expect(monitor.nextDeadline == nil && monitor.deadlineReached(at: at(100)) == [])
    }

    @Test func timeWithoutScanningDoesNotCount() {
        var monitor = inside()
        #expect(monitor.scanStopped(at: at(10)) == [])
        #expect(monitor.nextDeadline == nil && monitor.deadlineReached(at: at(3600)) == [])
        // Windows of 10 s in each minute: 9 s, 10 s, 10 s, and the first second of the fourth.
        for start in [60.0, 120] {
            monitor.scanStarted(at: at(start))
            #expect(monitor.scanStopped(at: at(start + 10)) == [])
        }
        monitor.scanStarted(at: at(180))
        #expect(monitor.nextDeadline == at(181))
        #expect(monitor.deadlineReached(at: at(181)) != [])
    }

    @Test func oneLongWindowIsNotEnough() {
        var monitor = inside()
        #expect(monitor.scanStopped(at: at(9)) == [])
        monitor.scanStarted(at: at(100))
        #expect(!see(&monitor, at: 101).contains(.sighted(beacon(123, 1))))
        #expect(monitor.nextDeadline == at(131))
    }

    /// The host slept: nobody looked for that long, and the beacon is there.
    @Test func aSightingAfterALongPauseIsNoExit() {
        var monitor = inside()
        #expect(see(&monitor, at: 600) == [])
        #expect(monitor.inside == [Self.region])
    }

    @Test func theNearestIsTheOneReceivedBestForItsPower() {
        var monitor = scanning()
        for second in [0.0, 1, 2, 3, 4] {
            _ = see(&monitor, at: second) + see(&monitor, at: second, minor: 2, power: -80, rssi: -75)
        }
        // Weaker, but sent with much less.
        #expect(monitor.nearest(at: at(5))?.minor == 2)
        #expect(monitor.nearest(at: at(20)) == nil)
    }

    /// Each number is seen twice: somebody sends another one each time.
    @Test func newBeaconsOfARegionAreRecordedUpToALimit() {
        let (hall, part) = (BeaconRegion(uuid: Self.uuid), BeaconRegion(uuid: Self.uuid, major: 0))
        var monitor = scanning([hall, part])
        var recorded = 0
        var seconds = 0.0
        for number in 0..<12_000 {
            for _ in 0..<2 {
                let events = see(&monitor, at: seconds, major: 0, minor: UInt16(number))
                recorded += events.count { if case .sighted = $0 { true } else { false } }
                seconds += 0.15
            }
        }
        // An hour: a burst, and then one a minute.
        let most = 2 * BeaconMonitor.newBeaconsMax
        #expect(recorded >= most - 2 && recorded <= most + 1, "\(recorded)")
        // But for the first, before the regions are entered.
        #expect(monitor.unrecorded + recorded >= 11_990 && monitor.crowdedRegion == part)
    }

    /// What was recorded once is recorded again after ten minutes, whatever else comes meanwhile.
    @Test func aKnownBeaconIsNotLimited() {
        var monitor = inside()
        var records: [Int] = []
        for second in 2..<1300 {
            _ = see(&monitor, at: Double(second), minor: UInt16(1000 + second))
            _ = see(&monitor, at: Double(second) + 0.2, minor: UInt16(1000 + second))
            if see(&monitor, at: Double(second) + 0.5).contains(.sighted(beacon(123, 1))) { records.append(second) }
        }
        // The first time when the region was entered.
        #expect(records == [601, 1201] && monitor.unrecorded > 1000)
    }

    @Test func theBeaconThatWasNotSeenForTheLongestIsForgotten() {
        var random = SeededGenerator(seed: 7)
        var tracks = BeaconTracks()
        var model: [Beacon] = []
        for step in 0..<20_000 {
            let seen = beacon(0, UInt16.random(in: 0..<400, using: &random))
            let isKnown = tracks.seen(seen) { known in
                (BeaconTracks.Track(measuredPower: 0, at: .zero, first: .zero), known != nil)
            }
            let place = model.firstIndex(of: seen)
            if isKnown != (place != nil) {
                Issue.record("step \(step)")
                return
            }
            if let place { model.remove(at: place) }
            model = (model + [seen]).suffix(BeaconTracks.countMax)
            guard step % 1000 == 999 else { continue }
            tracks.keep { $0.minor % 7 != 0 }
            model.removeAll { $0.minor % 7 == 0 }
            let kept = Set(tracks.all.map { $0.beacon })
            #expect(kept == Set(model))
        }
    }

    /// What a server takes away while the asset is inside is left, and what it gives is entered.
    @Test func anotherListKeepsPresenceAndEndsWhatIsGone() {
        let (gone, new) = (BeaconRegion(uuid: Self.uuid, major: 7), BeaconRegion(uuid: Self.uuid, major: 8))
        var monitor = scanning([Self.region, gone])
        for second in [0.0, 1] {
            _ = see(&monitor, at: second, rssi: nil) + see(&monitor, at: second, major: 7, rssi: nil)
        }
        #expect(monitor.inside.count == 2)
        #expect(monitor.regionsChanged([Self.region], at: at(3)) == [.left(gone, isRemoved: true)])
        #expect(monitor.inside == [Self.region] && see(&monitor, at: 3.5, major: 7) == [])
        #expect(monitor.regionsChanged([Self.region, gone, new], at: at(4)) == [])
        #expect(monitor.inside == [Self.region])
        _ = see(&monitor, at: 5, major: 8)
        #expect(see(&monitor, at: 6, major: 8).contains(.entered(new)))
    }

    @Test func aRestartGoesOnWhereTheAssetWas() {
        var monitor = BeaconMonitor([Self.region])
        let gone = BeaconRegion(uuid: Self.uuid, major: 9, minor: 2)
        #expect(monitor.resumed([Self.region.id, gone.id], at: .zero) == [.left(gone, isRemoved: true)])
        monitor.scanStarted(at: .zero)
        #expect(monitor.nextDeadline == at(30))
        #expect(see(&monitor, at: 29, rssi: nil) == [])
        #expect(monitor.deadlineReached(at: at(58)) == [])
    }

    /// For each region ENTER and EXIT alternate, over lists, restarts and any order of sightings and windows.
    @Test(arguments: testSeeds(0..<50)) func enterAndExitArePaired(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let all: [BeaconRegion] = (0..<5).map { BeaconRegion(uuid: Self.uuid, major: $0) }
        var monitor = scanning(all)
        var now = 0.0
        var inside: Set<BeaconRegion> = []
        for step in 0..<400 {
            now += Double.random(in: 0...20, using: &random)
            var events: [BeaconMonitor.Event] = []
            switch Int.random(in: 0..<12, using: &random) {
            case 0: monitor.scanStarted(at: at(now))
            case 1: events = monitor.scanStopped(at: at(now))
            case 2: events = monitor.deadlineReached(at: at(now))
            case 3:
                let some = all.filter { _ in Bool.random(using: &random) }
                events = monitor.regionsChanged(some, at: at(now))
            case 4:
                let stored = monitor.stored
                monitor = BeaconMonitor(all.filter { _ in Int.random(in: 0..<4, using: &random) > 0 })
                events = monitor.resumed(stored, at: at(now))
            default: events = see(&monitor, at: now, major: UInt16.random(in: 0..<6, using: &random), rssi: -60)
            }
            let wrong = events.first { event in
                switch event {
                case .entered(let region): !inside.insert(region).inserted
                case .left(let region, _): inside.remove(region) == nil
                case .sighted(let beacon): !inside.contains { $0.contains(beacon) }
                case .leftAll: !inside.isEmpty
                }
            }
            guard wrong == nil, Set(monitor.inside) == inside else {
                Issue.record("seed \(seed), step \(step): \(events), inside \(monitor.inside)")
                return
            }
        }
    }
}

@Suite struct BeaconAdvertisementTests {
    private static let bytes: [UInt8] = [
        0x02, 0x15, 0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71, 0xE0, 0x89, 0x3E,
        0x00,
        0x7B, 0x01, 0x02, 0xC5,
    ]

    @Test func readsAnIBeacon() throws {
        let advertisement = try #require(BeaconAdvertisement(manufacturerData: Self.bytes))
        #expect(advertisement.beacon.description == "F7826DA6-4FA2-4E98-8024-BC5B71E0893E/123/258")
        #expect(advertisement.measuredPower == -59)
        #expect(Beacon(advertisement.beacon.description) == advertisement.beacon)
        #expect(BeaconAdvertisement(manufacturerData: Self.bytes + [9]) == advertisement)
    }

    @Test func whatIsShorterOrOfAnotherKindIsNone() {
        for count in 0..<23 { #expect(BeaconAdvertisement(manufacturerData: Self.bytes.prefix(count)) == nil) }
        #expect(BeaconAdvertisement(manufacturerData: [0x10] + Self.bytes.dropFirst()) == nil)
    }

    @Test func uuidsAreComparedWithoutRegardToCase() {
        let text: String = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
        #expect(ProximityUUID(text)?.description == text.uppercased())
        #expect(ProximityUUID("F7826DA64FA24E988024BC5B71E0893E") == ProximityUUID(text))
        let wrong: [String] = [
            "", "F7826DA6", "\(text)0", "g\(text.dropFirst())", "F7826DA6_4FA2_4E98_8024_BC5B71E0893E",
        ]
        for wrong in wrong { #expect(ProximityUUID(wrong) == nil) }
    }

    @Test func regionsHaveIDsThatLeadBack() {
        let uuid = ProximityUUID("F7826DA64FA24E988024BC5B71E0893E")!
        let regions: [BeaconRegion] = [
            .init(uuid: uuid), .init(uuid: uuid, major: 0), .init(uuid: uuid, major: 65_535, minor: 2),
        ]
        #expect(regions.map { BeaconRegion(id: $0.id) } == regions)
        for wrong in ["", "x", "\(uuid)/", "\(uuid)/1/2/3", "\(uuid)/70000"] { #expect(BeaconRegion(id: wrong) == nil) }
    }
}
