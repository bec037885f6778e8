import Configuration
import ConfigurationTestSupport
import Doctor
import Glibc
import Protocols
import TestSupport
import Testing
import WaypostControl

/// One thing wrong with a good host, and what the check of that number says.
struct Case: Sendable, CustomTestStringConvertible {
    var number: Int
    var state: Finding.State
    /// A part of what was found.
    var found: String
    /// A part of the advice; nil = there is none.
    var advice: String?
    var change: @Sendable (inout Scene) -> Void

    init(
        _ number: Int, _ state: Finding.State, _ found: String, _ advice: String? = nil,
        _ change: @escaping @Sendable (inout Scene) -> Void
    ) {
        (self.number, self.state, self.found, self.advice, self.change) = (number, state, found, advice, change)
    }

    var testDescription: String { "\(number) \(state): \(found)" }

    static let all = daemon + line + rivals + signal + host + delivery + remote

    private static let noStatus: @Sendable (inout Scene) -> Void = { $0.daemon = .unreachable("not for you") }
    private static let noConfiguration: @Sendable (inout Scene) -> Void = { $0.configurationFound = .unreadable }
    private static let node = "/dev/ttyACM0"

    private static func fails(_ state: String, _ result: String = "", _ code: String = "0")
        -> @Sendable (inout Scene) -> Void
    {
        {
            $0.daemon = .absent
            $0.unit?["ActiveState"] = state
            $0.unit?["Result"] = result
            $0.unit?["ExecMainStatus"] = code
        }
    }

    private static let daemon: [Case] = [
        Case(1, .ok, "w.toml: valid") { _ in },
        Case(1, .broken, "w.toml:3:1: path (and 1 more)", "waypost check /etc/waypost/waypost.toml") {
            $0.configurationFound = .invalid(["w.toml:3:1: path", "other"])
        },
        Case(1, .broken, "w.toml:3:1: path; the daemon runs on the last good one", "waypost check") {
            $0.configurationFound = .invalid(["w.toml:3:1: path"])
            $0.status.configuration = "last-good"
        },
        Case(1, .degraded, "w.toml:3:1: path; the daemon runs on the last good one", "waypost check") {
            $0.keepsLastGood = true
            $0.configurationFound = .invalid(["w.toml:3:1: path"])
            $0.status.configuration = "last-good"
        },
        Case(1, .broken, "w.toml:3:1: path; the daemon runs on what it read before", "waypost check") {
            $0.configurationFound = .invalid(["w.toml:3:1: path"])
            $0.status.configuration = "refused"
        },
        Case(1, .unknown, "may not be read", "sudo waypost doctor", noConfiguration),
        Case(2, .ok, "has run for 24 h") { _ in },
        Case(2, .degraded, "0.0.9 runs", "systemctl restart waypost") { $0.status.version = "0.0.9" },
        Case(2, .degraded, "restarted 5 times, last 30 s ago", "journalctl") {
            $0.unit?["NRestarts"] = "5"
            $0.status.uptime = 30
        },
        Case(2, .degraded, "its watchdog ended it: 2 times since the boot", "journalctl") {
            $0.unit?["NRestarts"] = "2"
            $0.watchdogTimeouts = 2
            $0.status.uptime = 7200
        },
        Case(2, .ok, "has run for 4 days") {
            $0.unit?["NRestarts"] = "2"
            $0.watchdogTimeouts = 2
            $0.status.uptime = 345_600
        },
        Case(2, .ok, "has run for 24 h, without a watchdog") { $0.unit?["WatchdogUSec"] = "0" },
        Case(2, .broken, "it hung, and its watchdog ended it", "journalctl", fails("activating", "watchdog", "6")),
        Case(2, .degraded, "not read again", "systemctl daemon-reload") { $0.unit?["NeedDaemonReload"] = "yes" },
        Case(2, .broken, "refuses its configuration", "waypost check", fails("failed", "exit-code", "78")),
        Case(2, .broken, "core-dump, exit status 11", "journalctl", fails("failed", "core-dump", "11")),
        Case(2, .broken, "it ends again and again (last exit status 74)", "journalctl") {
            fails("activating", "exit-code", "74")(&$0)
            $0.unit?["SubState"] = "auto-restart"
        },
        Case(2, .broken, "being started", "journalctl") {
            fails("activating")(&$0)
            $0.unit?["SubState"] = "start"
        },
        Case(2, .broken, "not started", "systemctl start waypost", fails("inactive")),
        Case(2, .broken, "not started", "systemctl enable --now waypost") {
            fails("inactive")(&$0)
            $0.unit?["UnitFileState"] = "disabled"
        },
        Case(2, .broken, "masked", "systemctl unmask waypost") {
            fails("inactive")(&$0)
            $0.unit?["LoadState"] = "masked"
        },
        Case(2, .degraded, "does not start with the host", "systemctl enable waypost") {
            $0.unit?["UnitFileState"] = "disabled"
            $0.unit?["WantedBy"] = ""
        },
        Case(2, .ok, "has run") {
            $0.unit?["UnitFileState"] = "disabled"
            $0.unit?["WantedBy"] = "dev-ttyACM0.device"
        },
        Case(2, .broken, "active, but it does not answer", "restart", fails("active")),
        Case(2, .degraded, "metrics: listen on 127.0.0.1:9477: Address already in use", "waypost status") {
            $0.status.problems = ["receiver: silent", "metrics: listen on 127.0.0.1:9477: Address already in use"]
        },
        Case(2, .degraded, "queue: 17 rows for endpoint old, which is no longer configured", "waypost status") {
            $0.status.problems = ["queue: 17 rows for endpoint old, which is no longer configured: configure it again"]
        },
        Case(2, .broken, "there is no unit", "waypost run") { ($0.daemon, $0.unit) = (.absent, [:]) },
        Case(2, .broken, "no daemon answers", "sudo systemctl start waypost") { ($0.daemon, $0.unit) = (.absent, nil) },
        Case(2, .broken, "no daemon answers", "sudo rc-service waypost start") {
            $0.loseSystemd()
            $0.daemon = .absent
            ($0.files["/run/openrc/softlevel"], $0.files["/etc/init.d/waypost"]) = ("default", "")
        },
        Case(2, .broken, "no daemon answers", "waypost run --config /srv/w.toml") {
            $0.loseSystemd()
            ($0.daemon, $0.configurationPath) = (.absent, "/srv/w.toml")
        },
        Case(2, .degraded, "0.0.9 runs", "waypost run  # once process 500 was stopped where it was started") {
            $0.loseSystemd()
            $0.status.version = "0.0.9"
        },
        Case(2, .broken, "does not answer: timed out", "restart") { $0.daemon = .silent("timed out") },
        Case(2, .unknown, "not for you", "sudo waypost doctor", noStatus),
    ]

