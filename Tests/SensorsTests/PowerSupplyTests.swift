import TestSupport
import Testing
import WaypostCore

@testable import Sensors

extension SupplyFolder {
    func read(_ selection: PowerSupplies.Selection = .init()) -> PowerSupplies {
        let reader = PowerSupplyReader(root: path, selection: selection)
        return PowerSupplies(reader.names().map(reader.read), selection: selection)
    }
}

@Suite struct PowerSupplyTests {
    private let folder: SupplyFolder

    init() throws { folder = try SupplyFolder() }

    private func state(_ selection: PowerSupplies.Selection = .init()) -> PowerState { folder.read(selection).state }

    @Test func readsAGaugeWithoutScopeAndOnline() throws {
        try folder.set(
            "sbs-5-000b",
            [
                "type": "Battery\n", "present": "1\n", "status": "Discharging\n", "capacity": "77\n",
                "capacity_level": "Normal\n",
            ])
        #expect(state() == PowerState(batteryPercent: 77, charging: false, externalPower: false))
        #expect(folder.read().all == ["sbs-5-000b"])
    }

    static let levels: [(String, Int?)] = [
        ("77\n", 77), ("0\n", 0), ("100", 100), ("103\n", 100), ("255\n", 100), (" 5 \n", 5),
        ("99999999999999999999\n", nil), ("-1\n", nil), ("\n", nil), ("", nil), ("full\n", nil), ("7 7\n", nil),
        ("7.5\n", nil), ("0x10\n", nil),
    ]

    @Test(arguments: levels)
    func makesALevelOfWholeNumbersAlone(_ text: String, _ percent: Int?) throws {
        try folder.set("BAT0", ["type": "Battery\n", "capacity": text])
        #expect(state().batteryPercent == percent)
        #expect(folder.read().batteries.first?.isUnreadable == (percent == nil))
    }

    @Test func aFileThatFailsIsUnknownAndNeverEmpty() throws {
        try folder.set("BAT0", ["type": "Battery\n", "status": "Discharging\n"])
        folder.breakFile("capacity", of: "BAT0")
        #expect(state() == PowerState(charging: false, externalPower: false))
        #expect(folder.read().batteries.first?.isUnreadable == true)
        folder.breakFile("status", of: "BAT0")
        #expect(state() == PowerState())
    }

    @Test func aSupplyThatIsBeingRemovedSaysNothing() throws {
        // Before the end there is one event while every value is empty, and then folders without files.
        try folder.set("BAT0", ["type": "\n", "present": "\n", "status": "\n", "capacity": "\n"])
        #expect(state() == PowerState())
        try folder.set("BAT0", ["type": nil, "present": nil, "status": nil, "capacity": nil])
        #expect(state() == PowerState())
        folder.remove("BAT0")
        #expect(folder.read() == PowerSupplies())
    }

    @Test func aMouseIsNoBatteryOfTheHost() throws {
        try folder.set(
            "hid-00:11", ["type": "Battery\n", "scope": "Device\n", "online": "1\n", "capacity": "9\n"])
        // Some have no `present`, and a level in words alone.
        try folder.set("hidpp_0", ["type": "Battery\n", "scope": "Device\n", "capacity_level": "Low\n"])
        #expect(folder.read() == PowerSupplies())
        var named = PowerSupplies.Selection()
        named.batteries = ["hid-00:11"]
        #expect(state(named).batteryPercent == 9)
    }

    @Test(arguments: [nil, "System\n", "Unknown\n", "\n"]) func anyOtherScopeIsTheHost(_ scope: String?) throws {
        try folder.set("BAT0", ["type": "Battery\n", "scope": scope, "capacity": "50\n"])
        #expect(state().batteryPercent == 50)
    }

    @Test func anEmptyBayIsNoBattery() throws {
        try folder.set("BAT1", ["type": "Battery\n", "present": "0\n", "capacity": "0\n"])
        #expect(folder.read() == PowerSupplies())
        try folder.set("BAT1", ["present": "1\n"])
        #expect(state().batteryPercent == 0)
    }

    @Test func noSupplyIsUnknown() throws {
        #expect(state() == PowerState())
        #expect(PowerSupplyReader(root: "\(folder.path)/none").names().isEmpty)
    }

    @Test func twoBatteriesCountByWhatTheyHold() throws {
        try folder.set("BAT0", ["type": "Battery\n", "capacity": "100\n", "status": "Full\n"])
        try folder.set("BAT1", ["type": "Battery\n", "capacity": "10\n", "status": "Discharging\n"])
        #expect(state() == PowerState(batteryPercent: 55, charging: false, externalPower: false))
        try folder.set("BAT0", ["charge_now": "1000000\n", "charge_full": "1000000\n"])
        #expect(state().batteryPercent == 55)
        try folder.set("BAT1", ["charge_now": "900000\n", "charge_full": "9000000\n"])
        #expect(state().batteryPercent == 19)
        for (name, now) in [("BAT0", "30000000\n"), ("BAT1", "0\n")] {
            try folder.set(name, ["energy_now": now, "energy_full": "40000000\n"])
        }
        #expect(state().batteryPercent == 38)
        // One that fails does not take the other with it.
        for file in ["capacity", "energy_now", "charge_now", "status"] { folder.breakFile(file, of: "BAT1") }
        #expect(state().batteryPercent == 100)
    }

