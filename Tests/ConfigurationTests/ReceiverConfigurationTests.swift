import ConfigurationTestSupport
import Sensors
import TestSupport
import Testing

@testable import Configuration

@Suite struct ReceiverConfigurationTests {
    private func serial(_ source: String, _ more: String = "") throws -> SerialSettings {
        let text = "[source]\nkind = \"serial\"\n\(source)\n\(upload)\n\(more)"
        let source = try loaded(text).config.source
        let settings: SerialSettings? = if case .serial(let settings) = source { settings } else { nil }
        return try #require(settings)
    }

    private func found(_ source: String, _ more: String = "") -> [String] {
        problems("[source]\n\(source)\n\(upload)\n\(more)")
    }

    @Test func aReceiverIsNamedByPathOrByWhatItIs() throws {
        #expect(try serial("path = \"/dev/waypost/gps\"").device == .path("/dev/waypost/gps"))
        #expect(try serial("usb_id = \"1546:01a8\"").device == .usb(USBIdentity(vendor: 0x1546, product: 0x01A8)))
        #expect(try serial("serial_number = \"A10\"").device == .usb(USBIdentity(serial: "A10")))
        let both = try serial("serial_number = \"A10\"\nusb_id = \"0403:6001\"").device
        #expect(both == .usb(USBIdentity(vendor: 0x0403, product: 0x6001, serial: "A10")))
        #expect(both.description == "usb 0403:6001 A10")
    }

    static let names = rows(
        #"""
        kind = "serial" ⏎ path = "/dev/a" ⏎ usb_id = "1546:01a8"
        → w.toml:4:10: source.usb_id: found together with path, expected one of the two: each names the receiver
        kind = "serial" ⏎ usb_id = "1546"
        → w.toml:3:10: source.usb_id: found "1546", expected vendor and product as lsusb shows them, such as "1546:01a8"
        kind = "file" ⏎ path = "/a" ⏎ serial_number = "A"
        → w.toml:4:17: source.serial_number: found with kind = "file", expected only with kind = "serial"
        """#)

    @Test(arguments: names) func aNameThatCannotBeUsedIsSaid(source: String, message: String) {
        #expect(found(source).contains(message), "\(found(source))")
    }

    static let builtIn: [(String, ReceiverProfile)] = [
        ("none", ReceiverProfile.none), ("ublox", .ublox), ("mtk", .mtk), ("casic", .casic), ("quectel", .quectel),
    ]

    @Test(arguments: builtIn)
    func theProfileReachesTheLine(name: String, profile: ReceiverProfile) throws {
        #expect(try serial("path = \"/dev/a\"", "[receiver]\nprofile = \"\(name)\"").receiver == profile)
    }

    @Test func ownCommandsReachTheLine() throws {
        let commands = """
            [receiver]
            profile = "custom"
            rate_commands = ["$PMTK220,{ms}"]
            sleep_commands = ["$PMTK161,0"]
            wake_commands = ["0D 0A"]
            """
        let profile = try serial("path = \"/dev/a\"", commands).receiver
        let expected = CustomReceiverCommands(
            rate: [try #require(ReceiverCommand("$PMTK220,{ms}"))],
            standby: [try #require(ReceiverCommand("$PMTK161,0"))], wake: [try #require(ReceiverCommand("0D 0A"))])
        #expect(profile == .custom(expected))
        let shown = try loaded("[source]\nkind = \"serial\"\npath = \"/dev/a\"\n\(upload)\n\(commands)").effective
        #expect(shown.description.contains("rate_commands = [\"$PMTK220,{ms}\"]"))
    }

    static let profiles = rows(
        #"""
        profile = "custom" → receiver.rate_commands: found nothing
        profile = "mtk" ⏎ wake_commands = ["0A"] → receiver.wake_commands: found with profile = "mtk"
        profile = "custom" ⏎ sleep_commands = ["$PMTK161,0"]
        → receiver.wake_commands: found nothing, expected it with its counterpart
        profile = "custom" ⏎ rate_commands = ["$PMTK220,{ms}*1F"]
        → receiver.rate_commands: found "$PMTK220,{ms}*1F", expected a sentence from
        profile = "gpsd-cycle" → receiver.profile: found with a [source] that it cannot reach
        profile = "ubox" → (did you mean "ublox"?)
        """#)

    @Test(arguments: profiles) func aProfileThatCannotBeUsedIsSaid(receiver: String, message: String) {
        let found = found("kind = \"serial\"\npath = \"/dev/a\"", "[receiver]\n\(receiver)")
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test func nothingIsWrittenToAFile() {
        let found = found("kind = \"file\"\npath = \"/a\"", "[receiver]\nprofile = \"ublox\"")
        #expect(found.contains { $0.contains("expected only with kind = \"serial\"") })
    }
}
