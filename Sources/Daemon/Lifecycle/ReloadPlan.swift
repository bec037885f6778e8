import Configuration
import Profiles
import WaypostTracking

/// What a new configuration means for a daemon that runs: what takes effect now, and what at the next start.
///
/// Everything that decides what is asked of tracking, power, the journal and the pace of uploads may change at any time.
/// Where rows come from, where they lie and whose they are is settled at a start.
struct ReloadPlan: Sendable {
    /// Names of the keys that take effect now, as they are written: `[tracking] stop_timeout`.
    private(set) var live: [String] = []
    /// Names of those that do not.
    private(set) var atRestart: [String] = []
    /// What to run with: the new configuration, with old values where a change needs a restart.
    private(set) var config: AgentConfig
    /// Its keys, to compare the next one with.
    private(set) var effective: EffectiveConfiguration
    /// Names of the endpoints whose credentials change.
    private(set) var newCredentials: Set<String> = []

    init(from old: AgentConfig, _ oldKeys: EffectiveConfiguration, to new: LoadedConfiguration) {
        let wanted = new.config
        config = old
        effective = new.effective
        (config.tracking, config.rules) = (wanted.tracking, wanted.rules)
        // Set by the endpoints' feeds, which stay.
        config.tracking.keepEngineFixes = old.tracking.keepEngineFixes
        // Under the old name, whose rows they are.
        if wanted.device != old.device, wanted.tracking.trackables.map(\.id) == [wanted.device] {
            config.tracking.trackables[0].id = old.tracking.trackables[0].id
        }
        config.timetable = wanted.timetable
        config.battery = wanted.battery
        config.beacons = wanted.beacons
        config.context = wanted.context
        config.log = wanted.log
        config.metrics = wanted.metrics
        config.outbox.commitWindow = wanted.outbox.commitWindow
        let areSourcesTaken = takeListSources(of: wanted)
        let areSame = Self.names(old.endpoints) == Self.names(wanted.endpoints)
        let whole = areSame ? takeEndpoints(of: wanted) : []
        // By the endpoints that run, which may be others than are wanted.
        config.decideRules()
        name(
            ConfigurationDifference(from: oldKeys, to: new.effective), whole, takeChannels(of: wanted), areSourcesTaken)
        nameUnshown(old, wanted, areSame ? whole : nil)
    }

    private static func names(_ endpoints: [EndpointConfig]) -> [String] { endpoints.map(\.settings.name) }

    /// - Returns: whether each is now as the new configuration has it.
    private mutating func takeEndpoints(of wanted: AgentConfig) -> [Bool] {
        zip(config.endpoints.indices, wanted.endpoints).map { index, new in
            let old = config.endpoints[index]
            config.endpoints[index].settings.copyPace(from: new.settings)
            guard old.isSameButForPaceAndCredentials(as: new) else { return false }
            guard old.credentials != new.credentials else { return true }
            guard !new.needsNewCredentials(besides: old) else { return false }
            config.endpoints[index] = new
            newCredentials.insert(new.settings.name)
            return true
        }
    }

    /// - Returns: whether each has its new credentials now.
    private mutating func takeChannels(of wanted: AgentConfig) -> [Bool] {
        guard Self.names(config.channels.map(\.endpoint)) == Self.names(wanted.channels.map(\.endpoint)) else {
            return []
        }
        return zip(config.channels.indices, wanted.channels).map { index, new in
            guard !new.endpoint.needsNewCredentials(besides: config.channels[index].endpoint) else { return false }
            config.channels[index].endpoint.credentials = new.endpoint.credentials
            return true
        }
    }

    /// - Returns: whether they are now as the new configuration has them.
    private mutating func takeListSources(of wanted: AgentConfig) -> Bool {
        let known = Set(config.listSources.flatMap(\.endpoint.credentials.references))
        guard !wanted.listSources.contains(where: { $0.endpoint.needsNewCredentials(besides: known) }) else {
            return false
        }
        (config.fenceSources, config.beaconSources) = (wanted.fenceSources, wanted.beaconSources)
        return true
    }