    @Test(arguments: ["9223372036854775807", "-9223372036854775808", "0", "99999999999999999999"])
    func survivesAnyNumber(_ huge: String) throws {
        for name in ["BAT0", "BAT1", "BAT2"] {
            try folder.set(name, ["type": "Battery\n", "energy_now": "\(huge)\n", "energy_full": "\(huge)\n"])
        }
        #expect(state().batteryPercent.map { (0...100).contains($0) } ?? true)
    }

    @Test func aSupercapWithoutCapacityTellsByItsCharge() throws {
        try folder.set("supercap", ["type": "Battery\n", "voltage_now": "2500000\n"])
        #expect(state() == PowerState())
        #expect(folder.read().batteries.first?.isUnreadable == false)
        try folder.set("supercap", ["charge_now": "25\n", "charge_full": "100\n"])
        #expect(state().batteryPercent == 25)
    }

    @Test func vendorsGaugesBesideTheBatteryDoNotCount() throws {
        try folder.set("battery", ["type": "Battery\n", "capacity": "60\n", "status": "Not charging\n"])
        try folder.set("bms", ["type": "BMS\n", "capacity": "20\n", "online": "1\n"])
        try folder.set("dc", ["type": "Unknown\n", "capacity": "0\n", "online": "1\n"])
        #expect(state() == PowerState(batteryPercent: 60, charging: false))
    }

    static let statuses: [(String, Bool?, Bool?)] = [
        ("Charging", true, true), ("Discharging", false, false), ("Not charging", false, nil), ("Full", false, nil),
        ("Unknown", nil, nil), ("", nil, nil), ("charging", nil, nil),
    ]

    @Test(arguments: statuses)
    func aBatteryAloneTellsOfPowerByWhatItDoes(_ status: String, _ charging: Bool?, _ external: Bool?) throws {
        try folder.set("BAT0", ["type": "Battery\n", "capacity": "50\n", "status": "\(status)\n"])
        #expect(state() == PowerState(batteryPercent: 50, charging: charging, externalPower: external))
    }

    @Test(arguments: ["Mains", "USB", "USB_PD", "USB_DCP", "Wireless", "UPS"])
    func aChargerTellsOfPower(_ type: String) throws {
        try folder.set("BAT0", ["type": "Battery\n", "capacity": "50\n", "status": "Charging\n"])
        try folder.set("AC", ["type": "\(type)\n", "online": "0\n"])
        #expect(state().externalPower == false)
        try folder.set("AC", ["online": "1\n"])
        #expect(state().externalPower == true)
        // Programmable supplies say 2.
        try folder.set("AC", ["online": "2\n"])
        #expect(state().externalPower == true)
        try folder.set("USB2", ["type": "USB\n", "online": "0\n"])
        #expect(state().externalPower == true)
    }

    @Test func aChargerThatFailsLeavesItToTheBattery() throws {
        try folder.set("AC", ["type": "Mains\n", "online": "\n"])
        #expect(state().externalPower == nil)
        #expect(folder.read().chargers.first?.isUnreadable == true)
        try folder.set("BAT0", ["type": "Battery\n", "status": "Charging\n", "capacity": "5\n"])
        #expect(state().externalPower == true)
    }

    @Test func namesDecideOverEverythingElse() throws {
        try folder.set("BAT0", ["type": "Battery\n", "capacity": "90\n"])
        try folder.set("bms", ["type": "BMS\n", "present": "0\n", "capacity": "33\n"])
        try folder.set("AC", ["type": "Mains\n", "online": "1\n"])
        try folder.set("ign", ["type": "Unknown\n", "online": "0\n"])
        var selection = PowerSupplies.Selection()
        selection.batteries = ["bms"]
        selection.chargers = ["ign"]
        #expect(state(selection) == PowerState(batteryPercent: 33, externalPower: false))
        selection = .init()
        selection.ignored = ["AC"]
        #expect(state(selection) == PowerState(batteryPercent: 90))
        selection = .init()
        selection.batteries = ["none-such"]
        #expect(state(selection).batteryPercent == nil)
    }

    @Test func aSleepingMouseIsNotAskedForItsLevel() {
        var asked: [String] = []
        _ = PowerSupply(name: "mouse") { file in
            asked.append(file)
            return ["type": .text(Array("Battery\n".utf8)), "scope": .text(Array("Device\n".utf8))][file] ?? .absent
        }
        #expect(asked == ["type", "scope"])
    }

    @Test func aFolderFullOfEntriesIsNotReadToItsEnd() throws {
        for index in 0..<100 { try folder.set("BAT\(index)", ["type": "Battery\n", "capacity": "50\n"]) }
        #expect(folder.read().batteries.count == 32)
    }
}

extension PowerSupplies {
    fileprivate var all: [String] { (batteries + chargers).map(\.name) }
}