    private static let line: [Case] = [
        Case(3, .ok, "usb-u-blox_7-if00 is /dev/ttyACM0 (usb 1546:01a7 UB7X1)") { _ in },
        Case(3, .ok, "/dev/ttyACM0 (usb") { $0.source = "kind = \"serial\"\nusb_id = \"1546:01a7\"" },
        Case(3, .ok, "does not apply") { $0.source = "kind = \"tcp\"\nhost = \"gps.example\"\nport = 4001" },
        Case(3, .broken, "no other receiver is plugged in", "ls -l /dev/serial/by-id") {
            $0.files["/dev/ttyACM0"] = nil
            $0.modes = [:]
        },
        Case(
            3, .broken, "/dev/serial/by-id/usb-u-blox_7-if00 (/dev/ttyACM0) is",
            "path = \"/dev/serial/by-id/usb-u-blox_7-if00\""
        ) {
            $0.source = "kind = \"serial\"\npath = \"/dev/ttyUSB0\""
        },
        // Of a kind that only udev's own name shows to be a receiver.
        Case(
            3, .broken, "/dev/waypost/gps is not there; /dev/serial/by-id/usb-own-if00",
            "path = \"/dev/serial/by-id/usb-own-if00"
        ) {
            $0.source = "kind = \"serial\"\npath = \"/dev/waypost/gps\""
            $0.files["/dev/ttyACM0"] = nil
            $0.modes = [:]
            $0.files["/dev/own7"] = ""
            $0.links["/dev/serial/by-id/usb-own-if00"] = "../../own7"
        },
        Case(3, .broken, "usb 0403:6001 is not there", "path = ") {
            $0.source = "kind = \"serial\"\nusb_id = \"0403:6001\""
        },
        Case(3, .unknown, "configuration is not known", "sudo waypost doctor", noConfiguration),
        Case(4, .ok, "stays the same") { _ in },
        Case(4, .ok, "USB identity") { $0.source = "kind = \"serial\"\nusb_id = \"1546:01a7\"" },
        Case(4, .degraded, "another device", "path = \"/dev/serial/by-id/usb-u-blox_7-if00\"") {
            $0.source = "kind = \"serial\"\npath = \"/dev/ttyACM0\""
        },
        Case(4, .degraded, "another device", "udevadm info /dev/ttyACM0") {
            $0.source = "kind = \"serial\"\npath = \"/dev/ttyACM0\""
            $0.links["/dev/serial/by-id/usb-u-blox_7-if00"] = nil
        },
        Case(4, .unknown, "configuration", "sudo waypost doctor", noConfiguration),
        Case(5, .ok, "major number 166") { _ in },
        Case(5, .ok, "major number 166") { $0.unit?["DeviceAllow"] = "char-ttyACM rw" },
        Case(5, .ok, "pseudo-terminals") {
            $0.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/1-1.2:1.0/tty/ttyACM0/dev"] = "136:3\n"
        },
        Case(5, .broken, "lacks char-136", "DeviceAllow") {
            $0.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/1-1.2:1.0/tty/ttyACM0/dev"] = "136:3\n"
            $0.unit?["DevicePolicy"] = "strict"
        },
        Case(5, .ok, "every device") {
            $0.unit?["DevicePolicy"] = "auto"
            $0.unit?["DeviceAllow"] = ""
        },
        Case(5, .ok, "no unit") { $0.unit = [:] },
        Case(5, .ok, "no systemd") { $0.loseSystemd() },
        Case(5, .ok, "major number 166") { $0.unit?["DeviceAllow"] = "char-tty[A-Z]* rw" },
        Case(5, .ok, "major number 166") { $0.unit?["DeviceAllow"] = "/dev/serial/by-id/usb-u-blox_7-if00 rw" },
        Case(5, .broken, "lacks char-166", "DeviceAllow") { $0.unit?["DeviceAllow"] = "char-ttyU* rw\n/dev/null rw" },
        // The line is opened for both.
        Case(5, .broken, "lacks char-166", "DeviceAllow") { $0.unit?["DeviceAllow"] = "char-166 r" },
        Case(5, .broken, "lacks char-166", "DeviceAllow=char-166 rw") {
            $0.unit?["DeviceAllow"] = "char-188 rw\nchar-ttyS rw"
        },
        // As systemd 252 prints that of the package: with what ProtectClock= adds, and the last first.
        Case(5, .ok, "major number 166") {
            $0.unit?["DeviceAllow"] = "char-rtc r\nchar-204 rw\nchar-4 rw\nchar-188 rw\nchar-166 rw"
        },
        Case(5, .broken, "lacks char-166", "DeviceAllow") { $0.unit?["DeviceAllow"] = "" },
        Case(5, .unknown, "systemd does not say") { $0.unit = nil },
        Case(5, .unknown, "device number") { $0.links["/sys/class/tty/ttyACM0"] = nil },
        Case(6, .ok, "in group dialout") { _ in },
        Case(6, .ok, "every user") { $0.modes[node] = 0o666 },
        Case(6, .ok, "root") { $0.files["/proc/500/status"] = "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n" },
        Case(6, .broken, "not in group dialout", "usermod -aG dialout waypost") {
            $0.files["/proc/500/status"] = "Uid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nGroups:\t991 \n"
            $0.files["/etc/group"] = "dialout:x:\(getegid()):pi\n"
        },
        Case(6, .broken, "started before", "sudo systemctl restart waypost") {
            $0.files["/proc/500/status"] = "Uid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nGroups:\t991 \n"
        },
        Case(6, .broken, "started before", "waypost run  # once process 500 was stopped") {
            $0.loseSystemd()
            $0.files["/proc/500/status"] = "Uid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nGroups:\t991 \n"
        },
        Case(6, .ok, "a udev rule gives the daemon") {
            $0.files["/proc/500/status"] = "Uid:\t990\t990\t990\t990\nGid:\t991\t991\t991\t991\nGroups:\t991 \n"
            $0.listed[node] = 990
        },
        Case(6, .broken, "no group", "ATTRS{serial}==\"UB7X1\", GROUP=\"waypost\", MODE=\"0660\"' | sudo tee -a") {
            $0.modes[node] = 0o600
        },
        Case(6, .unknown, "groups of the daemon", "sudo waypost doctor") {
            $0.files["/proc/500/status"] = "Uid:\t-1\n"
        },
        Case(7, .ok, "no other program") { _ in },
        Case(7, .broken, "gpsd (process 700) has /dev/ttyACM0 open", "kind = \"gpsd\"") {
            $0.files["/proc/700/comm"] = "gpsd\n"
            $0.links["/proc/700/fd/5"] = node
        },
        Case(7, .broken, "chronyd", "systemctl disable --now chrony.service") {
            $0.files["/proc/700/comm"] = "chronyd\n"
            $0.files["/proc/700/cgroup"] = "0::/system.slice/chrony.service\n"
            $0.links["/proc/700/fd/5"] = node
        },
        Case(7, .broken, "minicom", "sudo kill 700") {
            $0.files["/proc/700/comm"] = "minicom\n"
            $0.links["/proc/700/fd/5"] = node
        },
        Case(7, .broken, "a second waypost (process 700) has /dev/ttyACM0 open", "systemctl status 700") {
            $0.files["/proc/700/comm"] = "waypost\n"
            $0.links["/proc/700/fd/5"] = node
        },
        // Who answers is the daemon, whatever the unit says.
        Case(7, .broken, "a second waypost (process 500)", "systemctl status 500") {
            $0.files["/proc/700/comm"] = "waypost\n"
            $0.links["/proc/700/fd/5"] = node
            $0.answering = 700
        },
        Case(7, .unknown, "not every process", "sudo waypost doctor") { $0.links["/proc/700/fd/0"] = nil },
        Case(7, .unknown, "not every process", "sudo waypost doctor") {
            ($0.links["/proc/1/fd/0"], $0.files["/proc/1/comm"]) = (nil, nil)
        },
    ]