    private mutating func name(
        _ difference: ConfigurationDifference, _ whole: [Bool], _ channels: [Bool], _ areSourcesTaken: Bool
    ) {
        var kept: [ConfigurationDifference.Change] = []
        for change in difference.changes {
            let isLive: Bool =
                switch change.table {
                case "[[endpoint]]":
                    change.index < whole.count && (change.effect == .reload || whole[change.index])
                case _ where change.table.hasPrefix("[endpoint."): !whole.isEmpty && whole.allSatisfy { $0 }
                case _ where change.table.hasPrefix("[channel."): !channels.isEmpty && channels.allSatisfy { $0 }
                case _ where Self.isListSource(change.table): areSourcesTaken
                default: change.effect == .reload
                }
            if isLive {
                add(change.name, to: &live)
            } else {
                add(change.name, to: &atRestart)
                kept.append(change)
            }
        }
        effective.restore(kept, from: difference)
    }

    /// Keys that the user names, as in headers and profiles, are not among those compared.
    private mutating func nameUnshown(_ old: AgentConfig, _ wanted: AgentConfig, _ whole: [Bool]?) {
        if config.fenceSources != old.fenceSources, !live.contains(where: { $0.contains("[geofences.source") }) {
            live.append("[[geofences.source]]")
        }
        if config.beaconSources != old.beaconSources, !live.contains(where: { $0.contains("[beacons") }) {
            live.append("[[beacons.source]]")
        }
        if !config.tracking.isSame(as: old.tracking) || config.timetable != old.timetable, live.isEmpty {
            live.append(config.tracking.geofences == old.tracking.geofences ? "[tracking]" : "[geofences] file")
        }
        let isNamed = atRestart.contains { $0.contains("endpoint") || $0 == "[device] id" }
        if let whole, !whole.allSatisfy({ $0 }), !isNamed { atRestart.append("[[endpoint]] profile or headers") }
        for endpoint in newCredentials.sorted() where !live.contains(where: { $0.contains("endpoint") }) {
            live.append("credentials of \(endpoint)")
        }
    }

    private static func isListSource(_ table: String) -> Bool {
        table.contains("[geofences.source") || table.contains("[beacons.source")
    }

    private func add(_ name: String, to names: inout [String]) {
        if !names.contains(name) { names.append(name) }
    }
}

extension AgentConfig {
    /// All that servers list.
    fileprivate var listSources: [ListSourceConfig] { fenceSources.map(\.list) + beaconSources.map(\.list) }
}

extension EndpointConfig {
    /// What a request carries beside the rows.
    struct Credentials: Hashable {
        var secrets: [String: Secret.Reference]
        var auth: EndpointAuth?
        var sign: EndpointSignature?
        var tls: EndpointTLS?
        var clock: SigningClock

        fileprivate var references: [Secret.Reference] {
            secrets.values + [tls?.authorities, tls?.certificate, tls?.key].compactMap { $0 }
        }
    }

    var credentials: Credentials {
        get { Credentials(secrets: secrets, auth: auth, sign: sign, tls: tls, clock: signingClock) }
        set {
            (secrets, auth, sign, tls, signingClock) = (
                newValue.secrets, newValue.auth, newValue.sign, newValue.tls, newValue.clock
            )
        }
    }

    /// It names some that systemd would have to hand over, which it does at a start.
    fileprivate func needsNewCredentials(besides old: EndpointConfig) -> Bool {
        needsNewCredentials(besides: Set(old.credentials.references))
    }

    fileprivate func needsNewCredentials(besides known: Set<Secret.Reference>) -> Bool {
        credentials.references.contains { reference in
            if case .credential = reference { !known.contains(reference) } else { false }
        }
    }

    fileprivate func isSameButForPaceAndCredentials(as other: EndpointConfig) -> Bool {
        var settings = settings
        settings.copyPace(from: other.settings)
        return settings == other.settings
    }
}
