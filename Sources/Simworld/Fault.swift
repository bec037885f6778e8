import CSimDisk

/// One thing that happens to the world.
struct Fault {
    enum Kind {
        /// A server behaves in this way for a share of the requests, and in the other way for the rest.
        case mood(endpoint: Int, Mood, intensity: Double, otherwise: Mood)
        /// Settings of the simulated disk by number.
        case disk([(setting: Int32, value: Int64)])
        case slowDisk(seconds: Double)
        case lyingDisk(share: Int64)
        case kill
        case powerCut
        /// The end comes this many changes of the disk later.
        case endInCommit(changes: Int, power: Bool)
        case stop
        /// Another configuration, by a reload or at the next start.
        case reconfigure(atRestart: Bool)
        /// The file gets a mistake, and is read again or not.
        case mistake(reloads: Bool)
        /// With the end of the process, or while it works on.
        case damage(sectors: Int, ends: Bool)
        case receiver(Asset.Reception)
        case spoof(seconds: Int64)
        case wallStep(seconds: Int64)
        case unsynchronised
        case link(String?)
        /// Another program opens the queue.
        case reader
        case files(FileFault)
        /// A wrong number in one of the small tables, between two processes.
        case wrongNumber
        case command(String)
        /// The issuer of tokens behaves in this way.
        case issuer(Mood)
        /// The servers refuse the tokens that they took so far.
        case revoked
        /// A server has another document of settings, or sends commands; a person drops what it has set.
        case offer
        case orders(Int)
        case dropRemote(forgets: Bool)
    }

    /// Seconds since the beginning.
    var at: Double
    /// Seconds; 0 = it is over at once.
    var lasts: Double
    var kind: Kind
    var seed: UInt64

    var word: String {
        switch kind {
        case .mood: "mood"
        case .disk: "disk"
        case .slowDisk: "slow disk"
        case .lyingDisk: "lying disk"
        case .kill: "kill"
        case .powerCut: "power cut"
        case .endInCommit: "end in commit"
        case .stop: "stop"
        case .reconfigure: "reconfigure"
        case .mistake: "mistake"
        case .damage: "damage"
        case .receiver: "receiver"
        case .spoof: "spoof"
        case .wallStep: "wall step"
        case .unsynchronised: "unsynchronised"
        case .link: "link"
        case .reader: "reader"
        case .files: "files"
        case .wrongNumber: "wrong number"
        case .command: "command"
        case .issuer: "issuer"
        case .revoked: "revoked"
        case .offer: "document"
        case .orders: "command from afar"
        case .dropRemote: "settings from afar dropped"
        }
    }
}

/// What happens in a run.
struct Schedule {
    /// Seconds until the faults stop.
    var length: Double
    var isLong: Bool
    var faults: [Fault] = []