    private static let rivals: [Case] = [
        Case(8, .ok, "does not run") { _ in },
        Case(8, .ok, "leaves /dev/ttyACM0 alone") { $0.files["/proc/700/comm"] = "ModemManager\n" },
        Case(8, .degraded, "probes /dev/ttyACM0", "ATTRS{idVendor}==\"1546\", ATTRS{serial}==\"UB7X1\"") {
            $0.files["/proc/700/comm"] = "ModemManager\n"
            $0.files["/run/udev/data/c166:0"] = "E:ID_MM_CANDIDATE=1\n"
        },
        Case(8, .unknown, "udev says nothing", "udevadm info /dev/ttyACM0") {
            $0.files["/proc/700/comm"] = "ModemManager\n"
            $0.files["/run/udev/data/c166:0"] = nil
        },
        Case(9, .ok, "not installed") { _ in },
        Case(9, .ok, "no interest") { $0.files["/usr/lib/udev/rules.d/85-brltty.rules"] = "" },
        Case(9, .ok, "not installed") {
            $0.kernelLog = [
                .init(at: 9, "usb 1-1: usbfs: interface 0 claimed by ch341 while 'brltty' sets config #1")
            ]
        },
        Case(9, .broken, "brltty took a serial adapter", "apt remove brltty") {
            $0.files["/usr/lib/udev/rules.d/85-brltty.rules"] = ""
            $0.kernelLog = [
                .init(at: 9, "usb 1-1: usbfs: interface 0 claimed by ch341 while 'brltty' sets config #1")
            ]
        },
        Case(9, .degraded, "takes adapters", "apt remove brltty") {
            braille(&$0, "90-brltty-device.rules", "ENV{PRODUCT}==\"1a86/7523/*\", GOTO=\"brltty_usb_run\"\n")
        },
        Case(9, .ok, "no interest") {
            braille(&$0, "85-brltty.rules", "# ENV{PRODUCT}==\"1a86/7523/*\", GOTO=\"brltty_usb_run\"\n")
        },
        Case(9, .ok, "no interest") {
            let condition = "ATTRS{manufacturer}==\"Hedo Reha Technik GmbH\""
            braille(&$0, "85-brltty.rules", "ENV{PRODUCT}==\"1a86/7523/*\", \(condition), GOTO=\"brltty_usb_run\"\n")
        },
        Case(9, .unknown, "neither the rules", "sudo waypost doctor") {
            $0.kernelLog = nil
            $0.files["/usr/lib/udev/rules.d/70-waypost.rules"] = nil
        },
        Case(10, .ok, "no console") { _ in },
        Case(10, .broken, "login prompt runs", "raspi-config nonint do_serial_cons 1") {
            $0.files["/proc/700/comm"] = "agetty\n"
            $0.files["/proc/700/cmdline"] = "/sbin/agetty\0--keep-baud\0ttyACM0\0"
        },
        Case(10, .broken, "the kernel writes", "do_serial_cons") {
            $0.files["/proc/cmdline"] = "console=ttyACM0,115200\n"
        },
        Case(10, .broken, "the kernel writes", "sudoedit") {
            $0.files["/proc/cmdline"] = "quiet console=ttyACM0\n"
            $0.files["/proc/device-tree/model"] = nil
        },
        Case(10, .broken, "login prompt runs", "serial-getty@ttyACM0.service") {
            getty(&$0)
        },
        Case(10, .broken, "login prompt runs", "/etc/inittab") {
            getty(&$0)
            $0.loseSystemd()
        },
        Case(10, .unknown, "command line", "sudo waypost doctor") { $0.files["/proc/cmdline"] = nil },
        Case(11, .ok, "on USB") { _ in },
        Case(11, .ok, "no Raspberry Pi") { $0.files["/proc/device-tree/model"] = nil },
        Case(11, .ok, "full UART") { uart(&$0, "ttyAMA0") },
        Case(11, .ok, "fixed clock") {
            uart(&$0, "ttyS0")
            $0.files["/boot/firmware/config.txt"] = "# c\nenable_uart = 1\n"
        },
        Case(11, .degraded, "mini UART", "dtoverlay=disable-bt") { uart(&$0, "ttyS0") },
        Case(11, .unknown, "config.txt", "grep") {
            uart(&$0, "ttyS0")
            $0.files["/boot/firmware/config.txt"] = nil
        },
        Case(12, .ok, "no known modem") { _ in },
        Case(12, .ok, "modem sends sentences") { modem(&$0) },
        Case(12, .degraded, "switched on", "mmcli -m any --location-enable-gps-unmanaged") {
            modem(&$0)
            $0.status.source.sentences = 0
        },
        Case(12, .unknown, "not for you", "sudo waypost doctor") {
            modem(&$0)
            noStatus(&$0)
        },
    ]

    /// A login on the line of a host that is no Raspberry Pi.
    private static func getty(_ scene: inout Scene) {
        scene.files["/proc/700/comm"] = "agetty\n"
        scene.files["/proc/700/cmdline"] = "/sbin/agetty\0ttyACM0\0"
        scene.files["/proc/device-tree/model"] = nil
    }

