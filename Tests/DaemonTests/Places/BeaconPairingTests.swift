import ConfigurationTestSupport
import Delivery
import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Configuration

/// Whatever happens to a device in a region of beacons, each server gets ENTER and EXIT in turn, and both of a pair or none.
@Suite struct BeaconPairingTests {
    /// A device with fixes or without, in its hours or not, that starts again now and then.
    private struct Device {
        private var tracker = Self.tracker(nil)
        private var now = EventTime.zero
        private var utc: Int64 = 1_700_000_000_000
        private(set) var rows: [QueuedLocation] = []
        private(set) var inside: Set<String> = []

        private static func tracker(_ restored: StoredState?) -> Tracker {
            Tracker(settings: .init(trackables: [Trackable(id: "van-7")]), restored: restored)
        }

        mutating func pass(seconds: Int64, fixes: Bool) {
            for _ in 0..<seconds {
                now = now + .seconds(1)
                utc += 1000
                guard fixes else { continue }
                var fix = Fix(
                    time: UTCTime(milliseconds: utc), timeOfDay: Int(utc % 86_400_000), at: now,
                    coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), mode: .threeD,
                    quality: .gps)
                fix.horizontalAccuracy = 4
                fix.speed = 0
                handle(.fixReceived(fix))
            }
        }

        mutating func cross(_ region: String, _ reason: String = "beacon") {
            let action: GeofenceCrossing.Action
            if inside.remove(region) == nil {
                inside.insert(region)
                action = .enter
            } else {
                action = .exit
            }
            let crossing = GeofenceCrossing(id: region, name: region, action: action, source: .beacon)
            handle(.observed(Observation(event: .geofence, reason: reason, geofence: crossing)))
        }

        mutating func hours(open: Bool) { handle(.timeWindowChanged(.tracking, open: open)) }

        mutating func restart() {
            tracker = Self.tracker(StoredState(bytes: tracker.state.bytes))
            now = .zero + .seconds(20)
        }

        private mutating func handle(_ event: TrackerEvent) {
            for effect in tracker.handle(event, at: now) {
                guard case .record(let location) = effect else { continue }
                rows.append(
                    QueuedLocation(seq: Int64(rows.count + 1), bootID: nil, receivedMs: utc, location: location))
            }
        }
    }

    private static let configuration = """
        [source]
        kind = "file"
        path = "/tmp/drive.nmea"
        [[endpoint]]
        name = "accesso"
        profile = "accesso"
        base_url = "https://api.eu.te2.io"
        vars = { app_id = "a", app_user_id = "u", platform = "LINUX" }
        secrets = { token = "env:TOKEN" }
        [[endpoint]]
        name = "native"
        base_url = "https://fleet.example"
        [[endpoint]]
        name = "traccar"
        profile = "traccar"
        base_url = "https://traccar.example"

        """

    @Test func eachServerGetsBothOfAPairOrNone() throws {
        let endpoints = try loaded(Self.configuration, testEnvironment(["TOKEN": "t"])).config.endpoints
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        var withheld = 0
        for round in 0..<60 {
            var device = Device()
            for _ in 0..<40 {
                switch Int.random(in: 0..<8, using: &random) {
                case 0: device.restart()
                case 1: device.hours(open: Bool.random(using: &random))
                case 2: device.pass(seconds: Int64.random(in: 1...40, using: &random), fixes: true)
                case 3: device.pass(seconds: 5, fixes: false)
                default: device.cross(["hall", "dock", "gate"].randomElement(using: &random)!)
                }
            }
            for region in device.inside.sorted() { device.cross(region, "removed") }
            for endpoint in endpoints {
                let sent = Self.sent(device.rows, to: endpoint.settings)
                var inside: Set<String> = []
                for crossing in sent {
                    let isRight =
                        crossing.action == .enter
                        ? inside.insert(crossing.id).inserted : inside.remove(crossing.id) != nil
                    #expect(isRight, "\(endpoint.settings.name) gets \(crossing), seed \(seed), round \(round)")
                }
                #expect(inside.isEmpty, "\(endpoint.settings.name) waits, seed \(seed), round \(round)")
                let all = device.rows.count { $0.location.event == .geofence }
                if endpoint.settings.name == "native" {
                    #expect(sent.count == all)
                } else {
                    withheld += all - sent.count
                }
            }
        }
        #expect(withheld > 100)
    }

    /// Crossings in the order in which they are sent.
    private static func sent(_ rows: [QueuedLocation], to settings: EndpointSettings) -> [GeofenceCrossing] {
        var (rows, sent) = (rows, [GeofenceCrossing]())
        while !rows.isEmpty {
            let plan = BatchPlanner(settings).plan(rows, limit: settings.batchSize, isEnd: true, ages: nil)
            for index in plan.batches.joined() {
                if let crossing = rows[index].location.geofence, crossing.action != .dwell { sent.append(crossing) }
            }
            guard plan.consumed > 0 else { break }
            rows.removeFirst(plan.consumed)
        }
        return sent
    }
}
