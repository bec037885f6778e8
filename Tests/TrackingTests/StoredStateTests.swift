import TestSupport
import Testing
import WaypostCore

@testable import WaypostTracking

@Suite struct StoredStateTests {
    /// Every member that can be nil is there.
    private static let full: StoredState = {
        let here = Coordinate(latitudeE7: -373_900_001, longitudeE7: 1_799_999_999)
        var state = StoredState()
        state.moving = true
        state.announced = true
        state.anchor = .init(coordinate: here, accuracy: 2.5)
        state.fenceCentre = Coordinate(latitudeE7: 1, longitudeE7: -1)
        state.since = UTCTime(milliseconds: 1_725_515_948_000)
        state.stopping = UTCTime(milliseconds: -1)
        state.lastFix = .init(
            time: UTCTime(milliseconds: 1_725_545_948_123), coordinate: here, accuracy: 0.047, altitudeMSL: -4.1,
            altitudeHAE: 25.9)
        state.odometer = 8600.999110262872
        state.gapMetres = 12.25
        state.trip = .init(
            start: UTCTime(milliseconds: 1_725_515_948_000), startCoordinate: here, startOdometer: 0.1, idle: 461,
            maxSpeed: 16.833070445621754, withoutPower: true)
        state.released = true
        state.lastGap = UTCTime(milliseconds: 1_725_515_950_000)
        state.power = PowerState(batteryPercent: 87, charging: false, externalPower: true)
        state.lowBatteryRecorded = true
        state.recorded = ["Wagen 7", ""].map {
            .init(
                trackable: $0, time: UTCTime(milliseconds: 1_725_545_948_000),
                selectedTime: UTCTime(milliseconds: 1_725_545_947_000), selectedCoordinate: here,
                proximity: 0x7FFFB)
        }
        state.fenceSet = 0x9E37_79B9_7F4A_7C15
        state.stays = [
            .init(
                fence: "depot", revision: .max, entered: UTCTime(milliseconds: 1_725_515_950_000), isRecorded: true,
                dwelled: true, name: "Depot North", serverID: "pot")
        ]
        state.unplacedEntries = ["hall/1"]
        return state
    }()

    @Test(arguments: [full, StoredState()]) func readsBackWhatWasStored(_ state: StoredState) {
        #expect(StoredState(bytes: state.bytes) == state)
    }

    @Test func storesEveryMember() {
        // Whoever adds a member gives it a value here that is not its default.
        let blank = Mirror(reflecting: StoredState()).children.map { "\($0)" }
        let full = Mirror(reflecting: Self.full).children.map { "\($0)" }
        let untested = zip(blank, full).filter { $0 == $1 && !$0.contains("version") }
        #expect(untested.isEmpty)
    }

    @Test func fitsOnOneSmallPage() {
        var state = Self.full
        state.recorded.removeLast()
        #expect(state.bytes.count < 240)
    }

    @Test func readsNoPartOfAState() {
        let bytes = Self.full.bytes
        #expect(bytes.indices.first { StoredState(bytes: Array(bytes[..<$0])) != nil } == nil)
        #expect(StoredState(bytes: bytes + [0]) == nil)
    }

    @Test(arguments: [3, 4, 5]) func readsTheFormatsBefore(_ version: Int) {
        var before = Self.full
        before.version = version
        let read = StoredState(bytes: before.bytes)
        before.version = StoredState.version
        if version < 4 { before.lowBatteryRecorded = false }
        if version < 5 { (before.stays[0].name, before.stays[0].serverID) = (nil, nil) }
        before.unplacedEntries = []
        #expect(read == before)
    }

    @Test func readsNoOtherFormat() {
        #expect(StoredState(bytes: Array(#"{"version":1,"moving":true}"#.utf8)) == nil)
        var state = Self.full
        state.version += 1
        #expect(StoredState(bytes: state.bytes) == nil)
    }

    @Test func survivesDamage() {
        let seed = testSeed(1)
        var random = SeededGenerator(seed: seed)
        let bytes = Self.full.bytes
        for _ in 0..<2000 {
            var damaged = bytes
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                damaged[Int.random(in: damaged.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            // Read or refused, and what is read is written as well as anything else.
            if let state = StoredState(bytes: damaged), StoredState(bytes: state.bytes) != state {
                Issue.record("seed \(seed): \(state)")
            }
        }
    }
}
