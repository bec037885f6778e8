import Foundation
import Synchronization
import TestSupport
import Testing

/// `waypost top` as a user has it: in a real terminal, which is tmux.
@Suite(.waiting) struct TopTests {
    private let rig: Rig
    /// The last trip of the demo drive, followed at its end, so that the daemon stays. On a slow machine as well the receiver is
    /// not silent yet when somebody looks.
    private let source: String

    init() throws {
        rig = try Rig()
        source = try Rig.log(rig.write(DemoDrive.lastTrip), follow: true) + "\nstale_after = \"1h\""
    }

    private func pane(
        _ columns: Int = 80, _ rows: Int = 24, environment: String = "LC_ALL=C.UTF-8", then: String = "echo left"
    ) throws -> Pane {
        try Pane(
            rig, columns, rows,
            "\(environment) '\(BuiltProducts.executable("waypost").path)' top --socket '\(rig.path("control.sock"))'; \(then)"
        )
    }

    private func startDriven() throws -> RunningProgram {
        try rig.startCollector()
        try rig.configure(source: source, endpoint: "batch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= 124 }
        try rig.waitForEndpoint { $0["waiting"] as? Int == 0 }
        return daemon
    }

    @Test func everythingIsOnTheScreenAndFollowsItsSize() throws {
        let daemon = try startDriven()
        let pane = try pane(120, 32)
        _ = try pane.waitFor("DECISIONS")
        let keys = "q quit  p pause  f flush  e endpoints"
        let words = ["RECEIVER", "MOTION", "TRACK", "QUEUE", "ENDPOINT", "main ", "DECISIONS"]
        let sizes: [(columns: Int, rows: Int)] = [(120, 32), (52, 18), (80, 24), (20, 6), (120, 32)]
        for (columns, rows) in sizes {
            try pane.resize(columns, rows)
            // The smallest has no room for all.
            let isSmall = columns <= 20
            // What is drawn line by line may be seen in between.
            let screen = try pane.wait { screen in
                screen.count == rows && screen.last?.hasPrefix(isSmall ? "q quit" : keys) == true
                    && (isSmall || words.allSatisfy { word in screen.contains { $0.hasPrefix(word) } })
            }
            #expect(screen.allSatisfy { $0.count <= columns })
            guard !isSmall else { continue }
            let (first, text) = (screen[0], screen.joined(separator: "\n"))
            #expect(first.hasPrefix("waypost 0.") && first.hasSuffix(" UTC"), "\(text)")
            #expect(text.contains("kept 124, "), "\(text)")
            #expect(text.contains(" parked (") || text.contains(" departed ("), "\(text)")
        }
        #expect(daemon.isRunning)
    }

    @Test func aRestartOfTheDaemonIsSurvived() throws {
        let daemon = try startDriven()
        let pane = try pane()
        _ = try pane.waitFor("kept 124")
        try daemon.stop()
        let away = try pane.waitFor("daemon away since ")
        #expect(away.contains { $0.hasPrefix("! no daemon answers: ") })
        // What was known is still there.
        #expect(away.contains { $0.contains("kept 124") })
        let again = try rig.startDaemon()
        let back = try pane.wait { screen in
            screen.first?.contains("daemon away") == false && screen.contains { $0.hasPrefix("MOTION") }
        }
        #expect(back.last?.hasSuffix("  the daemon answers again") == true)
        #expect(again.isRunning)
    }

    /// Neither a stopped daemon nor one that is not there keeps a key from working.
    @Test func itWaitsForADaemonAndCanBeLeft() throws {
        try rig.configure(source: source)
        let pane = try pane()
        _ = try pane.waitFor("no daemon answers: ")
        let daemon = try rig.startDaemon()
        _ = try pane.waitFor("RECEIVER")
        daemon.kill(SIGSTOP)
        _ = try pane.waitFor("daemon away since ")
        try pane.press("q")
        let left = try pane.waitFor("left")
        #expect(!left.contains { $0.contains("RECEIVER") })
        #expect(try pane.asks("#{alternate_on} #{cursor_flag}") == "0 1")
        daemon.kill(SIGCONT)
    }

    @Test func keysPauseShowEndpointsAndFlush() throws {
        let server = try LocalServer()
        server.stop()
        try rig.configure(source: source, server: server.port, endpoint: "batch_window = \"1h\"")
        let daemon = try rig.startDaemon()
        try rig.waitFor("motion", "kept") { ($0 as? Int ?? 0) >= 124 }
        let pane = try pane()
        _ = try pane.waitFor("kept 124")
        try pane.press("p")
        _ = try pane.waitFor("paused")
        try pane.press("p")
        _ = try pane.wait { $0.last?.contains("paused") == false }
        try pane.press("e")
        _ = try pane.wait { screen in
            screen.last?.contains("e overview") == true && !screen.contains { $0.hasPrefix("TRACK") }
        }
        try pane.press("PageDown")
        try pane.press("Up")
        try pane.press("e")
        try pane.press("f")
        _ = try pane.waitFor("y yes  n no")
        try pane.press("n")
        _ = try pane.waitFor("f flush")
        try pane.press("f")
        _ = try pane.waitFor("y yes  n no")
        try pane.press("y")
        _ = try pane.waitFor("flush: main: 0 accepted, 12")
        // It has tried, and the endpoint is shown as one that fails.
        _ = try pane.waitFor("retrying")
        #expect(daemon.isRunning)
    }

    @Test func howeverItEndsTheTerminalIsGivenBack() throws {
        try rig.configure(source: Rig.serial(rig.path("no-receiver")))
        let daemon = try rig.startDaemon()
        let pane = try pane(then: "stty -a | tr ' ' '\n' | grep -x -e icanon -e echo; echo left")
        for signal in ["INT", "TERM", "HUP", "QUIT", "SEGV", "ABRT", "TRAP"] {
            _ = try pane.waitFor("RECEIVER")
            #expect(try pane.asks("#{alternate_on} #{cursor_flag}") == "1 0", "\(signal)")
            try pane.signal(signal)
            let left = try pane.wait { $0.contains("left") }
            #expect(left.contains("icanon") && left.contains("echo"), "\(signal): \(left)")
            #expect(try pane.asks("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1", "\(signal)")
            try pane.again()
        }
        #expect(daemon.isRunning)
    }

    /// It answers, though with nothing that can be read.
    @Test(.bug(id: 13)) func aDaemonThatDoesNotAnswerWithItsStatusIsNotAbsent() throws {
        let socket = try ControlImitation(rig.path("control.sock"), replies: ["{}"])
        let pane = try pane()
        let screen = try pane.waitFor("daemon away since ")
        #expect(
            screen.contains("! the daemon does not answer with its status: unexpected reply from the daemon"),
            "\(screen)")
        _ = socket
    }

