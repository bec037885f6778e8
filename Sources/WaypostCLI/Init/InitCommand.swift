import Agent
import ArgumentParser
import ControlProtocol
import Doctor
import EventLoop
import Glibc
import Positioning
import Sensors

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Find the receiver, ask for the server, and write the configuration.",
        discussion: """
            Asks at a terminal for what no option says. Lines that another program uses are not opened; others are read, \
            never written to, for 2.5 s a speed and 30 s in all. A secret is asked for without showing it, or comes from a \
            file or standard input (-), never from the command line; it is kept beside the configuration, for user waypost \
            alone. The example that the package has installed is replaced; any other configuration only after a question or \
            with --yes, and is kept as .bak. At the end 'check' and 'endpoint test' run. \
            Exit status: 0 done, 1 done, but the server does not answer as it should, 64 something is missing, 77 not permitted, 78 the configuration has mistakes.
            """)

    @Option(
        help:
            "The kind of server: traccar, dawarich, home-assistant, home-assistant-mqtt, owntracks, mqtt, own or none.")
    var server: String?

    @Option(help: "Its address.")
    var url: String?

    @Option(help: "The name of this device on the server; by default that of the host.")
    var device: String?

    @Option(
        help: ArgumentHelp(
            "The receiver: the path of a serial line, gpsd, gpsd:HOST:PORT, tcp:HOST:PORT or udp:PORT; by default what is found.",
            valueName: "receiver"))
    var source: String?

    @Option(help: "The user, where the server wants one.")
    var user: String?

    @Option(help: "The two letters of OwnTracks for the map.")
    var tid: String?

    @Option(
        name: .customLong("secret-file"),
        help: ArgumentHelp(
            "A secret: its name, such as token or password, and the file that has it.", valueName: "name=path"))
    var secretFiles: [String] = []

    @Flag(
        name: .customLong("allow-plaintext"),
        help: "Send the secret over http:// or mqtt://, where anyone on the way can read it.")
    var allowPlaintext = false

    @Flag(name: .customLong("no-probe"), help: "Open no line and ask no gpsd and no server.")
    var noProbe = false

    @Flag(help: "Ask nothing, and replace a configuration that is there.")
    var yes = false

    @Flag(name: .customLong("dry-run"), help: "Print the configuration, and change nothing.")
    var dryRun = false

    @Option(help: ArgumentHelp("Provision an image: all files are below this folder.", valueName: "folder"))
    var root: String?

    @OptionGroup var daemon: DaemonOptions

    /// For all lines and speeds.
    private static let searchLimit = Duration.seconds(30)

    func run() throws {
        let host = HostFolder(root: root ?? "/")
        let installation = Installation(root: root, configuration: daemon.config, host: host)
        let questions = Questions(isSilent: yes || !Questions.hasTerminal)
        try checkRights(installation)
        if installation.former == .other, !dryRun, !yes {
            guard questions.confirms("\(daemon.config) is not the example. Replace it, and keep it as .bak?") else {
                throw fail("\(daemon.config) is not the example: --yes replaces it, and keeps it as .bak", exitCode: 64)
            }
        }
        let name = host.word("/etc/hostname") ?? (root == nil ? HostIdentity.hostName() : nil) ?? "waypost"
        let device = device ?? questions.ask("Name of this device, as the server knows it", usual: name) ?? name
        let (receiver, rules) = try receiver(host, questions)
        var plan = InitPlan(device: device, source: receiver, server: nil)
        let secret = try chooseServer(questions, &plan)
        if dryRun { return try show(plan, rules) }
        do {
            if let secret, let file = plan.server?.secretFile { try installation.write(secret: secret, to: file) }
            for rule in rules { try installation.add(rule: rule) }
            try installation.write(configuration: plan.text)
        } catch let error as SystemError { throw fail(error) }
        printLine("\(installation.place(daemon.config)): written")
        if !rules.isEmpty {
            printLine("\(installation.place(Installation.rules)): gives the daemon access to the receiver")
        }
        try finish(plan, hasRules: !rules.isEmpty)
    }

    private func checkRights(_ installation: Installation) throws {
        guard !dryRun else { return }
        // Owners are a part of it.
        if root != nil, geteuid() != 0 { throw fail("not permitted: use sudo", exitCode: 77) }
        let folder = installation.place(daemon.config).parentDirectory
        if access(folder, F_OK) == 0, access(folder, W_OK) != 0 { throw fail("not permitted: use sudo", exitCode: 77) }
        if geteuid() == 0, installation.owner == nil, root != nil || daemon.config == ConfigurationFile.standardPath {
            throw fail(
                "there is no user \(ServiceUser.name)\(root.map { " in \($0)" } ?? ""): install the package first",
                exitCode: 69)
        }
    }

    private func show(_ plan: InitPlan, _ rules: [String]) throws {
        printText(plan.text, terminator: "")
        for rule in rules { printError("would add to \(Installation.rules): \(rule)") }
        if let file = plan.server?.secretFile {
            printError("would keep the secret in \(file), for user \(ServiceUser.name) alone")
        }
        try finishOutput()
    }

    private func finish(_ plan: InitPlan, hasRules: Bool) throws {
        guard root == nil else { return try finishOutput() }
        if hasRules {
            _ = ProgramOutput.read(["udevadm", "control", "--reload"], seconds: 10)
            _ = ProgramOutput.read(
                ["udevadm", "trigger", "--settle", "--subsystem-match=tty", "--action=change"], seconds: 20)
        }
        try finishOutput()
        let checked = Self.runSelf(["check", daemon.config])
        guard checked == 0 else { throw ExitCode(checked) }
        var tested: Int32 = 0
        if plan.server != nil, !noProbe {
            tested = Self.runSelf(["endpoint", "test", "--alone", "--config", daemon.config])
        }
        if daemon.config == ConfigurationFile.standardPath {
            printLine("To start it: sudo systemctl restart waypost; then: waypost status")
        } else {
            printLine("To start it: waypost run --config \(daemon.config)")
        }
        try finishOutput()
        guard tested == 0 else {
            printError("waypost: the configuration is written, but the server does not take locations: see above")
            throw ExitCode(1)
        }
    }

    /// This program with other arguments, on the same terminal.
    private static func runSelf(_ arguments: [String]) -> Int32 {
        var words: [UnsafeMutablePointer<CChar>?] = (["waypost"] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var (process, status): (pid_t, Int32) = (0, 0)
        guard posix_spawn(&process, "/proc/self/exe", nil, nil, &words, environ) == 0 else { return 71 }
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 70
    }
}

