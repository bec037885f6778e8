import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon

/// The watch on its loop, on folders that answer when the test wants it.
@Suite struct PowerWatchTests {
    private final class Bench {
        let folder: SupplyFolder
        let loop: EventLoop
        private(set) var watch: PowerWatch!
        private(set) var readings: [PowerWatch.Reading] = []

        init() throws {
            folder = try SupplyFolder()
            loop = try EventLoop()
            var supplies = BatteryConfig.SupplySettings()
            supplies.root = folder.path
            watch = PowerWatch(
                settings: .init(supplies: supplies, low: 15), wakeInterval: nil,
                log: .silent, loop: loop
            ) { [unowned self] reading, _ in readings.append(reading) }
        }

        deinit { watch.stop() }

        func run(until done: @escaping (Bench) -> Bool) throws { try loop.run { [unowned self] in done(self) } }
    }

    @Test func whereThereIsNoSupplyItKnowsSoAtOnce() throws {
        let bench = try Bench()
        bench.watch.start(at: bench.loop.now)
        #expect(bench.readings.map(\.state) == [PowerState()])
        #expect(bench.readings.first?.hasBattery == false)
    }

    @Test func aGaugeThatHangsHidesNoLossOfPower() throws {
        let bench = try Bench()
        try bench.folder.set("BAT0", ["type": "Battery\n", "status": "Charging\n", "capacity": "80\n"])
        try bench.folder.set("AC", ["type": "Mains\n", "online": "1\n"])
        bench.watch.start(at: bench.loop.now)
        try bench.run { !$0.readings.isEmpty }
        let first = PowerState(batteryPercent: 80, charging: true, externalPower: true)
        #expect(bench.readings.map(\.state) == [first])

        try bench.folder.block("capacity", of: "BAT0")
        try bench.folder.set("AC", ["online": "0\n"])
        bench.watch.devicesChanged(at: bench.loop.now)
        try bench.run { $0.readings.count == 2 }
        let loss = try #require(bench.readings.last)
        #expect(loss.isLoss && !loss.hasBattery)
        #expect(loss.state == PowerState(batteryPercent: 80, charging: true, externalPower: false))
        // And once more, while it goes on hanging.
        try bench.folder.set("AC", ["online": "1\n"])
        bench.watch.devicesChanged(at: bench.loop.now)
        try bench.run { $0.readings.last?.state.externalPower == true }

        try bench.run { $0.watch.supplies?.last?.words == "battery, 80 %, charging, does not answer" }
        try bench.folder.set("BAT0", ["status": "Discharging\n"])
        while try !bench.folder.answer("capacity", of: "BAT0", "60\n") {}
        try bench.run { $0.readings.last?.state.batteryPercent == 60 }
        #expect(bench.readings.last?.hasBattery == true)
        try bench.run { $0.watch.supplies?.last?.words == "battery, 60 %, discharging" }
    }

    @Test func aLowBatteryIsNotReportedBeforeItsChargerWasRead() throws {
        let bench = try Bench()
        try bench.folder.set("BAT0", ["type": "Battery\n", "status": "Full\n", "capacity": "5\n"])
        try bench.folder.set("AC", ["type": "Mains\n"])
        try bench.folder.block("online", of: "AC")
        let start = bench.loop.now
        bench.watch.start(at: start)
        try bench.run { $0.loop.now >= start + .seconds(1) }
        #expect(bench.readings.isEmpty)
        while try !bench.folder.answer("online", of: "AC", "1\n") {}
        try bench.run { !$0.readings.isEmpty }
        #expect(
            bench.readings.map(\.state)
                == [PowerState(batteryPercent: 5, charging: false, externalPower: true)])
    }

    @Test func aGaugeThatNeverAnswersIsGivenUp() throws {
        let bench = try Bench()
        try bench.folder.set("BAT0", ["type": "Battery\n"])
        try bench.folder.block("capacity", of: "BAT0")
        try bench.folder.set("AC", ["type": "Mains\n", "online": "1\n"])
        bench.watch.start(at: bench.loop.now)
        try bench.run { !$0.readings.isEmpty }
        #expect(bench.readings.map(\.state) == [PowerState(externalPower: true)])
        #expect(
            bench.watch.supplies?.map(\.words) == ["mains, connected", "does not answer"])
        // So that its thread ends, once it has come to the file.
        while try !bench.folder.answer("capacity", of: "BAT0", "5\n") {}
    }

    @Test func whatIsTakenOutWhileItHangsIsGone() throws {
        let bench = try Bench()
        try bench.folder.set("BAT0", ["type": "Battery\n", "capacity": "50\n"])
        bench.watch.start(at: bench.loop.now)
        try bench.run { !$0.readings.isEmpty }
        try bench.folder.block("capacity", of: "BAT0")
        bench.watch.devicesChanged(at: bench.loop.now)
        let start = bench.loop.now
        try bench.run { $0.loop.now >= start + .seconds(2) }
        let release = try bench.folder.hold("capacity", of: "BAT0")
        defer { release() }
        bench.folder.remove("BAT0")
        bench.watch.devicesChanged(at: bench.loop.now)
        try bench.run { $0.watch.supplies?.isEmpty == true }
        #expect(bench.readings.last?.state == PowerState())
        #expect(bench.readings.last?.hasBattery == true)
    }
}