    @Test func itCanBeStoppedAndGoesOn() throws {
        try rig.configure(source: source)
        let daemon = try rig.startDaemon()
        // A shell with job control, as a user has it.
        let pane = try Pane(rig, 80, 24, "bash --norc")
        try pane.type(
            "PS1='shell> '; LC_ALL=C.UTF-8 '\(BuiltProducts.executable("waypost").path)' top --socket '\(rig.path("control.sock"))'"
        )
        _ = try pane.waitFor("RECEIVER")
        try pane.press("C-z")
        _ = try pane.wait { screen in
            screen.contains { $0.contains("Stopped") } && screen.contains { $0.hasPrefix("shell>") }
        }
        #expect(try pane.asks("#{alternate_on} #{cursor_flag}") == "0 1")
        try pane.type("fg")
        _ = try pane.waitFor("RECEIVER")
        #expect(try pane.asks("#{alternate_on} #{cursor_flag}") == "1 0")
        try pane.press("C-c")
        _ = try pane.wait { screen in screen.contains { $0.hasPrefix("shell>") } }
        #expect(daemon.isRunning)
    }

    /// The other page of colours.
    @Test func theStatusIsGreenOnATerminal() throws {
        let daemon = try startDriven()
        let program = try BuiltProducts.executable("waypost").path
        let socket = rig.path("control.sock")
        let pane = try Pane(rig, 80, 24, "NO_COLOR= '\(program)' status --socket '\(socket)'; echo left")
        _ = try pane.waitFor("left")
        let raw = try pane.captured("-e")
        #expect(raw.contains { $0.contains("\u{1b}[32mwaypost ") && !$0.contains("x1b") }, "\(raw)")
        #expect(daemon.isRunning)
    }

