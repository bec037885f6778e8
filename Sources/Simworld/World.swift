import CSimDisk
import Configuration
import Daemon
import Logging
import Profiles
import Queue
import Remote
import WaypostCore
import WaypostHost

/// What one seed came to.
package struct WorldReport: Sendable {
    package var seed: UInt64
    package var violations: [Violation] = []
    /// Seconds of the asset's life.
    package var simulated = 0.0
    package var faults: [String: Int] = [:]
    package var answers: [String: Int] = [:]
    package var recorded = 0
    package var accepted = 0
    package var duplicates = 0
    package var processes = 0
    package var events = 0
    package var diskFaults = 0
    /// Documents of settings that came into force, and commands that were carried out.
    package var remoteChanges = 0
    package var remoteCommands = 0
    package var isLong = false

    init(seed: UInt64) { self.seed = seed }
}

/// One run: a configuration, an asset, servers, a disk and what happens to them, and the daemon in the middle.
package final class World {
    /// How the process is to end.
    enum End { case clean, kill, powerCut }

    let seed: UInt64
    /// Worlds in which more can coincide. What they draw shifts no run of the others.
    private let isRich: Bool
    /// Of the service of a live channel; nil = there is none.
    private let serviceDice: Dice?
    /// A server of settings and commands; nil = there is none.
    let remote: RemoteServer?
    let remoteOracle: RemoteOracle
    private var stateDisk: StateDisk!
    let disk: WorldDisk
    private let prints: Bool
    let host: SimulatedHost
    let books: Books
    let oracle: Oracle
    private let requests: RequestOracle
    let network: SimulatedNetwork
    let asset: Asset
    private let schedule: Schedule
    private let writerDice, diskDice, worldDice: Dice
    /// How long the configuration takes to be read.
    private let readDice: Dice
    let current: CurrentConfiguration
    /// As it is in force, or will be at the next start.
    private(set) var configuration: WorldConfiguration
    /// What the file says but for a mistake; nil = it has none.
    var mistyped: WorldConfiguration?
    /// With which a daemon starts while the file has a mistake.
    private var lastGood: WorldConfiguration
    private(set) var agent: Agent?
    private(set) weak var writer: SimulatedWriter?
    private var end: End?
    private var isFinished = false
    private(set) var isEnding = false
    /// The process was asked to end.
    private var isStopping = false
    /// When an operator ends every pause after the faults stopped.
    private var reliefDue = EventTime.zero
    private var boot = 0
    var powerAtCut = false
    /// Between this process and the next one.
    var wrongNumbers: Dice?
    private lazy var faults = WorldFaults(of: self)
    var report: WorldReport
    private var logLines = 0
    /// What the runtime directory keeps from one process of a boot to the next.
    private var contacts: [UInt8]?
    private var launched = ""
    /// Bytes of a reply, and of the log of the queue where `max_bytes` is small.
    private static let replyMax = 262_144
    private static let logMax: Int64 = 6 << 20
    /// After the faults stop, everything has to be delivered within this time.
    private static let recoveryLimit = Duration.seconds(3 * 3600)
    /// The disk may go on refusing for this time: meanwhile uploads go on.
    private static let refusal = Duration.seconds(1800)
    /// After servers have refused everything for some seconds, and two or three waits that grow by the longest window.
    private static let lastFaultLimit = Duration.seconds(700)
    /// The same where a wait may be a quarter of an hour: an endpoint was paused before, over the one row that it had, or the third
    /// wait after failures is twice a window of 400 s.
    private static let longLastFaultLimit = Duration.seconds(1700)
    /// Rows may come for this time after the faults stop.
    private static let rest = Duration.seconds(1500)

    /// - Parameters:
    ///   - leftOut: faults that do not happen, by their place in the schedule.
    ///   - prints: each event, as it happens.
    package init(seed: UInt64, leftOut: Set<Int> = [], prints: Bool = false) {
        self.seed = seed
        isRich = seed % 4 == 3
        self.prints = prints
        let dice = Dice(seed: seed)
        let planDice = Dice(seed: dice.next())
        let configurationDice = Dice(seed: dice.next())
        (writerDice, diskDice, worldDice) = (Dice(seed: dice.next()), Dice(seed: dice.next()), Dice(seed: dice.next()))
        readDice = Dice(seed: seed &* 13)
        let endpoints = 3
        var schedule = Schedule(
            dice: planDice, endpoints: endpoints, longShare: Self.isRemote(seed) ? 0.02 : 0.1)
        // By a residue and with dice of their own: the other seeds stay what they were.
        if seed % 16 == 13 { schedule.addMistakes(Dice(seed: ~seed)) }
        if seed % 16 == 4 { schedule.addFailingDisk(Dice(seed: ~seed)) }
        if seed % 16 == 7 { schedule.addStumbles(Dice(seed: ~seed), endpoints: endpoints) }
        if Self.hasRefusals(seed) { schedule.addRefusals(Dice(seed: ~seed), endpoints: endpoints) }
        if Self.hasLinks(seed) { schedule.addLinks(Dice(seed: seed &* 17), endpoints: endpoints) }
        if Self.hasLinks(seed), seed % 4 == 3 {
            schedule.addForgetfulRouters(Dice(seed: seed &* 19), endpoints: endpoints)
        }
        if Self.hasMoves(seed) { schedule.addMoves(Dice(seed: ~seed), endpoints: endpoints) }
        if Self.hasFileFaults(seed) { schedule.addFileFaults(Dice(seed: seed &* 13)) }
        let remoteDice = Self.isRemote(seed) ? Dice(seed: seed &* 7) : nil
        if let remoteDice { schedule.addRemote(remoteDice) }
        for index in schedule.faults.indices.reversed() where leftOut.contains(index) {
            schedule.faults.remove(at: index)
        }
        self.schedule = schedule
        serviceDice = Self.hasChannel(seed) ? Dice(seed: seed &* 5) : nil
        configuration = WorldConfiguration(
            dice: configurationDice, brokerDice: Self.mayHaveBroker(seed) ? Dice(seed: seed &* 3) : nil,
            hasChannel: serviceDice != nil, isLong: schedule.isLong, isRich: isRich)
        lastGood = configuration
        current = CurrentConfiguration(configuration.text)
        let epochMs = Self.epochMs
        let starts1970 = worldDice.chance(0.15)
        host = SimulatedHost(
            dice: Dice(seed: dice.next()), at: EventTime(nanoseconds: 100_000_000_000),
            wallOffsetMs: starts1970 ? 0 : epochMs)
        host.isSynchronised = !starts1970
        books = Books(host: host)
        oracle = Oracle(books, settings: configuration.facts)
        disk = WorldDisk(host: host, oracle: oracle)
        requests = RequestOracle(books)
        remoteOracle = RemoteOracle(books)
        remote = remoteDice.map { [configuration, remoteOracle, host] dice in
            RemoteServer(
                endpoint: configuration.endpoints[0].name, isBroker: configuration.endpoints[0].isBroker,
                isSigned: dice.chance(0.3), dice: Dice(seed: dice.next()), oracle: remoteOracle, host: host)
        }
        if let remote {
            configuration.remote = remote.table(commitWindow: Int(configuration.facts.commitWindow.inSeconds))
            lastGood = configuration
            current.set(configuration.text)
        }
        let (host, prints) = (host, prints)
        let trace: (() -> String) -> Void = { words in if prints { print(World.stamp(host), words()) } }
        network = SimulatedNetwork(
            host: host, oracle: requests, dice: Dice(seed: dice.next()), contactDice: Dice(seed: seed &* 19),
            trace: trace)
        asset = Asset(dice: Dice(seed: dice.next()), at: host.time, epochMs: epochMs, isLong: schedule.isLong)
        report = WorldReport(seed: seed)
        simdisk_reset(dice.next())
        stateDisk = StateDisk(host: host, dice: Dice(seed: seed &* 11)) { [unowned self] in stateIsRefused() }
        network.bindsRequests = Self.hasLinks(seed)
        network.remote = remote
        network.versionInForce = { [unowned self] in agent?.remoteVersion }
        network.settled = { [unowned self] in agent?.settled(of: $0) ?? 0 }
        network.contact = { [remoteOracle] in remoteOracle.contact(with: $0) }
        simdisk_set(Int32(simdisk_powersafe_overwrite), worldDice.chance(0.7) ? 1 : 0)
    }

    /// One of the servers goes on failing over some rows after the faults have stopped.
    private var lastStumble: Stumble? {
        if Self.hasRefusals(seed) { return .status(Schedule.refusals[Int(seed / 7 % 6)]) }
        return seed % 32 == 7 ? .any : nil
    }
    private var isStumbling: Bool { lastStumble != nil }
    private var hadLastFault = false
    /// See `Mood.stumble`.
    private static let stumble: Int64 = 97
    /// As `InFlightBatches.aloneMax`.
    private static let triedAlone = 8
    private static let pausePerRow = Duration.seconds(900)
    private static func mayHaveBroker(_ seed: UInt64) -> Bool {
        seed % 16 == 9 || seed % 16 == 11 || (isRemote(seed) || hasRefusals(seed)) && seed % 3 == 0
    }
    private static func hasChannel(_ seed: UInt64) -> Bool { [3, 11, 12].contains(seed % 16) }

    /// The world of this seed has a live channel, or endpoints that may be brokers.
    package static func isLive(_ seed: UInt64) -> Bool { mayHaveBroker(seed) || hasChannel(seed) }

    /// Unix milliseconds of the world's zero, whatever a clock in it believes.
    static let epochMs: Int64 = 1_790_000_000_000

    /// The world of this seed has documents and commands from afar.
    package static func isRemote(_ seed: UInt64) -> Bool { seed >= 1_000_000_000 }

    /// In the world of this seed other programs remove, replace and overwrite the files of the queue.
    package static func hasFileFaults(_ seed: UInt64) -> Bool { (500_000_000..<1_000_000_000).contains(seed) }

    /// In the world of this seed servers answer to single rows, or to everything for seconds, as if they refused for good.
    package static func hasRefusals(_ seed: UInt64) -> Bool { (250_000_000..<300_000_000).contains(seed) }

    /// In the world of this seed the links of a vehicle come and go, and some are slow.
    package static func hasLinks(_ seed: UInt64) -> Bool { (300_000_000..<400_000_000).contains(seed) }

    /// In the world of this seed the addresses of servers change.
    package static func hasMoves(_ seed: UInt64) -> Bool { (400_000_000..<500_000_000).contains(seed) }

    /// How many faults a seed brings.
    package var faultCount: Int { schedule.faults.count }
    package var faultWords: [String] { schedule.faults.map { "\($0.at) s for \($0.lasts) s: \($0.kind)" } }
    package var configurationText: String { configuration.text }

    private static func stamp(_ host: SimulatedHost) -> String {
        let ms = host.time.nanoseconds / 1_000_000 - 100_000
        return "\(ms / 1000).\(String(1000 + ms % 1000).dropFirst())"
    }

    func trace(_ words: @autoclosure () -> String) {
        if prints { print(Self.stamp(host), words()) }
    }

    package func run() -> WorldReport {
        report.isLong = schedule.isLong
        OwnLogic.books = books
        defer { OwnLogic.books = nil }
        books.failed = { [unowned self] in
            trace("VIOLATION \(books.violations.last?.description ?? "")")
            agent?.eventLoop.stop()
        }
        for fault in schedule.faults { faults.plan(fault) }
        host.after(.seconds(Int64(schedule.length)), ofProcess: false) { [unowned self] in stopFaults() }
        host.after(.seconds(17), ofProcess: false) { [unowned self] in look() }
        if remote != nil { lookAfar() }
        if worldDice.chance(0.04) { leaveAnEmptyFile() }
        while !isFinished, books.violations.isEmpty { live() }
        report.violations = Array(books.violations.prefix(3))
        report.simulated = host.time.nanoseconds < 0 ? 0 : Double(host.time.nanoseconds - 100_000_000_000) / 1e9
        (report.recorded, report.accepted, report.duplicates) = (books.recorded, requests.accepted, requests.duplicates)
        report.answers = network.statuses
        report.events = host.events
        (report.remoteChanges, report.remoteCommands) = (remoteOracle.changed, remoteOracle.commanded)
        report.diskFaults = Int(simdisk_counter(Int32(simdisk_faults)))
        agent = nil
        // What was to happen later refers to the world, which would live as long as that.
        host.end()
        return report
    }

    /// The power went while the first queue was made: an empty file is in its place.
    private func leaveAnEmptyFile() {
        guard SimulatedMedium(clock: { 0 }).create(WorldConfiguration.path) == 0 else { return }
        trace("an empty file is in the place of the queue")
    }

    /// One process, from its start to its end.
    private func live() {
        end = nil
        isStopping = false
        report.processes += 1
        do {
            try launch()
            guard let agent else { return }
            // It may end while the queue is opened.
            if simdisk_stopped() { return conclude(powerAtCut ? .powerCut : .kill) }
            agent.start()
            // It may end while it starts, too.
            if end == nil { try agent.eventLoop.run() }
        } catch let error as SystemError {
            books.fail(.bounded, error.description)
        } catch let error as StartupError {
            trace("no start: \(error)")
            // Only a disk that refuses may keep it from starting, and it does not.
            if end == nil { books.fail(.liveness, "it does not start: \(error)") }
        } catch {
            books.fail(.liveness, "no configuration: \(error)")
        }
        guard !isFinished, books.violations.isEmpty else { return finish() }
        conclude(end ?? .clean)
    }

    private func conclude(_ end: End) {
        trace("the process ends: \(end)")
        if case .clean = end {
            let lost = agent?.end() ?? 0
            if disk.isFileGone { books.blameDisk() }
            ended(isClean: lost == 0)
        } else {
            if disk.isFileGone { books.blameDisk() }
            ended(isClean: false)
        }
        disk.isFileGone = false
        if case .powerCut = end { simdisk_power_cut() } else { simdisk_kill() }
        network.close()
        agent = nil
        if let dice = wrongNumbers {
            Outbox.spoil(WorldConfiguration.path, SimulatedMedium { 0 }) { dice.below($0) }
            // A disk that refuses may have stored it.
            books.blameDisk(for: .numbers)
            for account in books.accounts.values {
                account.quarantinedInCopies += account.quarantined
                // Of these it is not known how many wait again.
                if account.hasRetries { account.isDropUnsure = true }
            }
        }
        wrongNumbers = nil
        host.processEnded()
        host.run(until: host.time + .milliseconds(Int64(worldDice.from(200...20_000))))
        if case .powerCut = end {
            boot += 1
            contacts = nil
            requests.forgetContacts()
            host.booted = host.time - .seconds(Int64(worldDice.from(5...60)))
        }
    }

    private func ended(isClean: Bool) {
        oracle.processEnded(
            isClean: isClean, window: configuration.facts.commitWindow,
            longestCommit: .milliseconds(Int64(disk.slowest * 1000)))
    }

    private func finish() {
        simdisk_kill()
        network.close()
        agent = nil
    }

    private func launch() throws {
        if mistyped != nil {
            configuration = lastGood
            report.faults["start on the last good configuration", default: 0] += 1
        }
        var loaded = try current.load(configuration.text)
        var options = Agent.Options()
        if remote != nil { options.remote = startRemote(over: &loaded) }
        let current = current
        options.reread = { () throws(ConfigurationProblems) in try current.load() }
        let (host, oracle) = (host, oracle)
        network.opened()
        if launched != configuration.text { requests.forgetContacts() }
        launched = configuration.text
        network.servers = network.servers.filter { name, _ in configuration.endpoints.contains { $0.name == name } }
        for endpoint in configuration.endpoints {
            network.servers[endpoint.name, default: .init(endpoint: endpoint)].endpoint = endpoint
        }
        oracle.started(configuration.endpoints, configuration.facts)
        let world = SimulatedWriter.World(
            host: host, dice: writerDice, duration: { [disk, writerDice] in disk.commitDuration(writerDice) },
            committed: { [unowned self] commit, result in
                if prints {
                    trace(
                        "commit of \(commit.rows.count) rows, \(commit.answers.count) settlements, \(commit.forms.count) forms: \(Self.words(result))"
                    )
                }
                oracle.committed(commit, result, isCut: simdisk_stopped())
                if case .success(let reply) = result, reply.refusal == nil, !simdisk_stopped() {
                    disk.isFileGone = false
                }
            },
            died: { [unowned self] in die(powerAtCut ? .powerCut : .kill) })
        let medium = SimulatedMedium { host.bootTime.nanoseconds }
        let digits = String(boot + 1, radix: 16)
        let bootID = String(repeating: "0", count: 32 - digits.count) + digits
        var edges = Edges(
            host: host, medium: medium, bootID: bootID,
            makeWriter: { [unowned self] outbox in
                let writer = SimulatedWriter(outbox, world: world)
                self.writer = writer
                return writer
            }, uplink: network,
            source: SimulatedReceiver(asset: asset, host: host), isDaemon: false)
        if remote != nil { edges.remoteFile = stateDisk.file }
        edges.contacts = NoteFile(
            read: { [unowned self] in contacts }, write: { [unowned self] in contacts = $0 })
        edges.readsLater = { [host, readDice] read in
            host.after(.milliseconds(Int64(readDice.from(0...400))), ofProcess: true, read)
        }
        edges.makeCarrier = serviceDice.map { [network, books] dice in
            { report in
                let service = SimulatedService(host: host, dice: dice, report: report) { invariant, what in
                    books.fail(invariant, what)
                }
                network.service = service
                return service
            }
        }
        let sink = WorldLog.Sink { [unowned self] level, text in
            logLines += 1
            trace("log \(level): \(text)")
            if remote != nil { remoteOracle.logged(text) }
        }
        var logger = Logger(label: "waypost") { _ in WorldLog(sink: sink) }
        logger.logLevel = .info
        let agent = try Agent(
            config: loaded.config, effective: loaded.effective, environment: CurrentConfiguration.variables,
            logger: logger, options: options, edges: edges)
        self.agent = agent
        keep(configuration)
        agent.onRecord { [unowned self] location, _ in
            trace(
                "row \(books.recorded): \(location.event) \(location.time.milliseconds)\(location.published ? "" : " kept back")"
            )
            books.recorded(location, at: host.time)
        }
        try agent.eventLoop.watch(SimulatedHost.worldDescriptor) { _, _ in host.runActions() }
        trace("process \(host.process) starts")
    }

    private func startRemote(over loaded: inout LoadedConfiguration) -> RemoteStart {
        remoteOracle.upheaval()
        let now = host.bootTime
        var memory = RemoteMemory()
        if let bytes = stateDisk.bytes {
            if let stored = RemoteMemory(bytes, at: now) {
                memory = stored
            } else {
                books.fail(.remote, "what is remembered of settings from afar cannot be read")
            }
        }
        return RemoteStart(
            path: "/sim/remote.state", memory: memory, over: &loaded, at: now,
            store: { [stateDisk] in stateDisk?.replaceAtOnce($0.bytes(at: now)) == true },
            lay: { [current] in current.lay($0, $1, over: $2) })
    }

    /// As the disk of the queue: while it is in trouble.
    private func stateIsRefused() -> Bool {
        guard oracle.diskTroubleSince != nil, diskDice.chance(0.3) else { return false }
        remoteOracle.diskRefused()
        return true
    }

    /// What settings from afar have done.
    private func lookAfar() {
        host.after(.seconds(5), ofProcess: false) { [unowned self] in
            defer { lookAfar() }
            guard let agent, let remote, let state = agent.remoteState, !isStopping else { return }
            var look = RemoteOracle.Look(version: state.version, isTrial: state.isTrial)
            if remoteOracle.isNews(look) {
                look.others = agent.settingsInForce.filter { key, _ in
                    !RemoteServer.allowed.contains { key == $0 || key.hasPrefix("\($0).") }
                }
            }
            remoteOracle.look(look)
            if remote.effect(of: state.version) == .crashes { die(.kill) }
        }
    }

    private static func words(_ result: Result<CommitReply, OutboxError>) -> String {
        switch result {
        case .success(let reply):
            "lastSeq \(reply.lastSeq) "
                + reply.depths.map { "\($0.endpoint) \($0.state.word) \($0.waiting)+\($0.inFlight) q\($0.quarantined)" }
                .joined(separator: ", ") + (reply.dropped == DropCounts() ? "" : " dropped \(reply.dropped)")
        case .failure(let error): "\(error.cause) \(error.message)"
        }
    }

    func die(_ end: End) {
        guard self.end == nil, let agent else { return }
        self.end = end
        agent.eventLoop.stop()
    }

    // What is configured.

    func mend(_ dice: Dice) {
        if let mistyped { reconfigure(mistyped, atRestart: false, dice) }
    }

    /// The file says this now, without a mistake. The rows of an endpoint that is not configured any more are given up some
    /// time.
    func reconfigure(_ new: WorldConfiguration, atRestart: Bool, _ dice: Dice) {
        let before = configuration.endpoints.map(\.name)
        (configuration, mistyped) = (new, nil)
        current.set(new.text)
        oracle.reloaded(new.endpoints)
        if atRestart {
            terminate()
        } else {
            ask(#"{"do":"reload"}"#) { [unowned self] reply in if reply.contains(#""restart":[]"#) { keep(new) } }
        }
        for name in before where !new.endpoints.contains(where: { $0.name == name }) {
            forget(name, after: dice.between(1, 600))
        }
    }

    /// The daemon writes down what works, beside its other work.
    private func keep(_ configuration: WorldConfiguration) {
        host.after(.milliseconds(500), ofProcess: true) { [unowned self] in lastGood = configuration }
    }

    private func forget(_ name: String, after seconds: Double) {
        host.after(.milliseconds(Int64(seconds * 1000)), ofProcess: false) { [unowned self] in
            guard !isEnding else { return }
            ask(#"{"do":"endpoint","action":"forget","endpoint":"\#(name)"}"#)
        }
    }

    func terminate() {
        isStopping = true
        agent?.terminate()
    }

    func ask(_ line: String, _ answered: @escaping (String) -> Void = { _ in }) {
        requests.operatorSpoke(endsBackoff: line.contains("resume"))
        let isReload = line.contains("reload")
        if isReload { remoteOracle.upheaval() }
        agent?.ask(Array(line.utf8), peer: 0) { [unowned self] reply in
            // A look before the answer may have seen the former file, which was in force until then.
            if isReload { remoteOracle.upheaval() }
            if reply.count > Self.replyMax { books.fail(.bounded, "a reply of \(reply.count) bytes to \(line)") }
            let reply = String(decoding: reply, as: UTF8.self)
            trace("asked \(line): \(reply.prefix(300))")
            // Rows that have another binding, or none, go at once.
            if reply.hasPrefix(#"{"ok":true"#), line.contains(#"{"do":"endpoint""#) {
                requests.operatorSpoke(endsBackoff: true)
            }
            answered(reply)
        }
    }

    // What is looked at now and then, and at the end.

    private func look() {
        if let agent, agent.rowsHeld > 13_000 { books.fail(.bounded, "\(agent.rowsHeld) rows are held in memory") }
        if let most = configuration.facts.maxBytes {
            let (file, log) = (simdisk_size(WorldConfiguration.path), simdisk_size(WorldConfiguration.path + "-wal"))
            if file > most + most / 4 || log > Self.logMax {
                books.fail(.bounded, "the queue has \(file) bytes of \(most), its log \(log)")
            }
        }
        // What is taken apart while it stops is listed at the next start.
        if let agent, !isStopping, writer?.isIdle == true {
            for (name, waiting, _) in agent.backlog { oracle.said(waiting, of: name) }
        }
        if logLines > 5000 { books.fail(.bounded, "\(logLines) lines in the log") }
        host.after(.seconds(17), ofProcess: false) { [unowned self] in look() }
    }

    /// - Parameter interface: nil = there is no way.
    func changeLink(to interface: String?) {
        host.interface = interface
        network.linkChanged()
        agent?.linksChanged()
    }

    private func stopFaults() {
        trace("faults stop")
        isEnding = true
        disk.heal()
        simdisk_set(Int32(simdisk_changes_left), 0)
        for name in network.servers.keys { network.behaves(name, .good) }
        network.issuer.mood = .good
        host.interface = "eth0"
        host.isSynchronised = true
        asset.spoofMs = 0
        asset.reception = .good
        mend(worldDice)
        // A small queue has to be emptied while rows come, too.
        let rest = configuration.facts.maxRecords != nil && worldDice.chance(0.5) ? Self.rest : .zero
        host.after(rest, ofProcess: false) { [unowned self] in asset.reception = .silent }
        if let lastStumble, let name = network.servers.keys.sorted().first {
            network.behaves(name, .stumble(Self.stumble, lastStumble))
        }
        changeLink(to: "eth0")
        // A fault that ended after this would let the receiver go on, and rows would come for ever.
        faults.forget(at: ["disk", "receiver"])
        var until = host.time + Self.recoveryLimit
        if isRich, worldDice.chance(0.3) {
            trace("the disk goes on refusing")
            disk.fail([(Int32(simdisk_fail_write), 1_000_000)])
            host.after(Self.refusal, ofProcess: false) { [disk] in disk.heal() }
            until = until + Self.refusal
        }
        awaitDrained(until)
    }

    private func awaitDrained(_ until: EventTime) {
        host.after(.seconds(10), ofProcess: false) { [unowned self] in
            guard let agent else { return awaitDrained(until) }
            // Again after a while: an answer that was under way may have paused one.
            if host.time >= reliefDue {
                let isFirst = reliefDue == .zero
                reliefDue = host.time + .seconds(1800)
                // As it runs: another configuration may wait for a restart.
                // What fails alone while the rest is accepted is found without anybody's help.
                let names = agent.backlog.filter { isFirst || needsRelief($0.state) }.map(\.endpoint)
                // Who resumes what has stopped binds nothing.
                let stopped = agent.backlog.filter { $0.state == .stopped(reason: "gone") }.map(\.endpoint)
                for name in names {
                    if isFirst || !stopped.contains(name) { bind(name) }
                    ask(#"{"do":"endpoint","action":"resume","endpoint":"\#(name)"}"#)
                }
                // Their commit also says what was set aside before a restart.
                return awaitDrained(until)
            }
            let suspects = agent.suspects
            let waiting = agent.backlog.filter { $0.waiting > 0 }
            let late = waiting.filter { $0.waiting > suspects[$0.endpoint, default: 0] }
            for (name, rows, state) in agent.backlog {
                oracle.waits(state == .active ? rows - suspects[name, default: 0] : 0, for: name)
            }
            if late.isEmpty, agent.rowsHeld == 0, !agent.diskRefuses {
                return drained(Dictionary(uniqueKeysWithValues: waiting.map { ($0.endpoint, $0.waiting) }))
            }
            // Each row that its server refuses may hold the others up for a while.
            let patience = Self.pausePerRow * (waiting.map { poisonedRows(for: $0.endpoint) }.max() ?? 0)
            if host.time < until + patience { return awaitDrained(until) }
            // Where nothing else is left to be accepted, nothing tells a row that the server cannot take from a server that fails; nor
            // does a pause look behind more such rows than it tries alone.
            let isLate = late.contains { endpoint, rows, state in
                let poisoned = poisonedRows(for: endpoint)
                return rows > poisoned && (state == .active || poisoned < Self.triedAlone)
            }
            if !isLate, agent.rowsHeld == 0, !agent.diskRefuses {
                return drained(Dictionary(uniqueKeysWithValues: waiting.map { ($0.endpoint, $0.waiting) }))
            }
            books.fail(
                .liveness,
                "three hours after the last fault \(agent.rowsHeld) rows are in memory\(agent.diskRefuses ? ", the disk is not asked" : ""), and "
                    + waiting.map {
                        "\($0.waiting) wait for \($0.endpoint) (\($0.state.word) \($0.state.reason ?? ""))"
                    }
                    .joined(separator: ", "))
            concludeRun(Dictionary(uniqueKeysWithValues: waiting.map { ($0.endpoint, $0.waiting) }))
        }
    }

    private func poisonedRows(for endpoint: String) -> Int {
        isStumbling ? network.oracle.poisonedRows(for: endpoint, Self.stumble) : 0
    }

    private func bind(_ name: String) {
        ask(#"{"do":"endpoint","action":"bind","endpoint":"\#(name)","force":true}"#) { [unowned self] reply in
            // More rows of another device than there is room for.
            guard reply.contains("do not fit the quarantine") else { return }
            ask(#"{"do":"endpoint","action":"drop","endpoint":"\#(name)"}"#)
        }
    }

    private func needsRelief(_ state: EndpointState) -> Bool {
        switch state {
        case .active: !isStumbling
        case .paused: !Self.hasRefusals(seed)
        // Only a person ends these.
        case .stopped, .taken, .rebind: true
        }
    }

    /// What waits has gone out.
    private func drained(_ waiting: [String: Int]) {
        guard Self.hasRefusals(seed), !hadLastFault else { return concludeRun(waiting) }
        hadLastFault = true
        let status = seed % 2 == 0 ? 400 : 404
        let isPaused = agent?.backlog.contains { if case .paused = $0.state { true } else { false } } == true
        let hasLongWindow = configuration.text.contains(#"batch_window = "400s""#)
        let limit = isPaused || hasLongWindow ? Self.longLastFaultLimit : Self.lastFaultLimit
        for name in network.servers.keys { network.behaves(name, .status(status, asks: nil)) }
        ask(#"{"do":"flush","panic":true}"#)
        host.after(.seconds(Int64(2 + seed % 5)), ofProcess: false) { [unowned self] in
            for name in network.servers.keys { network.behaves(name, .good) }
            let recorded = books.rows.count
            host.after(limit, ofProcess: false) { [unowned self] in
                guard let agent else { return concludeRun([:]) }
                let suspects = agent.suspects
                // What has come meanwhile may wait for its window.
                let new = books.rows.count - recorded
                for (name, rows, state) in agent.backlog where rows > suspects[name, default: 0] + new {
                    let since = "\(limit) after its server had answered \(status) for some seconds"
                    books.fail(.liveness, "\(rows) rows wait for \(name) (\(state.word)) \(since)")
                }
                concludeRun(Dictionary(uniqueKeysWithValues: agent.backlog.map { ($0.endpoint, $0.waiting) }))
            }
        }
    }

    private func concludeRun(_ waiting: [String: Int]) {
        oracle.ended(waiting: waiting)
        isFinished = true
        agent?.eventLoop.stop()
    }
}