    /// A CH340 on a host with these rules of brltty.
    private static func braille(_ scene: inout Scene, _ file: String, _ rules: String) {
        scene.files["/usr/lib/udev/rules.d/\(file)"] = rules
        scene.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/idVendor"] = "1a86\n"
        scene.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/idProduct"] = "7523\n"
    }

    private static func uart(_ scene: inout Scene, _ name: String) {
        scene.source = "kind = \"serial\"\npath = \"/dev/serial0\""
        scene.files["/dev/\(name)"] = ""
        scene.links["/dev/serial0"] = name
    }

    private static func modem(_ scene: inout Scene) {
        scene.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/idVendor"] = "2c7c\n"
    }

    private static let signal: [Case] = [
        Case(13, .ok, "9000 sentences, 0 broken") { _ in },
        Case(13, .ok, "asleep until tomorrow") {
            ($0.status.source.state, $0.status.source.reason) = ("asleep", "until tomorrow")
        },
        Case(13, .degraded, "10 % of the sentences are broken", "journalctl") {
            $0.status.source.checksumErrors = 1000
        },
        Case(13, .broken, "cannot open", "journalctl") {
            ($0.status.source.state, $0.status.source.reason) = ("lost", "cannot open /dev/ttyACM0: Input/output error")
        },
        Case(13, .broken, "nothing arrives: power, wiring", "journalctl") { $0.status.source.state = "silent" },
        Case(13, .broken, "nothing arrives: power, wiring", "waypost status") {
            ($0.status.source.state, $0.unit) = ("silent", [:])
        },
        Case(13, .broken, "nothing arrives: power, wiring", "waypost status --config '/srv/a b'") {
            $0.loseSystemd()
            ($0.status.source.state, $0.configurationPath) = ("silent", "/srv/a b")
        },
        Case(13, .broken, "nothing arrives: power, wiring", "baud = \"auto\"") {
            $0.source += "\nbaud = 9600"
            $0.status.source.state = "silent"
        },
        Case(13, .broken, "no packet arrives", "journalctl") {
            $0.source = "kind = \"udp\"\nport = 10110"
            $0.status.source.state = "silent"
        },
        Case(13, .broken, "sends nothing", "journalctl") {
            $0.source = "kind = \"tcp\"\nhost = \"gps.example\"\nport = 4001"
            $0.status.source.state = "silent"
        },
        Case(13, .ok, "nothing new") {
            $0.source = "kind = \"file\"\npath = \"/drive.nmea\"\nfollow = true"
            $0.status.source.state = "silent"
        },
        Case(13, .broken, "but no NMEA", "journalctl") { $0.status.source.state = "unreadable" },
        Case(13, .broken, "(77 framing errors)", "baud = \"auto\"") {
            $0 = .pc
            $0.source += "\nbaud = 4800"
            $0.status.source.state = "unreadable"
        },
        Case(13, .unknown, "being opened", "waypost status") { $0.status.source.state = "opening" },
        Case(14, .ok, "USB, whose speed is its own") { _ in },
        Case(14, .ok, "52 % of 9600 baud used") { $0 = .pc },
        Case(14, .degraded, "99 % of 9600 baud", "baud = 38400") {
            $0 = .pc
            $0.bytesPerSecond = 950
        },
        Case(14, .unknown, "not known yet", "waypost doctor") {
            $0 = .pc
            $0.status.source.baud = nil
        },
        Case(15, .ok, "2 s ago, 9 of 14 satellites, best 47 dB-Hz") { _ in },
        Case(15, .degraded, "the receiver repeats the fix of 13:53:30: restart", "waypost status") {
            $0.status.source.fault = "the receiver repeats the fix of 13:53:30: restart the receiver"
        },
        Case(17, .degraded, "jumped to 2034-01-05", "timedatectl") {
            $0.status.source.dateFault = "the receiver's date jumped to 2034-01-05"
        },
        Case(15, .degraded, "was believed", "waypost status") {
            $0.status.source.unbelieved = "none of the last 420 fixes was believed: the receiver gives no date"
        },
        Case(15, .degraded, "no fix in the 10 min since the start; the receiver lists no satellites", "waypost status")
        {
            noFix(&$0, uptime: 600)
            $0.status.source.satellitesInView = nil
        },
        Case(15, .unknown, "no fix in the 5 s since the start") { noFix(&$0, uptime: 5) },
        Case(15, .degraded, "no fix for 40 s: the receiver is opening", "watch") {
            $0.status.motion.lastFixAge = 40
            $0.status.source.state = "opening"
        },
        Case(15, .degraded, "sees no satellite", "watch") {
            noFix(&$0, uptime: 600)
            $0.status.source.satellitesInView = 0
        },
        Case(15, .degraded, "weak", "watch") {
            noFix(&$0, uptime: 600)
            ($0.status.source.satellitesStrong, $0.status.source.bestCN0) = (1, 31)
        },
        Case(15, .degraded, "cold start", "watch") { noFix(&$0, uptime: 600) },
        Case(15, .degraded, "restart the receiver", "watch") { noFix(&$0, uptime: 9000) },
        Case(15, .unknown, "not for you", "sudo waypost doctor", noStatus),
        Case(16, .ok, "good") { _ in },
        Case(16, .broken, "open antenna", "waypost status") { $0.status.source.antenna = "open" },
        Case(16, .broken, "short", "waypost status") { $0.status.source.antenna = "short" },
        Case(16, .unknown, "does not report") { $0.status.source.antenna = nil },
        Case(17, .ok, "2026-11-20") { _ in },
        Case(17, .broken, "2048 weeks behind, by 2 rollovers", "rollover = \"repair\"") {
            $0.status.motion.lastFix = "1987-08-21T09:59:58.500Z"
        },
        Case(17, .broken, "1024 weeks behind, by a rollover", "rollover = \"repair\"") {
            $0.status.motion.lastFix = "2007-04-06T09:59:58.500Z"
        },
        Case(17, .broken, "before this waypost", "rollover = \"repair\"") {
            $0.status.motion.lastFix = "2020-01-01T00:00:00.000Z"
        },
        Case(17, .degraded, "another day", "timedatectl") { $0.status.motion.lastFix = "2027-01-01T00:00:00.000Z" },
        Case(17, .degraded, "420 fixes without a date", "waypost status") {
            $0.status.motion.lastFix = nil
            $0.status.source.dateless = 420
        },
        Case(17, .ok, "a file") {
            $0.source = "kind = \"file\"\npath = \"/drive.nmea\""
            $0.status.motion.lastFix = "2007-04-06T09:59:58.500Z"
        },
        Case(17, .unknown, "no fix with a date") { $0.status.motion.lastFix = nil },
        Case(17, .unknown, "no fix with a date") {
            ($0.status.motion.lastFix, $0.status.motion.lastFixAge) = ("2026-11-17T09:59:58.500Z", nil)
        },
        Case(26, .ok, "nothing is asked") { _ in },
        Case(26, .ok, "gives one every 1000 ms") { $0.status.source.rate = rate(1000, 1000, true) },
        Case(26, .ok, "asleep") { $0.status.source.state = "asleep" },
        Case(26, .degraded, "asked for a fix every 5000 ms, gives one every 1000 ms", "profile = \"none\"") {
            $0.status.source.rate = rate(5000, 1000, false)
        },
        Case(26, .unknown, "asked for a fix every 5000 ms", "waypost status --json") {
            $0.status.source.rate = rate(5000, nil, nil)
        },
        Case(27, .ok, "no server lists geofences or beacon regions") { _ in },
        Case(27, .ok, "venue: 12 geofences, 3 h old") { fenceSource(&$0, age: 10_800) },
        Case(27, .degraded, "venue: the list is", "waypost geofences refresh") { fenceSource(&$0, age: 50_000) },
        Case(27, .degraded, "venue: the server answered with status 500 (12 geofences", "waypost geofences refresh") {
            fenceSource(&$0, age: 60, problem: "the server answered with status 500")
        },
        Case(27, .ok, "venue: 3 beacon regions, 3 h old") { beaconSource(&$0, age: 10_800) },
        Case(27, .degraded, "venue: the list was refused: [0].major (3 beacon regions", "waypost geofences refresh") {
            beaconSource(&$0, age: 60, problem: "the list was refused: [0].major")
        },
        Case(27, .degraded, "venue: the list is", "waypost geofences refresh") { beaconSource(&$0, age: 50_000) },
        Case(27, .unknown, "no daemon answers", "waypost status") {
            fenceSource(&$0, age: 60)
            noStatus(&$0)
        },
    ]