    @Test func withoutUnicodeColourOrTerminalThereIsOnlyText() throws {
        let daemon = try startDriven()
        let pane = try pane(environment: "LC_ALL=C NO_COLOR=1")
        _ = try pane.waitFor("DECISIONS")
        let raw = try pane.captured("-e")
        #expect(raw.allSatisfy { $0.utf8.allSatisfy { (0x20..<0x7F).contains($0) } }, "\(raw)")
        // Elsewhere it prints one picture.
        let (status, text) = try rig.call(
            ["top", "--socket", rig.path("control.sock")], environment: ["LC_ALL": "C.UTF-8"])
        let missing = ["\nDECISIONS\n", "at 52."].filter { !text.contains($0) }
        #expect(status == 0 && text.hasPrefix("waypost 0.") && missing.isEmpty, "\(text)")
        #expect(!text.contains("\u{1b}") && !text.contains("q quit"), "\(text)")
        #expect(daemon.isRunning)
        // The status has no place.
        #expect(try !rig.says("status", "--json", "--socket", rig.path("control.sock")).contains("52.49"))
    }

    @Test func aStatusHasItsColoursInATerminal() throws {
        let daemon = try startDriven()
        let program = try BuiltProducts.executable("waypost").path
        let command = "env -u NO_COLOR '\(program)' status --socket '\(rig.path("control.sock"))'"
        let pane = try Pane(rig, 80, 24, command)
        _ = try pane.waitFor("receiver")
        let raw = try pane.captured("-e").joined(separator: "\n")
        #expect(raw.contains("\u{1b}[3") && !raw.contains(#"\x1b"#), "\(raw)")
        #expect(daemon.isRunning)
    }

    // Hostile text

