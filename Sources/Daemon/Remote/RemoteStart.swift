import Configuration
import Remote
import WaypostCore
import WaypostHost

/// What is known of settings from afar when the daemon starts: they are over the file before anything runs with it.
package struct RemoteStart: Sendable {
    /// Lays settings over a configuration that has none.
    package typealias Lay = @Sendable ([RemoteSetting], Int64, LoadedConfiguration) -> RemoteOverlay

    package let path: String
    /// The file, without anything from afar.
    package let base: LoadedConfiguration
    package var memory: RemoteMemory
    /// What the start itself has done to them, to be logged and reported.
    package private(set) var actions: [SettingsTrial.Action] = []
    /// Why what was stored is not used, for people.
    package private(set) var problem: String?
    /// The same where it is not known which versions were accepted: a problem until one is.
    package private(set) var lostSeen: String?
    /// The second copy of the highest version that was accepted is not on disk.
    package private(set) var isSeenBehind = false
    package let lay: Lay

    /// - Parameters:
    ///   - memory: as it was stored.
    ///   - store: writes it durably; false = it could not.
    ///   - loaded: the file, over which the settings are laid.
    package init(
        path: String, memory: RemoteMemory, over loaded: inout LoadedConfiguration, at now: EventTime,
        store: (RemoteMemory) -> Bool, lay: @escaping Lay
    ) {
        self.path = path
        base = loaded
        self.memory = memory
        self.lay = lay
        actions = self.memory.settings.started(at: now)
        // The start counts before the settings are used: one that they bring down must not come to nothing.
        if memory.settings.inForce != nil, !store(self.memory) {
            problem = "\(path) cannot be written"
            // Not `apply`: what had contact before is laid below.
            actions += self.memory.settings.notStored().filter { if case .apply = $0 { false } else { true } }
        }
        guard let version = self.memory.settings.inForce else { return }
        switch lay(version.settings, version.version, loaded) {
        case .accepted(let whole, _, _): loaded = whole
        case .rejected(let problems):
            actions += self.memory.settings.refusedByFile(problems)
            _ = store(self.memory)
        }
    }

    /// Reads what was stored on this host.
    /// - Returns: nil where the file allows nothing.
    package init?(over loaded: inout LoadedConfiguration, environment: ConfigurationEnvironment) {
        guard loaded.config.remote != nil else { return nil }
        let file = RemoteFile(beside: loaded.config.outbox)
        let now = HostClock.bootTime
        var memory = RemoteMemory()
        var unusable: String?
        var isSeenLost = false
        switch file.contents(at: now) {
        case .none: break
        case .memory(let stored): memory = stored
        case .unusable(let reason, let seen):
            memory.settings.recall(seen: seen ?? 0)
            unusable = "\(file.path) \(reason): settings start from nothing"
            if let seen, seen > 0 {
                unusable? += ", and a document is accepted only above version \(seen)"
            } else if seen == nil, loaded.config.remote?.key != nil {
                unusable? +=
                    ", and as \(file.seenPath) cannot be used either, signed documents of before may be accepted again: let the "
                    + "server send a higher version than ever before"
                isSeenLost = true
            }
        }
        let variables = environment.variables
        self.init(
            path: file.path, memory: memory, over: &loaded, at: now,
            store: { memory in
                do throws(SystemError) {
                    try replaceFile(file.path, with: memory.bytes(at: now), mode: 0o600)
                    return true
                } catch { return false }
            },
            lay: { settings, version, base in
                let environment = ConfigurationEnvironment(
                    variables: variables, hostname: { HostIdentity.hostName() },
                    machineID: { MachineID.read() }, buildDate: AgentVersion.released,
                    requiresCredentials: false)
                return RemoteOverlay(settings, version: version, over: base, environment: environment)
            })
        problem = problem ?? unusable
        if isSeenLost { lostSeen = unusable }
        isSeenBehind = (file.seen ?? 0) != self.memory.settings.seen
    }
}

extension LoadedConfiguration {
    /// What the daemon would run with, and why not: for who looks at it from outside.
    package mutating func layRemote(environment: ConfigurationEnvironment) -> String? {
        guard config.remote != nil else { return nil }
        let file = RemoteFile(beside: config.outbox)
        switch file.contents(at: HostClock.bootTime) {
        case .none: return nil
        case .unusable(let reason, _): return "\(file.path) \(reason): settings from afar are not shown"
        case .memory(let memory):
            guard let version = memory.settings.inForce else { return nil }
            switch RemoteOverlay(version.settings, version: version.version, over: self, environment: environment) {
            case .accepted(let whole, _, _):
                self = whole
                return nil
            case .rejected(let problems):
                let first = problems.first?.description ?? ""
                return "remote v\(version.version) no longer fits the file and will be dropped: \(first)"
            }
        }
    }
}
