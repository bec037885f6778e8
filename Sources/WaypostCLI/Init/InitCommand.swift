import ArgumentParser
import Configuration
import Daemon
import Doctor
import Glibc
import Network
import Sensors
import WaypostControl
import WaypostCore
import WaypostHost

struct InitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Find the receiver, ask for the server, and write the configuration.",
        discussion: """
            Asks at a terminal for what no option says. Lines that another program uses are not opened; others are read, \
            never written to, for 2.5 s a speed and 30 s in all. A secret is asked for without showing it, or comes from a \
            file or standard input (-), never from the command line; it is kept beside the configuration, for user waypost \
            alone. The example that the package has installed is replaced; any other configuration only after a question or \
            with --yes, and is kept as .bak. --add keeps it, and adds a server. At the end 'check' and 'endpoint test' run. \
            Exit status: 0 done, 1 done, but the server does not answer as it should, 64 something is missing, 77 not permitted, 78 the configuration has mistakes.
            """)

    @Option(
        help:
            "The kind of server: traccar, dawarich, home-assistant, home-assistant-mqtt, owntracks, mqtt, own or none.")
    var server: String?

    @Option(help: "Its address.")
    var url: String?

    @Option(
        help: "The name of this device on the server; by default that of the host, with --root the machine id of each.")
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

    @Option(
        help: ArgumentHelp(
            "The certificate of a server of your own, or of its authority, in PEM; it is kept beside the configuration.",
            valueName: "file"))
    var ca: String?

    @Flag(help: "Add a server to the configuration that is there, and change nothing else in it.")
    var add = false

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

    func validate() throws {
        if add, root != nil { throw ValidationError("--add and --root exclude each other.") }
        if add, source != nil || device != nil {
            throw ValidationError("--add adds a server alone: --source and --device stay as they are.")
        }
    }

    func run() throws {
        if add { return try addServer() }
        let host = HostFolder(root: root ?? "/")
        let installation = Installation(root: root, configuration: daemon.config, host: host)
        let questions = Questions(isSilent: yes || !Questions.hasTerminal)
        try checkRights(installation)
        if installation.former == .other, !dryRun, !yes {
            guard questions.confirms("\(daemon.config) is not the example. Replace it, and keep it as .bak?") else {
                throw fail(
                    "\(daemon.config) is not the example: --add adds a server to it, --yes replaces it, and keeps it as .bak",
                    exitCode: 64)
            }
        }
        let device = name(host, questions)
        let (receiver, rules) = try receiver(host, questions)
        var plan = InitPlan(device: device, source: receiver, server: nil)
        let (secret, authority) = try chooseServer(questions, &plan)
        if dryRun { return try show(plan, rules) }
        do {
            try write(secret, authority, of: plan, installation)
            for rule in rules { try installation.add(rule: rule) }
            try installation.write(configuration: plan.text)
        } catch let error as SystemError { throw fail(error) }
        printLine("\(installation.place(daemon.config)): written")
        if !rules.isEmpty {
            printLine("\(installation.place(Installation.rules)): gives the daemon access to the receiver")
        }
        try finish(plan, hasRules: !rules.isEmpty)
    }

    /// - Returns: nil = each machine has an id of its own.
    private func name(_ host: HostFolder, _ questions: Questions) -> String? {
        if let device { return device }
        guard root == nil else {
            questions.say(
                "note: each machine derives its device id from its machine id, when it starts; --device '${hostname}' is its host name"
            )
            if let id = host.word("/etc/machine-id"), id != "uninitialized" {
                questions.say(
                    "note: this image has a machine id already: empty /etc/machine-id, or all have the same id")
            }
            return nil
        }
        let usual = host.word("/etc/hostname") ?? HostIdentity.hostName() ?? "waypost"
        return questions.ask("Name of this device, as the server knows it", usual: usual) ?? usual
    }

    private func write(
        _ secret: String?, _ authority: [UInt8]?, of plan: InitPlan, _ installation: Installation
    ) throws {
        if let secret, let file = plan.server?.secretFile { try installation.write(secret: secret, to: file) }
        if let authority, let file = plan.server?.authority {
            try installation.write(certificate: authority, to: file)
        }
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
        try finish(testing: plan)
    }

    private func finish(testing plan: InitPlan) throws {
        var tested: Int32 = 0
        if let server = plan.server, !noProbe {
            let name = server.name.map { [$0] } ?? []
            tested = Self.runSelf(["endpoint", "test", "--alone", "--config", daemon.config] + name)
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

// One more server.
extension InitCommand {
    private func addServer() throws {
        let host = HostFolder(root: "/")
        let installation = Installation(root: nil, configuration: daemon.config, host: host)
        let questions = Questions(isSilent: yes || !Questions.hasTerminal)
        guard let text = host.text(daemon.config, bytesMax: 1 << 20) else {
            if access(daemon.config, F_OK) == 0, access(daemon.config, R_OK) != 0 {
                throw fail("not permitted: use sudo", exitCode: 77)
            }
            throw fail("\(daemon.config) cannot be read: waypost init without --add writes one", exitCode: 66)
        }
        try checkRights(installation)
        let loaded = try ConfigurationFile.load(daemon.config)
        let config = loaded.config
        let names = config.endpoints.map(\.settings.name)
        guard !names.isEmpty else {
            throw fail("\(daemon.config) has no server yet: waypost init without --add sets up the first", exitCode: 64)
        }
        var plan = InitPlan(device: config.device, source: .serial("/dev/waypost/gps"), server: nil)
        let (secret, authority) = try chooseServer(questions, &plan, besides: names)
        guard let endpoint = plan.endpoint else { throw fail("no server was chosen", exitCode: 64) }
        let isUnnamed = names == ["main"] && !loaded.effective.isWritten("name", in: "[[endpoint]]")
        guard let whole = InitPlan.adding(endpoint, to: text, unnamed: isUnnamed) else {
            throw fail(
                "the endpoint in \(daemon.config) or its drop-ins needs a name first: name = \"main\"; then append:\n"
                    + endpoint.joined(separator: "\n"), exitCode: 64)
        }
        if dryRun {
            printText(whole, terminator: "")
            return try finishOutput()
        }
        do {
            try write(secret, authority, of: plan, installation)
            try installation.write(configuration: whole)
        } catch let error as SystemError { throw fail(error) }
        printLine("\(daemon.config): one server more; what it was is \(daemon.config).bak")
        try finishOutput()
        let checked = Self.runSelf(["check", daemon.config])
        guard checked == 0 else {
            do { try installation.restore() } catch let error as SystemError { throw fail(error) }
            printError(
                "waypost: \(daemon.config) is as it was; to add the server by hand, append this, once it is right:")
            for line in endpoint { printError(line) }
            throw ExitCode(checked)
        }
        try finish(testing: plan)
    }
}

// The server.
extension InitCommand {
    /// - Parameter names: of the endpoints that are there.
    /// - Returns: the secret, and the certificate of the authority.
    private func chooseServer(
        _ questions: Questions, _ plan: inout InitPlan, besides names: [String] = []
    ) throws -> (secret: String?, authority: [UInt8]?) {
        guard let kind = try kind(questions) else { return (nil, nil) }
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
        let name = unused(kind, names)
        if !names.isEmpty { chosen.name = name }
        // What is replaced on each machine ends in no letters.
        let device = plan.device.flatMap { $0.contains("${") ? nil : $0 }
        for (name, question) in kind.vars {
            let usual = name == "tid" ? device.map { String($0.suffix(2)).uppercased() } : plan.device
            let given = name == "tid" ? tid : user
            chosen.vars[name] = try given ?? answer("The \(question)", usual, option: "--\(name)", questions)
        }
        let prefix = prefix(name)
        let isPlain = !["https:", "mqtts:", "wss:"].contains { chosen.url.hasPrefix($0) }
        let authority = isPlain ? nil : try authority(questions)
        if isPlain, ca != nil { throw fail("--ca: \(chosen.url) does not use TLS", exitCode: 64) }
        if authority != nil { chosen.authority = "\(prefix).ca.pem" }
        let secret = try secret(of: kind, questions)
        if secret != nil, let name = kind.secret?.name {
            chosen.secretFile = "\(prefix).\(name)"
            if kind.hasUser {
                chosen.user = try user ?? answer("The user at the broker", plan.device, option: "--user", questions)
            }
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
        return (secret, authority)
    }

    /// A name that no endpoint has, and no secret or certificate of one: `traccar`, `traccar-2` …
    private func unused(_ kind: ServerKind, _ names: [String]) -> String {
        guard !names.isEmpty else { return kind.name }
        let ends = [kind.secret?.name, "ca.pem"].compactMap(\.self)
        let candidates = [kind.name] + (2...99).map { "\(kind.name)-\($0)" }
        return candidates.first { candidate in
            !names.contains(candidate) && ends.allSatisfy { access("\(prefix(candidate)).\($0)", F_OK) != 0 }
        } ?? kind.name
    }

    /// Of the files beside the configuration that belong to an endpoint.
    private func prefix(_ name: String) -> String {
        let folder = daemon.config.parentDirectory
        return "\(folder == "/" ? "" : folder)/\(name)"
    }

    private func answer(_ question: String, _ usual: String?, option: String, _ questions: Questions) throws -> String {
        if let answer = questions.ask(question, usual: usual) { return answer }
        throw fail("\(option) is missing: there is no name that it could be derived from", exitCode: 64)
    }

    /// - Returns: the certificate of the authority; nil = this host knows it.
    private func authority(_ questions: Questions) throws -> [UInt8]? {
        let path = ca ?? questions.ask("The file with its certificate, if it is a server of your own (or nothing)")
        guard let path, !path.isEmpty else { return nil }
        guard let bytes = Secret.bytes(ofFile: path) else { throw fail("--ca: \(path) cannot be read", exitCode: 66) }
        guard ClientCertificate.holdsCertificate(bytes) else {
            throw fail("--ca: \(path) has no certificate in PEM", exitCode: 64)
        }
        return bytes
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