    /// - Parameter longShare: of the runs, those that last for a day.
    init(dice: Dice, endpoints: Int, longShare: Double) {
        isLong = dice.chance(longShare)
        length = isLong ? dice.between(86_400, 88_000) : dice.between(500, 1200)
        // With fewer kinds in a run, faults of the same kind coincide more often.
        let moods = (0..<dice.pick([2, 3, 40])).map { _ in Self.mood(dice) }
        let disks = (0..<dice.pick([1, 2, 20])).map { _ in Self.disk(dice) }
        for _ in 0..<dice.from(20...34) {
            let seed = dice.next()
            let own = Dice(seed: seed)
            let kind = Self.kind(own, endpoints, moods, disks)
            // A server that fails for longer than the disk is what leaves rows to be sent that memory alone knows of.
            let isShort = if case .mood = kind { own.chance(0.4) } else { own.chance(0.6) }
            let lasts = isShort ? own.between(2, 90) : own.between(90, isLong ? 30_000 : 600)
            let at = own.between(0, length)
            faults.append(Fault(at: at, lasts: lasts, kind: kind, seed: own.next()))
            // What was done in memory alone ends with the process.
            if case .disk = kind, own.chance(0.3) {
                let end: Fault.Kind = own.chance(0.5) ? .kill : .powerCut
                faults.append(
                    Fault(at: own.between(at, min(at + lasts, length)), lasts: 0, kind: end, seed: own.next()))
            }
            if case .disk = kind, own.chance(0.03) {
                faults.append(
                    Fault(
                        at: own.between(at, min(at + lasts, length)), lasts: 0,
                        kind: .damage(sectors: own.pick([4, 30]), ends: false), seed: own.next()))
            }
            // What a server refuses while the disk does too is decided in memory, and perhaps on disk before.
            if case .disk = kind, own.chance(0.2) {
                let refusal: Mood = own.pick([
                    .partial(code: "invalid", share: 0.3), .taken, .taken, .poison(7, status: 400),
                ])
                let early = min(at, own.between(0, 10))
                faults.append(
                    Fault(
                        at: at - early, lasts: early + own.between(0, lasts + 60),
                        kind: .mood(endpoint: own.below(endpoints), refusal, intensity: 1, otherwise: .good),
                        seed: own.next()))
            }
            // What goes out again from the quarantine is answered while the disk refuses.
            if case .disk = kind, own.chance(0.1) {
                faults.append(
                    Fault(
                        at: max(0, at - own.between(0, 2)), lasts: 0,
                        kind: .command(#"{"do":"quarantine","action":"retry","all":true}"#), seed: own.next()))
            }
            // An order that comes just as the disk works again is carried out in memory and on disk.
            if case .disk = kind, own.chance(0.3) {
                faults.append(
                    Fault(
                        at: min(at + lasts + own.between(0, 2), length), lasts: 0, kind: .command(Self.command(own)),
                        seed: own.next()))
            }
        }
        faults.sort { $0.at < $1.at }
    }

    /// Mistakes in the configuration, with starts among them that have nothing but the last good one.
    mutating func addMistakes(_ dice: Dice) {
        for _ in 0..<dice.from(1...4) {
            let at = dice.between(0, length)
            let lasts = dice.between(1, dice.pick([20, 300]))
            faults.append(
                Fault(at: at, lasts: lasts, kind: .mistake(reloads: dice.chance(0.5)), seed: dice.next()))
            // The one kept last may lie before the last reload.
            if dice.chance(0.5) {
                let before = max(0, at - dice.between(0, 5))
                faults.append(Fault(at: before, lasts: 0, kind: .reconfigure(atRestart: false), seed: dice.next()))
            }
            if dice.chance(0.7) {
                let end: Fault.Kind = dice.pick([.kill, .powerCut, .stop])
                faults.append(Fault(at: at + dice.between(0, lasts), lasts: 0, kind: end, seed: dice.next()))
            }
        }
        faults.removeAll { $0.at > length }
        faults.sort { $0.at < $1.at }
    }

    /// Reads, writes and flushes that fail now and then for a minute, with ends of the process among them.
    mutating func addFailingDisk(_ dice: Dice) {
        for _ in 0..<dice.from(1...3) {
            let share = Int64(dice.pick([5000, 20_000, 50_000] as [Int]))
            let at = dice.between(0, length)
            let kinds = [simdisk_fail_read, simdisk_fail_write, simdisk_fail_sync].map { (Int32($0), share) }
            faults.append(Fault(at: at, lasts: 60, kind: .disk(kinds), seed: dice.next()))
            if dice.chance(0.5) {
                let end: Fault.Kind = dice.chance(0.5) ? .kill : .powerCut
                faults.append(Fault(at: at + dice.between(0, 60), lasts: 0, kind: end, seed: dice.next()))
            }
        }
        faults.removeAll { $0.at > length }
        faults.sort { $0.at < $1.at }
    }

    /// Documents and commands from afar, with ends of the process among them.
    mutating func addRemote(_ dice: Dice) {
        func add(_ kind: Fault.Kind, at: Double) {
            faults.append(Fault(at: at, lasts: 0, kind: kind, seed: dice.next()))
        }
        for _ in 0..<dice.from(3...9) {
            let at = dice.between(0, length)
            add(.offer, at: at)
            if dice.chance(0.3) { add(dice.pick([.kill, .powerCut, .stop]), at: at + dice.between(0, 90)) }
        }
        for _ in 0..<dice.from(4...15) {
            let at = dice.between(0, length)
            add(.orders(dice.chance(0.05) ? 40 : dice.from(1...3)), at: at)
            if dice.chance(0.15) { add(dice.pick([.kill, .powerCut]), at: at + dice.between(0, 20)) }
        }
        for _ in 0..<dice.below(3) { add(.dropRemote(forgets: dice.chance(0.3)), at: dice.between(0, length)) }
        faults.removeAll { $0.at > length }
        faults.sort { $0.at < $1.at }
    }

    /// Links that change every minute or so, also for seconds alone, and in between crawl or have no resolver that answers.
    mutating func addLinks(_ dice: Dice, endpoints: Int) {
        var at = dice.between(0, 30)
        while at < length {
            let lasts = dice.between(1, dice.pick([5, 40, 200]))
            let interface: String? = dice.pick(["wwan0", "wlan0", "usb10", nil])
            faults.append(Fault(at: at, lasts: lasts, kind: .link(interface), seed: dice.next()))
            at += lasts + dice.between(0, isLong ? 2000 : 100)
        }
        for _ in 0..<dice.from(1...4) {
            let mood: Mood = dice.chance(0.6) ? .narrow(bytes: dice.pick([1500, 5000, 20_000])) : .unresolved
            faults.append(
                Fault(
                    at: dice.between(0, length), lasts: dice.between(100, 600),
                    kind: .mood(endpoint: dice.below(endpoints), mood, intensity: 1, otherwise: .good),
                    seed: dice.next()))
        }
        faults.sort { $0.at < $1.at }
    }

    /// Routers that forget connections sooner than the next batch comes.
    mutating func addForgetfulRouters(_ dice: Dice, endpoints: Int) {
        for _ in 0..<dice.from(1...3) {
            let lasts = dice.between(200, isLong ? 30_000 : 1500)
            faults.append(
                Fault(
                    at: dice.between(0, max(1, length - lasts)), lasts: lasts,
                    kind: .mood(
                        endpoint: dice.below(endpoints), .forgets(after: dice.pick([1, 5, 25])), intensity: 1,
                        otherwise: .good),
                    seed: dice.next()))
        }
        faults.sort { $0.at < $1.at }
    }

    /// Rows over which a server fails, and bodies that it refuses since they are compressed.
    mutating func addStumbles(_ dice: Dice, endpoints: Int) {
        for _ in 0..<dice.from(2...5) {
            let stumble: Stumble = dice.pick([
                .status(502), .status(504), .status(500), .reset, .timeout, .closed, .cut, .any,
            ])
            let mood: Mood =
                dice.chance(0.7)
                ? .stumble(Int64(dice.pick([31, 97, 211])), stumble)
                : .plainOnly(.status(dice.pick([400, 415, 422, 500])))
            let lasts = dice.between(300, isLong ? 30_000 : 1000)
            faults.append(
                Fault(
                    at: dice.between(0, max(1, length - lasts)), lasts: lasts,
                    kind: .mood(endpoint: dice.below(endpoints), mood, intensity: 1, otherwise: .good),
                    seed: dice.next()))
        }
        faults.sort { $0.at < $1.at }
    }

    /// What a server may answer to one row as if it refused everything.
    static let refusals = [301, 403, 404, 409, 410, 501]

    /// Rows that are answered so, servers that refuse everything for seconds, and some that never answer to compressed bodies.
    mutating func addRefusals(_ dice: Dice, endpoints: Int) {
        func add(_ mood: Mood, lasts: Double) {
            faults.append(
                Fault(
                    at: dice.between(0, max(1, length - lasts)), lasts: lasts,
                    kind: .mood(endpoint: dice.below(endpoints), mood, intensity: 1, otherwise: .good),
                    seed: dice.next()))
        }
        for _ in 0..<dice.from(2...5) {
            let mood: Mood =
                dice.chance(0.8)
                ? .stumble(Int64(dice.pick([31, 97, 211])), .status(dice.pick(Self.refusals))) : .plainOnly(.timeout)
            add(mood, lasts: dice.between(300, isLong ? 30_000 : 1000))
        }
        for _ in 0..<dice.from(3...8) {
            add(.status(dice.pick([400, 400, 422] + Self.refusals), asks: nil), lasts: dice.between(2, 20))
        }
        faults.sort { $0.at < $1.at }
    }

    /// At first no server accepts anything, and meanwhile the configuration changes.
    mutating func addMoves(_ dice: Dice, endpoints: Int) {
        let lasts = dice.between(100, 600)
        for index in 0..<endpoints {
            faults.append(
                Fault(
                    at: 0, lasts: lasts,
                    kind: .mood(
                        endpoint: index, dice.pick([Mood.refused, .lost, .late]), intensity: 1, otherwise: .good),
                    seed: dice.next()))
        }
        faults.append(
            Fault(at: dice.between(50, lasts), lasts: 0, kind: .reconfigure(atRestart: true), seed: dice.next()))
        faults.sort { $0.at < $1.at }
    }

    private static let day: Int64 = 86_400
    /// Seconds by which a receiver or the clock of the host is wrong: typed, since this costs the compiler seconds otherwise.
    private static let spoofs: [Int64] = [2 * day, 35 * day, -day, 3600, 7168 * day]
    private static let wallSteps: [Int64] = [3600, -3600, 30 * day, -19_000 * day]

    private static func kind(_ dice: Dice, _ endpoints: Int, _ moods: [Mood], _ disks: [Fault.Kind]) -> Fault.Kind {
        switch dice.below(100) {
        case 0..<36:
            .mood(
                endpoint: dice.below(endpoints), dice.pick(moods), intensity: dice.pick([0.3, 0.7, 1, 1] as [Double]),
                otherwise: dice.chance(0.5) ? .good : dice.pick(moods))
        case 36: .issuer(mood(dice))
        case 37, 38: .revoked
        case 39..<54: dice.pick(disks)
        case 54..<57: .kill
        case 57..<60: .powerCut
        case 60..<66: .endInCommit(changes: dice.from(1...60), power: dice.chance(0.7))
        case 66..<68: .stop
        case 68..<72: .reconfigure(atRestart: dice.chance(0.4))
        case 72..<75: .receiver(dice.pick([.silent, .silent, .unplugged, .void, .dateless, .garbled]))
        case 75..<77: .spoof(seconds: dice.pick(spoofs))
        case 77..<79: .wallStep(seconds: dice.pick(wallSteps))
        case 79: dice.chance(0.5) ? .unsynchronised : .damage(sectors: dice.pick([1, 2, 4, 30] as [Int]), ends: true)
        case 80: .lyingDisk(share: dice.pick([50_000, 500_000] as [Int64]))
        case 81..<85: .link(dice.pick(["wwan0", "wlan0", nil]))
        case 85: .reader
        default: .command(command(dice))
        }
    }

    private static func mood(_ dice: Dice) -> Mood {
        switch dice.below(16) {
        case 0: .slow(dice.pick([5, 30, 100]))
        case 1, 2:
            .status(
                dice.pick([500, 502, 503, 503, 504, 429, 429]),
                asks: dice.pick([
                    nil, .seconds("5"), .seconds("120"), .seconds("600"), .seconds("0"), .seconds("99999999999"),
                    .seconds("soon"), .seconds("-3"), .date(.imf, in: 90), .date(.rfc850, in: 300),
                    .date(.asctime, in: 45), .date(.imf, in: -60), .date(.withoutClock, in: 600),
                ]))
        case 3: .status(dice.pick([401, 402, 403, 407]), asks: nil)
        case 4:
            dice.chance(0.4)
                ? .taken
                : .status(
                    dice.pick([404, 410, 405, 415, 417, 418, 451, 431, 301, 302, 511]),
                    asks: dice.pick([nil, nil, .seconds("120")]))
        case 5: .status(dice.pick([408, 409, 421, 425]), asks: dice.pick([nil, .seconds("60")]))
        case 6:
            dice.chance(0.2)
                ? .status(413, asks: .seconds("60")) : .status(dice.pick([400, 422, 413, 414]), asks: nil)
        case 7: .refused
        case 8: .noName
        case 9, 10: .lost
        case 11: .late
        case 12: .broken
        case 13: dice.chance(0.5) ? .interim : .contradictory
        case 14:
            .partial(code: dice.pick(["busy", "busy", "invalid", "who"]), share: dice.pick([0.02, 0.3, 0.95, 0.95]))
        default: .poison(Int64(dice.pick([7, 31, 97])), status: dice.pick([400, 400, 500]))
        }
    }
}