// The receiver.
extension InitCommand {
    /// - Returns: also the rules of udev that give the daemon access to it.
    private func receiver(_ host: HostFolder, _ questions: Questions) throws -> (InitPlan.Source, rules: [String]) {
        let search = ReceiverSearch(host: host)
        for remark in search.remarks { questions.say("note: \(remark)") }
        let lines = search.lines
        if let source {
            guard let given = InitPlan.Source(source) else {
                throw fail(
                    "--source \(source): expected a path, gpsd, gpsd:HOST:PORT, tcp:HOST:PORT or udp:PORT", exitCode: 64
                )
            }
            guard case .serial(let path) = given else { return (given, []) }
            let line = lines.first { $0.path == path || $0.node == host.resolved(path) }
            if !noProbe, root == nil { _ = probe([line ?? search.line(named: path)], questions) }
            return (given, rules(for: path, line, host))
        }
        guard !noProbe, root == nil else { return (.serial("/dev/waypost/gps"), []) }
        let gpsd = gpsd(host)
        if lines.isEmpty, gpsd == nil { questions.say("no receiver found: plug one in, or name it with --source") }
        let found = probe(lines, questions)
        if search.isTakenByGPSD, gpsd != nil {
            questions.say("note: gpsd takes each receiver that is plugged in (USBAUTO in /etc/default/gpsd)")
        }
        var choices: [(source: InitPlan.Source, words: String, line: FoundLine?)] = []
        for (line, words, isReceiver) in found where isReceiver {
            choices.append((.serial(line.path), "\(line.path): \(words)", line))
        }
        if let gpsd { choices.append((.gpsd(host: nil, port: nil), gpsd, nil)) }
        for (line, words, isReceiver) in found where !isReceiver {
            choices.append((.serial(line.path), "\(line.path): \(words)", line))
        }
        choices.append(
            (.serial("/dev/waypost/gps"), "/dev/waypost/gps, the name of a receiver that is plugged in later", nil))
        let likely = choices.firstIndex { choice in
            found.contains { $0.line == choice.line && $0.isReceiver } || choice.words == gpsd
        }
        let free = choices.firstIndex { choice in choice.line.map { $0.isUSB && $0.user == nil } ?? false }
        let usual = likely ?? free ?? choices.count - 1
        let chosen = choices[questions.choose("Which receiver?", choices.map(\.words), usual: usual) ?? usual]
        questions.say("receiver: \(chosen.words)")
        guard let line = chosen.line else { return (chosen.source, []) }
        return (chosen.source, rules(for: line.path, line, host))
    }

