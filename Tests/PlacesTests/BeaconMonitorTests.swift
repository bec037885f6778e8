import Positioning
import TestSupport
import Testing

@testable import Places

@Suite struct BeaconMonitorTests {
    private static let uuid = ProximityUUID("F7826DA6-4FA2-4E98-8024-BC5B71E0893E")!
    private static let region = BeaconRegion(uuid: uuid, major: 123, name: "hall")

    private func at(_ seconds: Double) -> EventTime { .zero + .milliseconds(Int64(seconds * 1000)) }

    private func advertisement(major: UInt16 = 123, minor: UInt16 = 1, power: Int8 = -59) -> BeaconAdvertisement {
        BeaconAdvertisement(beacon: Beacon(uuid: Self.uuid, major: major, minor: minor), measuredPower: power)
    }

    private func scanning(_ regions: [BeaconRegion] = [region]) -> BeaconMonitor {
        var monitor = BeaconMonitor(regions)
        monitor.scanStarted(at: .zero)
        return monitor
    }

    @Test func theSecondSightingWithin25SecondsEnters() {
        var monitor = scanning()
        #expect(monitor.sighted(advertisement(), rssi: -70, at: at(0)).isEmpty)
        // The same one, reported twice.
        #expect(monitor.sighted(advertisement(), rssi: -70, at: at(0.05)).isEmpty)
        #expect(monitor.sighted(advertisement(), rssi: -70, at: at(26)).isEmpty)
        #expect(
            monitor.sighted(advertisement(minor: 2), rssi: -70, at: at(50)) == [.entered(Self.region)])
        #expect(monitor.sighted(advertisement(), rssi: -70, at: at(51)) == [.sighted(advertisement().beacon)])
        #expect(monitor.sighted(advertisement(), rssi: -70, at: at(52)).isEmpty)
        #expect(monitor.inside == [Self.region])
    }

    @Test func beaconsOfOtherRegionsAreNothing() {
        var monitor = scanning()
        for second in 0..<10 {
            #expect(monitor.sighted(advertisement(major: 124), rssi: nil, at: at(Double(second))).isEmpty)
        }
        #expect(monitor.nearest(at: at(10)) == nil)
    }

    @Test func thirtySecondsOfScanningWithoutASightingLeave() throws {
        var monitor = scanning()
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(0))
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(1))
        let due = try #require(monitor.nextDeadline)
        #expect(due == at(31))
        #expect(monitor.deadlineReached(at: at(30.9)).isEmpty)
        #expect(monitor.deadlineReached(at: due) == [.left(Self.region, isRemoved: false), .leftAll])
        #expect(monitor.nextDeadline == nil)
        #expect(monitor.deadlineReached(at: at(100)).isEmpty)
    }

    @Test func timeWithoutScanningDoesNotCount() throws {
        var monitor = scanning()
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(0))
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(1))
        #expect(monitor.scanStopped(at: at(10)).isEmpty)
        #expect(monitor.nextDeadline == nil)
        #expect(monitor.deadlineReached(at: at(3600)).isEmpty)
        // Windows of 10 s in each minute: 9 s, 10 s, 10 s, and the first second of the fourth.
        for window in 1...2 {
            monitor.scanStarted(at: at(Double(window) * 60))
            #expect(monitor.scanStopped(at: at(Double(window) * 60 + 10)).isEmpty)
        }
        monitor.scanStarted(at: at(180))
        #expect(monitor.nextDeadline == at(181))
        #expect(!monitor.deadlineReached(at: at(181)).isEmpty)
    }

    @Test func oneLongWindowIsNotEnough() {
        var monitor = scanning()
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(0))
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(1))
        #expect(monitor.scanStopped(at: at(9)).isEmpty)
        monitor.scanStarted(at: at(100))
        #expect(
            monitor.sighted(advertisement(), rssi: -70, at: at(101)).contains(.sighted(advertisement().beacon)) == false
        )
        #expect(monitor.nextDeadline == at(131))
    }

    /// The host slept: nobody looked for that long, and the beacon is there.
    @Test func aSightingAfterALongPauseIsNoExit() {
        var monitor = scanning()
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(0))
        _ = monitor.sighted(advertisement(), rssi: -70, at: at(1))
        #expect(monitor.sighted(advertisement(), rssi: -70, at: at(600)).isEmpty)
        #expect(monitor.inside == [Self.region])
    }

    @Test func theNearestIsTheOneReceivedBestForItsPower() {
        var monitor = scanning()
        for second in 0..<5 {
            _ = monitor.sighted(advertisement(minor: 1, power: -59), rssi: -70, at: at(Double(second)))
            _ = monitor.sighted(advertisement(minor: 2, power: -80), rssi: -75, at: at(Double(second)))
        }
        // Weaker, but sent with much less.
        #expect(monitor.nearest(at: at(5))?.minor == 2)
        #expect(monitor.nearest(at: at(20)) == nil)
    }

    @Test func anotherListKeepsPresenceAndEndsWhatIsGone() {
        let other = BeaconRegion(uuid: Self.uuid, major: 7)
        var monitor = scanning([Self.region, other])
        for second in 0..<2 {
            _ = monitor.sighted(advertisement(), rssi: nil, at: at(Double(second)))
            _ = monitor.sighted(advertisement(major: 7), rssi: nil, at: at(Double(second)))
        }
        #expect(monitor.inside.count == 2)
        #expect(monitor.regionsChanged([Self.region], at: at(3)) == [.left(other, isRemoved: true)])
        #expect(monitor.inside == [Self.region])
        #expect(monitor.regionsChanged([Self.region, other], at: at(4)).isEmpty)
        #expect(monitor.inside == [Self.region])
    }

    @Test func aRestartGoesOnWhereTheAssetWas() {
        var monitor = BeaconMonitor([Self.region])
        let gone = BeaconRegion(uuid: Self.uuid, major: 9, minor: 2)
        #expect(monitor.resumed([Self.region.id, gone.id], at: .zero) == [.left(gone, isRemoved: true)])
        monitor.scanStarted(at: .zero)
        #expect(monitor.nextDeadline == at(30))
        #expect(monitor.sighted(advertisement(), rssi: nil, at: at(29)).isEmpty)
        #expect(monitor.deadlineReached(at: at(58)).isEmpty)
    }

    /// For each region ENTER and EXIT alternate, over lists, restarts and any order of sightings and windows.
    @Test(arguments: 0..<200)
    func enterAndExitArePaired(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let all = (0..<5).map { BeaconRegion(uuid: Self.uuid, major: UInt16($0)) }
        var (monitor, now, inside) = (scanning(all), 0.0, Set<String>())
        for _ in 0..<400 {
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
            default:
                let major = UInt16.random(in: 0..<6, using: &random)
                events = monitor.sighted(advertisement(major: major), rssi: -60, at: at(now))
            }
            for event in events {
                switch event {
                case .entered(let region): #expect(inside.insert(region.id).inserted, "seed \(seed)")
                case .left(let region, _): #expect(inside.remove(region.id) != nil, "seed \(seed)")
                case .sighted(let beacon):
                    #expect(inside.contains { id in BeaconRegion(id: id)!.contains(beacon) }, "seed \(seed)")
                case .leftAll: #expect(inside.isEmpty, "seed \(seed)")
                }
            }
            #expect(Set(monitor.inside.map(\.id)) == inside, "seed \(seed)")
        }
    }
}