    /// What a gpsd calls itself and its device reaches the screen as text.
    @Test func aGPSDCannotSteerTheTerminal() throws {
        let gpsd = try LocalServer()
        try rig.configure(source: "kind = \"gpsd\"\nhost = \"127.0.0.1\"\nport = \(gpsd.port)")
        let daemon = try rig.startDaemon()
        try gpsd.accept()
        for line in [
            #"{"class":"VERSION","release":"3.25\u001b]0;owned\u0007","rev":"3.25","proto_major":3,"proto_minor":15}"#,
            #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/\u001b[2J\u202e\u009b31mgps"}]}"#,
        ] { gpsd.send(Array("\(line)\r\n".utf8)) }
        let pane = try pane(120, 32)
        let screen = try pane.waitFor(#"gpsd 3.25\x1b]0;owned\x07 with /dev/\x1b[2J\u{202e}\x9"#)
        #expect(screen.first?.hasPrefix("waypost ") == true)
        #expect(try pane.asks("#{pane_title}") != "owned")
        #expect(daemon.isRunning)
    }

    /// Where a server redirects to is the one text of a server that a status quotes.
    @Test func aServerCannotSteerTheTerminal() throws {
        let server = try ScriptedServer(
            answering: "HTTP/1.1 302 Found\r\nLocation: http://evil[31m.example/\r\nContent-Length: 0\r\n\r\n")
        try rig.configure(source: source, server: server.port, endpoint: "batch_window = \"100ms\"")
        let daemon = try rig.startDaemon()
        let pane = try pane(120, 32)
        _ = try pane.waitFor("redirected to evil[31m.example")
        #expect(daemon.isRunning)
    }

    /// Everything that the daemon says, since not every text of it is known to be safe for ever.
    @Test func noTextOfAStatusSteersTheTerminal() throws {
        let evil = #"a\u001b[2J\u001b]0;owned\u0007\u009b31m\u202eb\r\n\u0000\ud83d\ude9a"#
        let status = #"""
            {"id":1,"ok":true,"version":"\#(evil)","health":"\#(evil)","line":"","problems":["\#(evil)"],"wakeups":1,\#
            "repeated_on_fresh_connection":0,"unasked_answers":0,"motion":{"state":"\#(evil)","since":"\#(evil)","odometer":1,"trips":1,"stops":1,\#
            "gaps":1,"admitted":1,"rejected":{},"kept":1,"subscribers_refused":0,"engine":{"mode":"x","priority":"\#(evil)",\#
            "interval_ms":1,"displacement":1},"trackables":0,"resolutions":{}},"source":{"name":"\#(evil)","state":"\#(evil)",\#
            "bytes":0,"sentences":0,"fixes":0,"void_epochs":0,"checksum_errors":0,"too_long":0,"bad_bytes":0,"stray_bytes":0,"bad_fields":0,\#
            "late":0,"dateless":0},"power":{"low":false},"queue":{"queue_depth":1,"disk_error":"\#(evil)"},\#
            "endpoints":[{"name":"\#(evil)","state":"\#(evil)","waiting":1,"problem":"\#(evil)","advice":"\#(evil)"}]}
            """#
        let look = #"""
            {"id":2,"ok":true,"refused":1,"refused_reason":"\#(evil)","motion":{"state":"x","evidence":1,"parks_in_s":5,\#
            "parks_because":"\#(evil)","stands_s":1},"engine_because":"\#(evil)","published":[{"trackable":"\#(evil)",\#
            "priority":"x","interval_ms":1,"displacement":1,"because":"\#(evil)"}],"decisions":[{"number":1,"time":"\#(evil)","age_s":1,\#
            "kind":"\#(evil)","what":"\#(evil)","reason":"\#(evil)","since":"\#(evil)"}]}
            """#
        let socket = try ControlImitation(rig.path("control.sock"), replies: [status, look])
        for environment in ["LC_ALL=C.UTF-8", "LC_ALL=C"] {
            let pane = try pane(120, 32, environment: environment)
            let screen = try pane.waitFor("DECISIONS")
            #expect(screen.first?.hasPrefix(#"waypost a\x1b[2J\x1b]0;owned\x07"#) == true, "\(screen)")
            #expect(screen.last?.hasPrefix("q quit") == true)
            #expect(try pane.asks("#{pane_title}") != "owned")
            try pane.press("e")
            _ = try pane.waitFor("e overview")
        }
        _ = socket
    }
}

/// A terminal of its own, in which a command runs.
private final class Pane {
    private let rig: Rig
    private let socket: String
    private let script: String
    /// Not as a daemon: one would hold what the test waits for, and outlive it.
    private let server: RunningProgram

    init(_ rig: Rig, _ columns: Int, _ rows: Int, _ command: String) throws {
        self.rig = rig
        let socket = rig.path("tmux-\(UUID().uuidString.prefix(8))")
        let script = rig.path("pane-\(UUID().uuidString).sh")
        (self.socket, self.script) = (socket, script)
        server = try RunningProgram(
            shell: "unset TMUX; LC_ALL=C.UTF-8 exec tmux -u -D -f /dev/null -S '\(socket)'", in: rig.directory)
        let isUp = eventually(within: 20) { () -> Bool? in
            (try? tmux("start-server")) != nil ? true : server.isRunning ? nil : false
        }
        guard isUp == true else { throw RunningProgram.Unfinished(text: "tmux: \(server.text)") }
        // What ran is over with the last line; the pane stays, so that it can be looked at.
        try "\(command)\nexec cat".write(toFile: script, atomically: true, encoding: .utf8)
        try tmux("new-session -d -x \(columns) -y \(rows) \"exec /bin/sh '\(script)'\" \\; set -g status off")
        try tmux("set -g window-size manual")
        try resize(columns, rows)
    }

    deinit {
        _ = try? tmux("kill-server")
        server.kill(SIGTERM)
    }

    @discardableResult
    private func tmux(_ arguments: String) throws -> String {
        let call = try RunningProgram(
            shell: "unset TMUX; LC_ALL=C.UTF-8 exec tmux -u -N -S '\(socket)' \(arguments)", in: rig.directory
        )
        guard try call.exitStatus(within: 20) == 0 else { throw RunningProgram.Unfinished(text: "tmux: \(call.text)") }
        return call.text
    }

    /// The lines of the screen, without spaces at their ends.
    func captured(_ option: String = "") throws -> [String] {
        var lines = try tmux("capture-pane -p \(option)").split(separator: "\n", omittingEmptySubsequences: false).map(
            String.init)
        // Each line is ended by a line feed.
        if lines.last == "" { lines.removeLast() }
        return lines.map { line in
            var line = line
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    @discardableResult
    func wait(within seconds: Double = 20, _ wanted: ([String]) -> Bool) throws -> [String] {
        var screen: [String] = []
        let found = try eventually(within: seconds) { () -> [String]? in
            screen = try captured()
            return wanted(screen) ? screen : nil
        }
        guard let found else {
            throw RunningProgram.Unfinished(text: "on the screen:\n\(screen.joined(separator: "\n"))")
        }
        return found
    }

    /// Runs the same once more, on an empty screen.
    func again() throws { try tmux("respawn-pane -k \"exec /bin/sh '\(script)'\"") }

    func waitFor(_ words: String) throws -> [String] { try wait { screen in screen.contains { $0.contains(words) } } }
    func press(_ key: String) throws { try tmux("send-keys \(key)") }

    /// A line of text, as if typed.
    func type(_ text: String) throws {
        let quoted = text.replacingOccurrences(of: "'", with: #"'\''"#)
        try tmux("send-keys -l '\(quoted)'")
        try press("Enter")
    }

    func resize(_ columns: Int, _ rows: Int) throws { try tmux("resize-window -x \(columns) -y \(rows)") }

    /// A format of tmux, filled in.
    func asks(_ format: String) throws -> String {
        try tmux("display-message -p '\(format)'").trimmingCharacters(in: .newlines)
    }

    /// Sends a signal to the program in the pane.
    func signal(_ name: String) throws {
        let shell = try asks("#{pane_pid}")
        let call = try RunningProgram(shell: "pkill -\(name) -P \(shell) waypost", in: rig.directory)
        #expect(try call.exitStatus(within: 10) == 0)
    }
}

/// A control socket that gives the same replies to whatever is asked.
private final class ControlImitation: Sendable {
    private let listener: Int32

    init(_ path: String, replies: [String]) throws {
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let isBound = withUnixAddress(Array(path.utf8) + [0]) { bind(listener, $0, $1) == 0 }
        guard isBound, listen(listener, 8) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        Thread.detachNewThread { [listener] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                Thread.detachNewThread {
                    var line = [UInt8](repeating: 0, count: 4096)
                    var asked = 0
                    while case let count = read(client, &line, line.count), count > 0 {
                        for _ in line[..<count].filter({ $0 == 0x0A }) {
                            let reply = Array("\(replies[asked % replies.count])\n".utf8)
                            asked += 1
                            _ = send(client, reply, reply.count, Int32(MSG_NOSIGNAL))
                        }
                    }
                    close(client)
                }
            }
            close(listener)
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}