    private func rules(for path: String, _ line: FoundLine?, _ host: HostFolder) -> [String] {
        if path.hasPrefix("/dev/waypost/") { return [] }
        if let line { return [line.rule].compactMap(\.self) }
        // Of an image nobody knows to which of the two it will lead.
        let names = path == "/dev/serial0" ? ["ttyAMA0", "ttyS0"] : [String(path.split(separator: "/").last ?? "")]
        guard root != nil, path == "/dev/serial0" || names[0].hasPrefix("ttyAMA") || names[0].hasPrefix("ttyS") else {
            return []
        }
        return names.compactMap(ReceiverSearch.rule(forUART:))
    }

    /// What gpsd has, for people; nil = there is none, or it has no receiver.
    private func gpsd(_ host: HostFolder) -> String? {
        guard host.isRunning("gpsd") || host.exists("/run/gpsd.sock") else { return nil }
        let finding = GPSDSettings().inquire()
        return finding.devices.isEmpty ? nil : finding.words
    }

    private func probe(
        _ lines: [FoundLine], _ questions: Questions
    ) -> [(line: FoundLine, words: String, isReceiver: Bool)] {
        var left = Self.searchLimit
        return lines.map { line in
            if let user = line.user {
                questions.say("\(line.path): not opened, used by \(user)\(finding(of: user))")
                return (line, "used by \(user)", user.hasPrefix("the waypost"))
            }
            guard left > .zero else { return (line, "not looked at, the 30 s are over", false) }
            let began = HostClock.bootTime
            defer { left -= HostClock.bootTime.duration(since: began) }
            do throws(SourceProblem) {
                let finding = try SerialProbe.search(line.path, within: left) {
                    questions.say("\(line.path): listening at \($0) …")
                }
                let words = finding.words
                questions.say("\(line.path): \(words)")
                if case .nmea = finding.sample { return (line, words, true) }
                return (line, words, false)
            } catch {
                questions.say("\(line.path): \(error)")
                return (line, "\(error)", false)
            }
        }
    }

    /// What the running daemon says of its own receiver.
    private func finding(of user: String) -> String {
        guard user.hasPrefix("the waypost"), let status = try? daemon.sendIfRunning(StatusRequest()) else { return "" }
        return ", which is \(status.source.state)"
    }
}

extension SerialProbe.Finding {
    fileprivate var words: String {
        let at = speed.map { " at \($0)" } ?? ""
        return switch sample {
        case .nmea(let sentences): "a receiver\(at) (\(sentences) sentences)"
        case .ubx: "a u-blox receiver\(at) that sends no NMEA: switch NMEA on, or read it with gpsd"
        case .noise: "sends something, but no NMEA at any speed"
        case .nothing: "sends nothing"
        }
    }
}