@Suite struct BeaconAdvertisementTests {
    private static let bytes: [UInt8] =
        [0x02, 0x15] + [
            0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71, 0xE0, 0x89, 0x3E,
        ] + [0x00, 0x7B, 0x01, 0x02, 0xC5]

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
        let text = "f7826da6-4fa2-4e98-8024-bc5b71e0893e"
        #expect(ProximityUUID(text)?.description == text.uppercased())
        #expect(ProximityUUID("F7826DA64FA24E988024BC5B71E0893E") == ProximityUUID(text))
        for wrong in ["", "F7826DA6", text + "0", "g" + text.dropFirst(), "F7826DA6_4FA2_4E98_8024_BC5B71E0893E"] {
            #expect(ProximityUUID(wrong) == nil)
        }
    }

    @Test func regionsHaveIDsThatLeadBack() {
        let uuid = ProximityUUID("F7826DA64FA24E988024BC5B71E0893E")!
        for region in [
            BeaconRegion(uuid: uuid), BeaconRegion(uuid: uuid, major: 0),
            BeaconRegion(uuid: uuid, major: 65_535, minor: 2),
        ] {
            #expect(BeaconRegion(id: region.id) == region)
        }
        for wrong in ["", "x", uuid.description + "/", uuid.description + "/1/2/3", uuid.description + "/70000"] {
            #expect(BeaconRegion(id: wrong) == nil)
        }
    }
}
