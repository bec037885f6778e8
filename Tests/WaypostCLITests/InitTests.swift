import Configuration
import ConfigurationTestSupport
import Doctor
import Foundation
import TestSupport
import Testing

@testable import WaypostCLI

@Suite struct InitTests {
    /// A host of files in a folder.
    private let folder: TemporaryDirectory
    private var host: HostFolder { HostFolder(root: folder.path) }

    init() throws { folder = try TemporaryDirectory() }

    private func write(_ path: String, _ text: String = "") throws {
        let whole = folder.path + path
        try FileManager.default.createDirectory(
            atPath: (whole as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try text.write(toFile: whole, atomically: false, encoding: .utf8)
    }

    private func link(_ path: String, to target: String) throws {
        try FileManager.default.createDirectory(
            atPath: ((folder.path + path) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: folder.path + path, withDestinationPath: target)
    }

    @Test(
        arguments: [
            ("traccar", "traccar.lan:5055", "http://traccar.lan:5055"),
            ("traccar", "demo.traccar.org", "https://demo.traccar.org"),
            ("traccar", "https://t.example/osmand/", "https://t.example/osmand"),
            ("dawarich", "daw.example", "https://daw.example/api/v1/overland/batches"),
            ("dawarich", "https://daw.example/api/v1/overland/batches", "https://daw.example/api/v1/overland/batches"),
            ("mqtt", "broker.lan", "mqtts://broker.lan"), ("mqtt", "broker.lan:1883", "mqtt://broker.lan:1883"),
            ("own", "a b", nil), ("own", "ftp://x.example", nil), ("own", "", nil),
        ] as [(String, String, String?)])
    func completesAnAddress(kind: String, typed: String, address: String?) throws {
        #expect(try #require(ServerKind.named(kind)).address(typed) == address)
    }

    /// Each kind with each source, with and without its secret.
    @Test(arguments: ServerKind.all.map(\.name))
    func writesAValidConfiguration(name: String) throws {
        let kind = try #require(ServerKind.named(name))
        let secret = folder.path + "/secret"
        try Data("s3cret\n".utf8).write(to: URL(fileURLWithPath: secret))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        let sources = ["/dev/serial/by-path/pci-0:1.0", "gpsd", "gpsd:box.lan:2948", "udp:10110", "tcp:10.0.0.2:2000"]
        for source in sources {
            var plan = InitPlan(device: #"van "7"\"#, source: try #require(InitPlan.Source(source)), server: nil)
            #expect(problems(plan.text) == [])
            #expect(try loaded(plan.text).config.device == plan.device)
            plan.device = "van-7"
            var server = InitPlan.Server(kind: name, url: try #require(kind.address(kind.example)))
            server.vars = ["user": "ada", "tid": "V7"]
            if kind.secret != nil { server.secretFile = secret }
            plan.server = server
            #expect(problems(plan.text) == [], "\(plan.text)")
            let config = try loaded(plan.text).config
            #expect(config.endpoints.count == 1)
            if kind.isSecretOptional {
                plan.server?.secretFile = nil
                #expect(problems(plan.text) == [], "\(plan.text)")
            }
        }
        #expect(InitPlan.Source("usb") == nil && InitPlan.Source("udp") == nil)
    }

    /// Machines that are made from one image would all report as the same device.
    @Test func anImageHasNoDeviceIdOfItsOwn() throws {
        var plan = InitPlan(device: nil, source: .gpsd(host: nil, port: nil), server: nil)
        #expect(!plan.text.contains("id = ") && problems(plan.text) == [])
        plan.device = "${hostname}"
        #expect(plan.text.contains("id = \"${hostname}\"") && problems(plan.text) == [])
    }

    @Test(arguments: [
        ("[[endpoint]]\nbase_url = \"https://a.example\"\n", true),
        ("# mine\n [[ endpoint ]] # here\nbase_url = \"https://a.example\"\n\n[log]\nlevel = \"info\"\n\n\n", true),
        ("[[endpoint]]\nname = \"fleet\"\nbase_url = \"https://a.example\"", false),
    ]) func aServerIsAddedToWhatIsThere(_ own: String, unnamed: Bool) throws {
        var server = InitPlan.Server(kind: "traccar", url: "http://traccar.lan:5055")
        server.name = "traccar"
        let plan = InitPlan(device: "van-7", source: .gpsd(host: nil, port: nil), server: server)
        let before = smallest + own
        let endpoint = try #require(plan.endpoint)
        let text = try #require(InitPlan.adding(endpoint, to: before, unnamed: unnamed))
        #expect(problems(text) == [], "\(text)")
        #expect(try loaded(text).config.endpoints.map(\.settings.name) == [unnamed ? "main" : "fleet", "traccar"])
        // Each line that was there still is, in its order.
        var rest = text.split(separator: "\n")[...]
        for line in before.split(separator: "\n") {
            let place = try #require(rest.firstIndex(of: line), "\(line)")
            rest = rest[(place + 1)...]
        }
        #expect(!text.contains("backfill"))
    }

    /// Its table is in a drop-in: nothing is changed by halves.
    @Test func anEndpointWithoutANameElsewhereIsNotGuessed() {
        #expect(InitPlan.adding(["[[endpoint]]"], to: "[device]\n# [[endpoint]]\n", unnamed: true) == nil)
    }

    @Test func findsLinesAndWhoUsesThem() throws {
        for name in ["ttyACM0", "ttyUSB0", "ttyUSB1", "ttyAMA0", "ttyS0", "ttyS1"] { try write("/dev/\(name)") }
        try link("/dev/serial/by-id/usb-u-blox_7-if00", to: "../../ttyACM0")
        try link("/dev/serial/by-id/usb-FTDI_A10X-if00", to: "../../ttyUSB0")
        try link("/dev/serial0", to: "ttyAMA0")
        for (name, type) in [("ttyS0", "4"), ("ttyS1", "0")] {
            try write("/sys/class/tty/\(name)/type", type)
            try write("/sys/class/tty/\(name)/device/x")
        }
        for (tty, vendor, product, serial) in [("ttyUSB0", "0403", "6001", "A10X"), ("ttyACM0", "1546", "01a8", "")] {
            let device = "/sys/devices/usb1/\(tty)"
            try write("\(device)/idVendor", vendor)
            try write("\(device)/idProduct", product)
            if !serial.isEmpty { try write("\(device)/serial", serial) }
            try write("\(device)/1-1:1.0/tty/x")
            try link("/sys/class/tty/\(tty)/device", to: "../../../devices/usb1/\(tty)/1-1:1.0")
        }
        try write("/proc/12/comm", "gpsd\n")
        try link("/proc/12/fd/4", to: "/dev/ttyACM0")
        try write("/proc/13/comm", "agetty\n")
        try write("/proc/13/cmdline", "/sbin/agetty\u{0}ttyS0\u{0}vt220")
        try write("/proc/cmdline", "console=tty1 console=ttyAMA0,115200 root=x")
        let lines = ReceiverSearch(host: host).lines
        #expect(lines.map(\.node) == ["/dev/ttyUSB0", "/dev/ttyACM0", "/dev/ttyUSB1", "/dev/ttyAMA0", "/dev/ttyS0"])
        #expect(lines.map(\.path.isStable) == [true, true, false, true, false])
        #expect(
            lines.map(\.user) == [
                nil, "gpsd (process 12)", nil, "the console of the kernel", "a login prompt (process 13)",
            ])
        let rule =
            #"SUBSYSTEM=="tty", SUBSYSTEMS=="usb", ATTRS{idVendor}=="0403", ATTRS{idProduct}=="6001", ATTRS{serial}=="A10X", ENV{WAYPOST_GPS}="1""#
        #expect(lines[0].rule == rule && lines[1].rule == nil)
        #expect(lines[3].rule == #"SUBSYSTEM=="tty", KERNEL=="ttyAMA0", ENV{WAYPOST_GPS}="1""#)
        // A line of a kind that is not looked for is in use as well.
        try write("/dev/ttymxc2")
        try link("/dev/gnss", to: "ttymxc2")
        #expect(ReceiverSearch(host: host).line(named: "/dev/gnss").user == nil)
        try link("/proc/12/fd/5", to: "/dev/ttymxc2")
        #expect(ReceiverSearch(host: host).line(named: "/dev/gnss").user == "gpsd (process 12)")
    }

    @Test func readsWhichCredentialsAUnitPasses() {
        let unit =
            "[Service]\nLoadCredential=old:/x\nLoadCredential=\n LoadCredential = token:/etc/waypost/a b\n"
            + "SetCredential=key:a value\nImportCredential=fleet.* more\n#LoadCredential=no:/x\nEnvironment=LoadCredential=no\n"
        #expect(CredentialCheck.given(by: unit) == ["token", "key", "fleet.*", "more"])
    }

    @Test func knowsThePi() throws {
        #expect(ReceiverSearch(host: host).remarks.isEmpty)
        try write("/proc/device-tree/model", "Raspberry Pi 4 Model B\u{0}")
        try write("/boot/firmware/cmdline.txt", "console=serial0,115200 console=tty1 root=x\n")
        try write("/boot/firmware/config.txt", "# enable_uart=1\n")
        let remarks = ReceiverSearch(host: host).remarks
        #expect(remarks.count == 2 && remarks[0].contains("do_serial_cons 1") && remarks[1].contains("do_serial_hw 0"))
        try write("/boot/firmware/cmdline.txt", "console=tty1 root=x\n")
        try write("/boot/firmware/config.txt", "enable_uart = 1\n")
        #expect(ReceiverSearch(host: host).remarks.isEmpty)
    }

    @Test func replacesTheExampleAndKeepsAnythingElse() throws {
        let path = "/etc/waypost/waypost.toml"
        let installation = Installation(root: folder.path, configuration: path, host: host)
        func text(_ name: String) -> String? { try? String(contentsOfFile: folder.path + name, encoding: .utf8) }
        #expect(installation.former == .nothing)
        try write(Installation.example, "# example\n[device]\n#id = \"x\"\n")
        try write(path, "# older words of the example\n[device]\n")
        #expect(installation.former == .example)
        try installation.write(configuration: "[device]\nid = \"a\"\n")
        #expect(text(path) == "[device]\nid = \"a\"\n" && installation.former == .other)
        try installation.write(configuration: "[device]\nid = \"b\"\n")
        #expect(text(path) == "[device]\nid = \"b\"\n" && text(path + ".bak") == "[device]\nid = \"a\"\n")
        try installation.write(secret: "s3cret", to: "/etc/waypost/own.token")
        var info = stat()
        #expect(stat(folder.path + "/etc/waypost/own.token", &info) == 0 && info.st_mode & 0o777 == 0o600)
        try installation.add(rule: "KERNEL==\"a\"")
        try installation.add(rule: "KERNEL==\"b\"")
        try installation.add(rule: "KERNEL==\"a\"")
        #expect(text(Installation.rules)?.split(separator: "\n").count == 3)
    }
}

extension String {
    fileprivate var isStable: Bool { hasPrefix("/dev/serial") }
}