// The server.
extension InitCommand {
    /// - Returns: the secret.
    private func chooseServer(_ questions: Questions, _ plan: inout InitPlan) throws -> String? {
        guard let kind = try kind(questions) else { return nil }
        var address = url.flatMap(kind.address)
        if url != nil, address == nil {
            throw fail("--url \(url ?? ""): expected an address such as \(kind.example)", exitCode: 64)
        }
        while address == nil {
            guard let answer = questions.ask("Its address, such as \(kind.example)") else {
                throw fail("the address of the server is missing: --url", exitCode: 64)
            }
            address = kind.address(answer)
            if address == nil { questions.say("That is no address.") }
        }
        var chosen = InitPlan.Server(kind: kind.name, url: address ?? "")
        for (name, question) in kind.vars {
            let usual = name == "tid" ? String(plan.device.suffix(2)).uppercased() : plan.device
            let given = name == "tid" ? tid : user
            chosen.vars[name] = given ?? questions.ask("The \(question)", usual: usual) ?? usual
        }
        let secret = try secret(of: kind, questions)
        if secret != nil, let name = kind.secret?.name {
            let folder = daemon.config.parentDirectory
            chosen.secretFile = "\(folder == "/" ? "" : folder)/\(kind.name).\(name)"
            if kind.hasUser {
                chosen.user = user ?? questions.ask("The user at the broker", usual: plan.device) ?? plan.device
            }
            let isPlain = !["https:", "mqtts:", "wss:"].contains { chosen.url.hasPrefix($0) }
            if isPlain, !allowPlaintext,
                !questions.confirms("Anyone on the way to \(chosen.url) can read the secret. Send it all the same?")
            {
                throw fail(
                    "\(chosen.url) would send the secret in the clear: use https:// or mqtts://, or --allow-plaintext in a network of "
                        + "your own", exitCode: 64)
            }
            chosen.allowsPlaintext = isPlain
        }
        plan.server = chosen
        return secret
    }

    private func kind(_ questions: Questions) throws -> ServerKind? {
        let names = ServerKind.all.map(\.name)
        if let server {
            guard server != "none" else { return nil }
            guard let kind = ServerKind.named(server) else {
                let hint = nearest(server, in: names).map { " (did you mean \($0)?)" } ?? ""
                throw fail("--server \(server): expected \(names.joined(separator: ", ")) or none\(hint)", exitCode: 64)
            }
            return kind
        }
        let choices = ServerKind.all.map(\.title) + ["none yet: drives are stored on this device"]
        guard let index = questions.choose("Which server gets the locations?", choices) else {
            throw fail("the kind of server is missing: --server \(names.joined(separator: "|"))|none", exitCode: 64)
        }
        return index < ServerKind.all.count ? ServerKind.all[index] : nil
    }

    private func secret(of kind: ServerKind, _ questions: Questions) throws -> String? {
        guard let wanted = kind.secret else { return nil }
        for given in secretFiles {
            let parts = given.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0] == wanted.name else {
                throw fail(
                    "--secret-file \(parts[0]): \(kind.name) has the secret \(wanted.name): --secret-file \(wanted.name)=PATH",
                    exitCode: 64)
            }
            let path = String(parts[1])
            guard let line = path == "-" ? readLine() : Self.firstLine(of: path), !line.isEmpty else {
                throw fail("--secret-file \(wanted.name): \(path) cannot be read, or is empty", exitCode: 66)
            }
            return line
        }
        if dryRun, questions.isSilent { return kind.isSecretOptional ? nil : "" }
        let words = "The \(wanted.question)\(kind.isSecretOptional ? ", or nothing" : "")"
        if let answer = questions.secret(words) { return answer }
        if kind.isSecretOptional { return nil }
        throw fail(
            "the secret \(wanted.name) is missing: --secret-file \(wanted.name)=PATH, or - for standard input",
            exitCode: 64)
    }

    private static func firstLine(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count].prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self) : nil
    }
}