    private static func noFix(_ scene: inout Scene, uptime: Double) {
        (scene.status.motion.lastFix, scene.status.motion.lastFixAge) = (nil, nil)
        scene.status.uptime = uptime
        scene.status.source.satellitesUsed = 0
    }

    private static func fenceSource(_ scene: inout Scene, age: Double, problem: String? = nil) {
        scene.more += "[[geofences.source]]\nname = \"venue\"\nprofile = \"geojson\"\nurl = \"https://f.example\"\n"
        var source = ListSourceStatus()
        (source.name, source.fences, source.age, source.problem) = ("venue", 12, age, problem)
        scene.status.motion.geofences = GeofencesStatus()
        scene.status.motion.geofences?.sources = [source]
    }

    private static let remote: [Case] = [
        Case(28, .ok, "none are allowed") { _ in },
        Case(28, .ok, "the file alone is in force, the server answered 5 min ago") {
            settings(&$0) { $0.lastContactAge = 300 }
        },
        Case(28, .ok, "version 17 is in force") { settings(&$0) { ($0.inForce, $0.state) = (17, "applied") } },
        Case(28, .ok, "version 17 is on trial, 12 min of it left") {
            settings(&$0) { ($0.inForce, $0.state, $0.rest) = (17, "trial", 720) }
        },
        Case(28, .degraded, "settings_url: dns: no such host", "getent ahosts settings.example") {
            settings(&$0) { _ in }
            $0.settingsReach = .init(
                endpoint: "remote.settings", host: "settings.example", peer: "settings.example:443",
                failure: .init(layer: "dns", message: "no such host"), milliseconds: 10)
        },
        Case(28, .degraded, "cannot be fetched: status 401", "journalctl -u waypost -n 20 -g 'settings from afar'") {
            settings(&$0) { $0.problem = "cannot be fetched: status 401" }
        },
        Case(28, .degraded, "a document was refused: it is not signed", "waypost remote") {
            settings(&$0) { $0.refused = "it is not signed" }
        },
        Case(28, .degraded, "version 17 was rejected: a.b: not allowed; c: unknown (and 1 more)", "waypost remote") {
            settings(&$0) {
                ($0.version, $0.state) = (17, "rejected")
                $0.rejected = Named([("a.b", "not allowed"), ("c", "unknown"), ("d", "unknown")])
            }
        },
        Case(28, .degraded, "version 17 was taken back: no batch was accepted", "waypost remote") {
            settings(&$0) {
                ($0.version, $0.state, $0.rejected) = (17, "reverted", Named([("", "no batch was accepted")]))
            }
        },
        Case(28, .degraded, "the server answered last 20 h ago", "waypost remote") {
            settings(&$0) { $0.lastContactAge = 72_000 }
        },
        Case(28, .degraded, "no answer of the server since the start", "waypost remote") {
            settings(&$0) { _ in }
            $0.status.uptime = 100_000
        },
        Case(28, .degraded, "the daemon runs without them", "systemctl restart waypost") {
            settings(&$0) { _ in }
            $0.status.remote = nil
        },
        Case(28, .unknown, "busy", "sudo waypost doctor") {
            settings(&$0) { _ in }
            $0.daemon = .unreachable("busy")
        },
    ]

    private static func settings(_ scene: inout Scene, _ change: (inout RemoteStatus) -> Void) {
        scene.more +=
            "[remote]\nsettings_url = \"https://settings.example/van-7\"\nallow = [\"sampling\"]\n"
        var status = RemoteStatus()
        status.state = "none"
        change(&status)
        scene.status.remote = status
        scene.status.uptime = 600
    }

    private static func beaconSource(_ scene: inout Scene, age: Double, problem: String? = nil) {
        scene.more +=
            "[beacons]\nenabled = true\n[[beacons.source]]\nname = \"venue\"\nprofile = \"accesso-beacons\"\n"
            + "url = \"https://f.example\"\n"
        var source = ListSourceStatus()
        (source.name, source.regions, source.age, source.problem) = ("venue", 3, age, problem)
        scene.status.beacons = BeaconStatus()
        scene.status.beacons?.sources = [source]
    }

    private static func rate(_ wanted: Int64, _ measured: Int64?, _ honoured: Bool?) -> RateStatus {
        var rate = RateStatus()
        (rate.wanted, rate.measured, rate.honoured) = (wanted, measured, honoured)
        return rate
    }

