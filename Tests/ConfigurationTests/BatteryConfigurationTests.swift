import ConfigurationTestSupport
import TestSupport
import Testing

@testable import Configuration

@Suite struct BatteryConfigurationTests {
    @Test func readsTheSuppliesOfTheKernelUnlessTold() throws {
        let config = try loaded(smallest + upload).config
        #expect(config.battery.supplies == BatteryConfig.SupplySettings())
        #expect(config.battery.supplies?.root == "/sys/class/power_supply")
        let alarm = config.tracking.batteryAlarm
        #expect(alarm.low == 15 && alarm.hysteresis == 2)
    }

    @Test func everyKeyArrives() throws {
        let config = try loaded(
            smallest + upload + """
                [battery]
                path = "/tmp/supplies"
                batteries = ["BAT0", "BAT1"]
                chargers = ["AC"]
                ignore = ["ucsi-source-psy-1"]
                low = 22.5
                hysteresis = 0
                """
        ).config
        var settings = BatteryConfig.SupplySettings()
        settings.root = "/tmp/supplies"
        settings.selection.batteries = ["BAT0", "BAT1"]
        settings.selection.chargers = ["AC"]
        settings.selection.ignored = ["ucsi-source-psy-1"]
        #expect(config.battery.supplies == settings)
        #expect(config.tracking.batteryAlarm.low == 22.5 && config.tracking.batteryAlarm.hysteresis == 0)
        let off = try loaded(smallest + upload + "[battery]\nsource = \"none\"\nlow = \"off\"\n").config
        #expect(off.battery.supplies == nil && off.tracking.batteryAlarm.low == nil)
    }

    @Test func aLogFromAFileHasNoBatteryUnlessTold() throws {
        let file = "[source]\nkind = \"file\"\npath = \"/var/log/drive.nmea\"\n"
        #expect(try loaded(file + upload).config.battery.supplies == nil)
        #expect(try loaded(file + upload + "[battery]\nsource = \"sysfs\"\n").config.battery.supplies != nil)
    }

    static let mistakes = rows(
        #"""
        source = "upower" → battery.source: found "upower", expected "sysfs" or "none"
        low = 101 → battery.low: found 101, expected a percentage from 0 to 100, or "off"
        path = "supplies" → battery.path: found "supplies", expected the absolute path
        batteries = "BAT0" → battery.batteries: found "BAT0", expected an array of names such as ["BAT0"]
        batteries = ["../BAT0"] → expected the name of a folder in /sys/class/power_supply
        chargers = ["AC"] ⏎ ignore = ["AC"] → battery.ignore: found "AC", which another key
        lowest = 3 → battery.lowest: found an unknown key
        """#)

    @Test(arguments: mistakes) func saysWhatIsWrong(_ text: String, _ words: String) {
        let found = problems(smallest + upload + "[battery]\n\(text)\n")
        #expect(found.contains { $0.contains(words) }, "\(found)")
    }
}
