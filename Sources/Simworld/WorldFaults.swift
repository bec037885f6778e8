import CSimDisk

/// What the faults of a world do to it: each begins at its time, and is over at its end unless another one of its kind has
/// begun.
final class WorldFaults {
    private unowned let world: World
    private let host: SimulatedHost
    /// How many have begun, by kind and place: the last one decides when it is over.
    private var turns: [String: Int] = [:]

    init(of world: World) {
        self.world = world
        host = world.host
    }

    func plan(_ fault: Fault) {
        host.after(.milliseconds(Int64(fault.at * 1000)), ofProcess: false) { [unowned self] in begin(fault) }
    }

    private func begin(_ fault: Fault) {
        guard !world.isEnding else { return }
        world.report.faults[fault.word, default: 0] += 1
        world.trace("FAULT \(fault.kind) for \(fault.lasts) s")
        let dice = Dice(seed: fault.seed)
        let (network, asset, disk) = (world.network, world.asset, world.disk)
        switch fault.kind {
        case .mood(let index, let mood, let intensity, let otherwise):
            let name = world.configuration.endpoints[index % world.configuration.endpoints.count].name
            network.behaves(name, mood, intensity: intensity, otherwise: otherwise)
            over(fault, "mood \(name)") { network.behaves(name, .good) }
        case .disk(let settings):
            disk.fail(settings)
            over(fault, "disk") { disk.heal() }
        case .slowDisk(let seconds):
            disk.slowDown(to: seconds)
            over(fault, "disk") { disk.heal() }
        case .lyingDisk(let share):
            world.books.blameDisk()
            simdisk_set(Int32(simdisk_lying_sync), share)
            over(fault, "disk") { disk.heal() }
        case .kill: world.die(.kill)
        case .powerCut: world.die(.powerCut)
        case .endInCommit(let changes, let power):
            world.powerAtCut = power
            simdisk_set(Int32(simdisk_changes_left), Int64(changes))
        case .stop: world.terminate()
        case .reconfigure(let atRestart):
            var new = world.mistyped ?? world.configuration
            new.change(dice)
            if World.hasMoves(world.seed) { new.move(dice) }
            world.reconfigure(new, atRestart: atRestart, dice)
        case .mistake(let reloads):
            if world.mistyped == nil { world.mistyped = world.configuration }
            world.current.set(world.configuration.text + "[tracking\n")
            if reloads { world.ask(#"{"do":"reload"}"#) }
            over(fault, "mistake") { [unowned self] in world.mend(dice) }
        case .damage(let sectors, let ends):
            world.books.blameDisk()
            simdisk_damage(WorldConfiguration.path, Int32(sectors))
            if ends { world.die(.kill) }
        case .receiver(let reception):
            asset.reception = reception
            over(fault, "receiver") { asset.reception = .good }
        case .spoof(let seconds):
            asset.spoofMs = seconds * 1000
            compareClocks()
            over(fault, "date") { asset.spoofMs = 0 }
        case .wallStep(let seconds):
            host.wallOffsetMs += seconds * 1000
            world.agent?.clockWasSet()
            compareClocks()
        case .unsynchronised:
            host.isSynchronised = false
            over(fault, "synchronised") { [host] in host.isSynchronised = true }
        case .link(let interface):
            world.changeLink(to: interface)
            over(fault, "link") { [unowned self] in world.changeLink(to: "eth0") }
        // Between two processes a reader hinders nobody.
        case .reader: if world.agent != nil { world.writer?.readerCame() }
        case .files(let fault):
            world.books.areFilesLeftAlone = false
            // What happens between two processes is nothing that the next one could know.
            if world.agent != nil, disk.strike(fault) { world.books.blameDisk() }
        case .wrongNumber:
            world.wrongNumbers = Dice(seed: fault.seed)
            world.die(.kill)
        case .command(let line): world.ask(line)
        case .issuer(let mood):
            network.issuer.mood = mood
            over(fault, "issuer") { network.issuer.mood = .good }
        case .revoked: network.issuer.revokedThrough = network.issuer.last
        case .offer: world.remote?.offer()
        case .orders(let count): for _ in 0..<count { world.remote?.command() }
        case .dropRemote(let forgets):
            // For a server that begins again, or to be rid of what was refused.
            let acceptsOlder = fault.seed % 2 == 0
            if forgets {
                world.remoteOracle.forgotten(acceptsOlder: acceptsOlder || world.remote?.isSigned == false)
            }
            let more = forgets && acceptsOlder ? #","accept_older":true"# : ""
            world.ask(#"{"do":"remote","action":"\#(forgets ? "forget" : "clear")"\#(more)}"#)
        }
    }

    private func compareClocks() {
        let asset = world.asset
        let error = host.wallOffsetMs - asset.epochMs
        guard asset.spoofMs != 0, abs(error - asset.spoofMs) < 600_000 else { return }
        world.oracle.clocksErredAlike = true
        world.remoteOracle.clocksErred()
    }

    private func over(_ fault: Fault, _ place: String, _ undo: @escaping () -> Void) {
        turns[place, default: 0] += 1
        let turn = turns[place]
        host.after(.milliseconds(Int64(fault.lasts * 1000)), ofProcess: false) { [unowned self] in
            guard turns[place] == turn else { return }
            world.trace("over: \(place)")
            undo()
        }
    }

    /// Faults that are under way at these places do not end any more.
    func forget(at places: [String]) {
        for place in places { turns[place, default: 0] += 1 }
    }
}