    private static let host: [Case] = [
        Case(18, .ok, "synchronised") { _ in },
        Case(18, .broken, "1970-01-01", "timedatectl set-ntp true") { $0.wallClock = 30_000 },
        Case(18, .degraded, "60 s ahead of the receiver", "timedatectl") { $0.wallClock += 60_000 },
        Case(18, .degraded, "no time service", "timedatectl") { $0.isClockSynchronised = false },
        Case(18, .degraded, "no time service", "chronyd -q") {
            $0.loseSystemd()
            $0.isClockSynchronised = false
        },
        Case(18, .degraded, "no time service", "chronyc makestep") {
            $0.loseSystemd()
            $0.files["/proc/700/comm"] = "chronyd\n"
            $0.isClockSynchronised = false
        },
        Case(18, .degraded, "no time service", "that of its host") {
            $0.loseSystemd()
            $0.files["/.dockerenv"] = ""
            $0.isClockSynchronised = false
        },
        Case(18, .unknown, "kernel does not say", "timedatectl") { $0.isClockSynchronised = nil },
        Case(18, .unknown, "kernel does not say", "date -u") {
            $0.loseSystemd()
            $0.isClockSynchronised = nil
        },
        Case(19, .ok, "no low voltage") { _ in },
        Case(19, .broken, "too low now", "dmesg") { $0.files["/sys/class/hwmon/hwmon0/in0_lcrit_alarm"] = "1\n" },
        Case(19, .degraded, "too low 2 times", "dmesg") {
            $0.kernelLog = [
                .init(at: 1, "hwmon hwmon1: Undervoltage detected!"),
                .init(at: 2, "Under-voltage detected! (0x00050005)"),
            ]
        },
        Case(19, .degraded, "lost 2 times", "dmesg") {
            let lost = "usb 1-1.2: USB disconnect, device number 4"
            $0.kernelLog = [.init(at: 1, lost), .init(at: 89_000, lost), .init(at: 89_500, lost)]
        },
        Case(19, .ok, "no low voltage") {
            $0.kernelLog = [
                .init(at: 89_000, "usb 1-1.3: USB disconnect"), .init(at: 89_000, "usb 1-1.3: USB disconnect"),
            ]
        },
        Case(19, .unknown, "kernel log", "sudo waypost doctor") {
            $0.kernelLog = nil
            $0.files["/sys/class/hwmon/hwmon0/name"] = "cpu\n"
        },
        Case(22, .ok, "4096 MiB free on / (ext4)") { _ in },
        Case(22, .broken, "database or disk is full", "df -h /var/lib/waypost") {
            $0.status.queue.diskError = "database or disk is full"
        },
        Case(22, .broken, "tmpfs, which forgets", "[outbox]") {
            $0.files["/proc/self/mountinfo"]? += "25 24 0:9 / /var/lib rw - tmpfs t rw\n"
        },
        Case(22, .broken, "overlay, which forgets", "disable_overlayfs") {
            $0.files["/proc/self/mountinfo"] = "24 1 0:9 / / rw - overlay o rw\n"
        },
        Case(22, .broken, "read-only", "mount -o remount,rw /") {
            $0.files["/proc/self/mountinfo"] = "24 1 179:2 / / ro - ext4 /dev/root rw\n"
        },
        Case(22, .broken, "read-only", "mount -o remount,rw /") {
            $0.files["/proc/self/mountinfo"] = "24 1 179:2 / / ro - ext4 /dev/root rw\n"
            $0.status.queue.diskError = "attempt to write a readonly database"
        },
        Case(22, .broken, "2 MiB free", "du -xh") { $0.diskSpace?.bytesFree = 2 << 20 },
        Case(22, .broken, "no room for files", "du -xh") { $0.diskSpace?.filesFree = 0 },
        Case(22, .broken, "50 MiB free on / (ext4), less than min_free", "du -xh") {
            $0.diskSpace?.bytesFree = 50 << 20
        },
        Case(22, .degraded, "90 MiB free", "du -xh") { $0.diskSpace?.bytesFree = 90 << 20 },
        Case(22, .broken, "tmpfs, which forgets", "[outbox]") {
            $0.files["/var/lib/waypost/outbox.db"] = nil
            $0.files["/dev/shm/w/outbox.db"] = ""
            $0.links["/var/lib/waypost"] = "../../dev/shm/w"
            $0.files["/proc/self/mountinfo"]? += "25 24 0:9 / /dev/shm rw - tmpfs t rw\n"
        },
        Case(22, .broken, "tmpfs, which forgets", "[outbox]") {
            let line = "40 24 0:40 / /var/lib/docker/overlay2/0123456789abcdef/merged rw - overlay overlay rw\n"
            $0.files["/proc/self/mountinfo"]? += String(repeating: line, count: 800)
            $0.files["/proc/self/mountinfo"]? += "25 24 0:9 / /var/lib rw - tmpfs t rw\n"
        },
        Case(22, .broken, "/a b is mounted read-only", "mount -o remount,rw '/a b'") {
            $0.files["/a b/outbox.db"] = ""
            $0.files["/var/lib/waypost/outbox.db"] = nil
            $0.links["/var/lib/waypost"] = "../../a b"
            $0.files["/proc/self/mountinfo"]? += "25 24 179:3 / /a\\040b ro - ext4 /dev/x ro\n"
        },
        Case(22, .degraded, "3 errors", "forcefsck") { $0.files["/sys/fs/ext4/mmcblk0p2/errors_count"] = "3\n" },
        Case(22, .unknown, "mounts cannot be read", "findmnt") { $0.files["/proc/self/mountinfo"] = nil },
        Case(22, .unknown, "free space", "df -h") { $0.diskSpace = nil },
        Case(23, .ok, "at most 20 %") { _ in },
        Case(23, .ok, "no card") { $0 = .pc },
        Case(23, .broken, "worn out", "lsblk") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = "0x0b 0x01\n"
        },
        Case(23, .broken, "worn out", "lsblk") { $0.files["/sys/devices/mmc0/mmcblk0/device/pre_eol_info"] = "0x03\n" },
        Case(23, .degraded, "90 % of its life", "commit_window") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = "0x09 0x01\n"
        },
        Case(23, .degraded, "90 % of its life; the journal is kept on it too", "Storage=volatile") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = "0x09 0x01\n"
            $0.files["/var/log/journal/0123/system.journal"] = ""
        },
        Case(23, .degraded, "90 % of its life", "commit_window") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = "0x09 0x01\n"
            $0.files["/var/log/journal/0123/system.journal"] = ""
            $0.files["/proc/self/mountinfo"]? += "25 24 0:9 / /var/log rw - tmpfs t rw\n"
        },
        Case(23, .degraded, "80 % of its spare blocks", "commit_window") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/pre_eol_info"] = "0x02\n"
        },
        Case(23, .ok, "at most 20 % of its life; 48 GiB written in its life, 1024 MiB a day since the start") {
            $0.files["/sys/fs/ext4/mmcblk0p2/lifetime_write_kbytes"] = "50331648\n"
            $0.files["/sys/fs/ext4/mmcblk0p2/session_write_kbytes"] = "1092267\n"
            $0.files["/var/log/journal/0123/system.journal"] = ""
        },
        Case(23, .unknown, "SD cards do not report their wear; 5000 MiB written in its life") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = nil
            $0.files["/sys/fs/ext4/mmcblk0p2/lifetime_write_kbytes"] = "5120000\n"
        },
        Case(23, .unknown, "SD cards do not report") { $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = nil },
        Case(23, .unknown, "does not report") {
            $0.files["/sys/devices/mmc0/mmcblk0/device/life_time"] = "0x00 0x00\n"
        },
        Case(23, .unknown, "disk behind", "findmnt") { $0.links["/sys/dev/block/179:2"] = nil },
    ]

    private static let delivery: [Case] = [
        Case(20, .ok, "1 answers within 120 ms") { _ in },
        Case(20, .ok, "none is configured") { $0.more = "" },
        Case(20, .broken, "main: dns: fleet.example:443", "getent ahosts fleet.example") {
            fails(&$0, "dns", "fleet.example:443: the name fleet.example cannot be resolved")
        },
        Case(
            20, .broken, "main: tls: fleet.example:443: certificate has expired", "s_client -connect fleet.example:443"
        ) {
            fails(&$0, "tls", "fleet.example:443: certificate has expired")
        },
        Case(20, .broken, "is the clock", "timedatectl") {
            fails(&$0, "clock", "certificate is not yet valid; is the clock of this device right?")
        },
        Case(20, .broken, "main: tls: bad certificate (and 1 more)", "s_client") {
            fails(&$0, "tls", "bad certificate")
            $0.reaches?.append(spare)
        },
        Case(20, .degraded, "spare: connect", "nc -vz ::1 80") {
            $0.reaches?.append(spare)
        },
        Case(20, .degraded, "main: the certificate of fleet.example:443 expires in 3 days", "openssl x509") {
            $0.reaches?[0].stages.certificate = certificate(days: 90, left: 3)
        },
        Case(20, .ok, "1 answers within 120 ms; the certificate of fleet.example:443 expires in 3 days") {
            $0.reaches?[0].stages.certificate = certificate(days: 6, left: 3)
        },
        Case(20, .ok, "1 answers within 120 ms") {
            $0.reaches?[0].stages.certificate = certificate(days: 90, left: 15)
        },
        Case(20, .degraded, "main: status 500", "profile render --endpoint main") {
            endpoint(&$0) { $0.problem = "status 500" }
        },
        Case(20, .degraded, "main: closed: the broker closed the connection", "getent ahosts fleet.example") {
            endpoint(&$0) { ($0.problem, $0.problemLayer) = ("the broker closed the connection", "closed") }
        },
        Case(20, .degraded, "main: closed: the broker closed", "mosquitto_sub -d -h fleet.example -p 443 ") {
            $0.more = upload.replacing("https://", with: "mqtts://") + "profile = \"waypost-mqtt\"\n"
            endpoint(&$0) { ($0.problem, $0.problemLayer) = ("the broker closed the connection", "closed") }
        },
        Case(20, .degraded, "main: rebind (the address has changed), nothing is sent", "waypost endpoint bind main") {
            endpoint(&$0) { ($0.state, $0.reason) = ("rebind", "the address has changed") }
        },
        Case(20, .degraded, "main: rebind (the device has changed), nothing is sent", "endpoint bind main --force") {
            endpoint(&$0) { ($0.state, $0.reason, $0.bindNeedsForce) = ("rebind", "the device has changed", true) }
        },
        Case(20, .ok, "none is configured yet: drives are stored on this device") { $0.more = "" },
        Case(20, .ok, "1 answers") {
            endpoint(&$0) { ($0.problem, $0.tokenProblem) = ("no token: it is away", "no token: it is away") }
        },
        Case(20, .unknown, "spare: the certificates or the key", "sudo waypost doctor") { $0.untried = ["spare"] },
        Case(20, .unknown, "no endpoint was tried", "waypost doctor") { $0.reaches = nil },
        Case(21, .ok, "none is needed") { _ in },
        Case(21, .ok, "1 secret in place") { secret(&$0, given: "token") },
        Case(21, .broken, "the server refuses them", "endpoint resume main") {
            endpoint(&$0) { ($0.state, $0.reason) = ("paused", "auth") }
        },
        Case(21, .broken, "main: status 401, the credential is refused: check the token in /x", "endpoint resume main")
        {
            endpoint(&$0) {
                ($0.state, $0.reason) = ("paused", "auth")
                $0.problem = "status 401, the credential is refused: check the token in /x; paused (auth)"
            }
        },
        Case(21, .degraded, "main: our certificate expires in 3 days", "endpoint resume main") {
            $0.clientCertificates["main"] = certificate(days: 365, left: 3)
        },
        Case(21, .broken, "main: our certificate expired 3 days ago", "endpoint resume main") {
            $0.clientCertificates["main"] = certificate(days: 365, left: -3)
        },
        Case(21, .ok, "none is needed") { $0.clientCertificates["main"] = certificate(days: 365, left: 200) },
        Case(21, .degraded, "main: its token expires in 3 days", "endpoint resume main") {
            token(&$0, left: 3 * 86_400, of: 90 * 86_400)
        },
        Case(21, .degraded, "main: its token expires in 3 days", "endpoint resume main") {
            token(&$0, left: 3 * 86_400, of: nil)
        },
        Case(21, .broken, "main: its token expired 2 h ago", "endpoint resume main") {
            token(&$0, left: -7200, of: 3600)
        },
        Case(21, .ok, "1 secret in place") { token(&$0, left: 900, of: 3600) },
        Case(21, .ok, "1 secret in place") { token(&$0, left: 30 * 86_400, of: nil) },
        // Fetched again when there is something to send.
        Case(21, .ok, "none is needed") {
            token(&$0, left: -7200, of: 3600)
            $0.more = upload + "auth = { kind = \"token_command\", command = [\"/bin/true\"] }\n"
        },
        Case(
            21, .degraded, "main: no token: login.example answered with status 401; the one in use expires in 10 min",
            "endpoint resume main"
        ) {
            endpoint(&$0) {
                ($0.tokenProblem, $0.tokenExpires) = ("no token: login.example answered with status 401", 600)
            }
        },
        Case(21, .broken, "main: no token: login.example answered with status 401", "endpoint resume main") {
            endpoint(&$0) {
                ($0.state, $0.reason) = ("paused", "auth")
                $0.tokenProblem = "no token: login.example answered with status 401"
            }
        },
        Case(21, .broken, "does not load credential token", "LoadCredential=token:") { secret(&$0, given: "other") },
        Case(21, .broken, "does not load credential token", "LoadCredential=token:") { secret(&$0, given: nil) },
        Case(21, .unknown, "cannot be seen", "sudo waypost doctor") {
            secret(&$0, given: nil)
            $0.unit?["ActiveState"] = "failed"
        },
        Case(21, .unknown, "cannot be seen", "sudo waypost doctor") {
            secret(&$0, given: nil)
            // As a folder that may not be read.
            $0.files["/run/credentials/waypost.service"] = ""
        },
        Case(21, .unknown, "comes from systemd") {
            secret(&$0, given: nil)
            $0.loseSystemd()
        },
        Case(21, .unknown, "configuration", "sudo waypost doctor --config /srv/w.toml") {
            noConfiguration(&$0)
            $0.configurationPath = "/srv/w.toml"
        },
        Case(24, .ok, "12 rows") { _ in },
        Case(24, .ok, "none yet") { $0.queue = .absent },
        Case(24, .broken, "malformed", "systemctl restart waypost") {
            $0.queue = .damaged(["disk image is malformed"])
        },
        Case(24, .degraded, "outbox.db.corrupt-1", "ls -l /var/lib/waypost") {
            $0.files["/var/lib/waypost/outbox.db.corrupt-1"] = ""
            $0.files["/var/lib/waypost/outbox.db.corrupt-1-wal"] = ""
        },
        Case(24, .unknown, "may not be read", "sudo waypost doctor") { $0.queue = .unreadable("it may not be read") },
        Case(25, .ok, "names one receiver") { _ in },
        Case(25, .degraded, "2 receivers share /dev/waypost/gps", "serial_number = \"UB7X1\"") {
            $0.source = "kind = \"serial\"\npath = \"/dev/waypost/gps\""
            $0.links["/dev/waypost/gps"] = "../ttyACM0"
            $0.files["/run/udev/data/c166:1"] = "E:WAYPOST_GPS=1\n"
        },
        Case(25, .unknown, "udev does not run") { $0.files["/run/udev/data/c166:0"] = nil },
    ]

    private static let spare = Evidence.Reach(
        endpoint: "spare", host: "[::1]", peer: "[::1]:80", failure: .init(layer: "connect", message: "refused"),
        milliseconds: 1)

    private static func fails(_ scene: inout Scene, _ layer: String, _ message: String) {
        scene.reaches?[0].failure = .init(layer: layer, message: message)
    }

    /// At the time of the scene.
    private static func certificate(days: Int64, left: Int64) -> CertificateDates {
        let until = Scene.pi.wallClock / 1000 + left * 86_400
        return .init(from: until - days * 86_400, until: until)
    }

    private static func endpoint(_ scene: inout Scene, _ change: (inout EndpointStatus) -> Void) {
        var endpoint = EndpointStatus()
        (endpoint.name, endpoint.state) = ("main", "active")
        change(&endpoint)
        scene.status.endpoints = [endpoint]
    }

    private static func token(_ scene: inout Scene, left: Double, of validity: Double?) {
        secret(&scene, given: "token")
        endpoint(&scene) { ($0.tokenExpires, $0.tokenValidity) = (left, validity) }
    }

    private static func secret(_ scene: inout Scene, given name: String?) {
        scene.more = upload + "auth = { kind = \"bearer\", token = \"credential:token\" }\n"
        if let name { scene.files["/run/credentials/waypost.service/\(name)"] = "" }
    }
}

@Suite("Checks of doctor") struct CheckTests {
    @Test(arguments: Case.all) func findsOneThing(_ one: Case) throws {
        var scene = Scene.pi
        one.change(&scene)
        let finding = try #require(try scene.examined().finding(one.number))
        #expect(finding.state == one.state, "\(finding)")
        #expect(finding.found.contains(one.found), "\(finding.found)")
        if let advice = one.advice {
            #expect(finding.advice?.contains(advice) == true, "\(finding.advice ?? "no advice")")
        } else {
            #expect(finding.advice == nil)
        }
    }

    /// Each is seen good, failing and not known here; skipped below.
    @Test func seesEveryCheckInEveryState() {
        for check in Check.all {
            let states = Set(Case.all.filter { $0.number == check.number }.map(\.state))
            #expect(states.contains(.ok) && states.contains(.unknown), "\(check.number)")
            #expect(!states.isDisjoint(with: [.degraded, .broken]), "\(check.number)")
        }
        #expect(Check.all.map(\.number) == Array(1...28))
    }

    static let hidden: [(Int, [Int])] = [
        (1, [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 25, 26, 27, 28]),
        (2, [6, 12, 13, 14, 15, 16, 17, 26]), (3, [4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 25, 26]), (22, [24]),
    ]

    @Test(arguments: hidden)
    func skipsWhatAnotherCheckExplains(_ cause: Int, _ skipped: [Int]) throws {
        var scene = Scene.pi
        // All that a cause hides fails here: what works is never skipped.
        switch cause {
        case 1:
            scene.configurationFound = .invalid(["w.toml:1:1: unreadable"])
            scene.daemon = .absent
        case 2:
            scene.daemon = .absent
            scene.files["/proc/500/status"] = nil
            scene.files["/sys/devices/platform/scb/usb1/1-1/1-1.2/idVendor"] = "2c7c\n"
        case 3:
            scene.files["/dev/ttyACM0"] = nil
            scene.modes = [:]
            scene.daemon = .unreachable("busy")
        default:
            scene.diskSpace?.bytesFree = 0
            scene.queue = .damaged(["malformed"])
        }
        let examination = try scene.examined()
        let found = examination.results.filter { $0.finding.state == .skipped }
        #expect(found.map(\.check.number) == skipped)
        #expect(found.allSatisfy { $0.finding.cause == cause && $0.finding.advice == nil })
        #expect(examination.state(cause) == .broken)
    }

    /// The configuration, brltty, the clock and the power supply have no cause that another check finds.
    @Test func everyOtherCheckCanBeSkipped() {
        #expect(Check.all.filter { !$0.canBeSkipped }.map(\.number) == [1, 9, 18, 19])
    }

    @Test func saysWhatIsNotKnownOnAHostWithoutHelp() throws {
        let examination = try Scene.container.examined()
        let unknown = examination.states.filter { $0.value == .unknown }.keys.sorted()
        #expect(unknown == [9, 18, 19, 23], "\(examination.lines(listsAll: true))")
        #expect(examination.exitStatus == 0)
    }

    @Test func findsNothingWrongWithAGoodHost() throws {
        for scene in [Scene.pi, .pc] {
            let examination = try scene.examined()
            #expect(examination.states.values.allSatisfy { $0 == .ok }, "\(examination.lines(listsAll: true))")
            #expect(examination.verdict == "28 of 28 checks are good")
        }
    }
}
