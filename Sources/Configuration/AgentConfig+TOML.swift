import Logging
import Queue
import Sensors
import WaypostCore
import WaypostTracking

extension AgentConfig {
    /// nil when something essential is missing; the problems are left with the reader.
    init?(reading root: TableReader) {
        let deviceTable = root.table("device")
        let sourceTable = root.table("source")
        let receiverTable = root.table("receiver")
        let trackingTable = root.table("tracking", .reload)
        let samplingTable = root.table("sampling", .reload)
        let resolutionTable = root.table("resolution", .reload)
        let trackableTables = root.tables("trackable", .reload)
        let scheduleTable = root.table("schedule", .reload)
        let geofenceTables = root.tables("geofence", .reload, most: GeofenceMonitor.fencesMax)
        let geofencesTable = root.table("geofences", .reload)
        let fenceSourceTables = geofencesTable.tables("source")
        let batteryTable = root.table("battery", .reload)
        let beaconsTable = root.table("beacons", .reload)
        let regionTables = beaconsTable.tables("regions")
        let beaconSourceTables = beaconsTable.tables("source")
        let contextTable = root.table("context", .reload)
        let outboxTable = root.table("outbox")
        let endpointTables = root.tables("endpoint", most: 100).map { ($0, $0.table("data_tracking_config")) }
        let channelTables = root.tables("channel", most: 100)
        let profileTable = root.table("profile")
        let controlTable = root.table("control")
        let logTable = root.table("log", .reload)
        let metricsTable = root.table("metrics", .reload)
        let remoteTable = root.table("remote")

        device = Self.device(deviceTable)
        deviceTable.read(
            "units", into: &units, as: .word(DisplayUnits.allCases.map { ($0.rawValue, $0) }))
        var source = SourceConfig(reading: sourceTable)
        tracking = Tracker.Settings(trackables: [])
        tracking.read(trackingTable)
        tracking.receiver.read(receiverTable)
        let profile = ReceiverProfile(reading: receiverTable)
        source?.take(profile, receiverTable)
        let (preset, rule) = tracking.sampling.read(
            samplingTable, vendorRule: ResolutionSettings.vendorRule(resolutionTable))
        let ruleTables = tracking.resolution.read(resolutionTable, preset: preset, rule: rule)
        rules = WrittenRules(sampling: rule)
        let movingAsks = tracking.readProfiles(
            trackingTable, rules: &rules,
            hasDisplacement: ResolutionSettings.hasDisplacement(resolutionTable, preset: preset))
        tracking.receiver.warnOfNoEffect(receiverTable)
        tracking.trackables = Trackable.all(trackableTables, device: device)
        timetable = Timetable(reading: scheduleTable)
        for hours in tracking.resolution.hours { timetable.set(hours: hours) }
        tracking.geofences = GeofenceMonitor.Settings(reading: geofencesTable, geofenceTables)
        fenceSources = FenceSourceConfig.all(fenceSourceTables, own: tracking.geofences.fences, device: device)
        // A fence's id may only be missing because the fence itself is wrong.
        if !root.hasProblems(under: "geofence"), !root.hasProblems(under: "geofences") {
            tracking.resolution.requireFences(
                tracking.geofences.fences, sources: fenceSources.map(\.name), of: ruleTables)
        }
        tracking.batteryAlarm.read(batteryTable)
        battery = BatteryConfig(reading: batteryTable, isLive: !(source?.isFile ?? false))
        let beaconLists = BeaconSourceConfig.all(beaconSourceTables, device: device)
        beacons = BeaconConfig(reading: beaconsTable, regionTables, hasSources: !beaconLists.isEmpty)
        beaconSources = beacons.isEnabled ? beaconLists : []
        context = ContextConfig(reading: contextTable)
        outbox = OutboxConfig(reading: outboxTable, vendor: endpointTables.map(\.1))
        outbox.settings.bound = tracking.sampling.bound
        profiles = ProfileLibrary(reading: profileTable)
        endpoints = EndpointConfig.all(endpointTables, device: device, profiles: profiles)
        channels = ChannelConfig.all(channelTables, device: device)
        profiles.checkUnused(Set(endpoints.map(\.settings.profile.name)), profileTable)
        rules.asking = tracking.asking(resolutionTable, preset: preset) + [movingAsks].compactMap(\.self)
        // Where only the newest position counts it comes from memory.
        tracking.keepEngineFixes = endpoints.contains { $0.settings.feed == .engine && $0.settings.delivery == .all }
        control = ControlConfig(reading: controlTable)
        log = LogConfig(reading: logTable)
        metrics = MetricsConfig(reading: metricsTable)
        // The last: it names keys of all the others.
        remote = RemoteConfig(
            reading: remoteTable, device: device,
            endpoints: endpoints.filter { $0.settings.backupFor == nil })
        if let remote, case .mqtt(let topic) = remote.way,
            let index = endpoints.firstIndex(where: { $0.settings.name == remote.endpoint })
        {
            endpoints[index].settings.subscriptions = RemoteTopic.allCases.map { "\(topic)/\($0.rawValue)" }
        }
        // Where one of them could not be read, nothing runs.
        if endpoints.count == endpointTables.count {
            EndpointConfig.nameClients(&endpoints, endpointTables.map(\.0))
            EndpointConfig.warnOfEqualTopics(
                endpoints, endpointTables.map(\.0), trackables: tracking.trackables.map(\.id))
        }

        guard let source else { return nil }
        self.source = source
        decideRules()
        if rules.sampling == nil {
            samplingTable.explain(
                "rule",
                rules.moving == nil
                    ? "\(tracking.sampling.rule.rawValue.asTOML), because \(tracking.ruleReason.words)"
                    : "without effect, because [tracking.moving] rule is set")
        }
        tracking.warnOfTrackErrorAlone(samplingTable, thins: outbox.settings.onFull == .thin)
        if !root.has("endpoint"), !root.has("channel") {
            root.warn(
                "endpoint",
                "none is configured yet: drives are stored on this device, `sudo waypost init` asks for a server")
        }
    }

    private static func device(_ table: TableReader) -> String {
        var id = "machine"
        table.read("id", into: &id, as: .name)
        guard id == "machine" else { return id }
        if let machine = table.environment.machineID() { return machine }
        table.report(
            "id", "found \"machine\" on a host without /etc/machine-id, expected the name of the device here")
        return id
    }
}

extension AgentConfig.ControlConfig {
    /// Path of the socket unless the file has one.
    package static func standardSocket(_ environment: ConfigurationEnvironment) -> String {
        "\(environment.directory("RUNTIME_DIRECTORY", fallback: "/run/waypost"))/control.sock"
    }

    /// The socket that a configuration names, whatever else is wrong with it; the usual one where it names none.
    ///
    /// - Parameter path: of the file, whose drop-ins count too.
    package static func socket(in path: String, environment: ConfigurationEnvironment) -> String {
        let merged = AgentConfig.readableTables(path)
        let reader = ConfigurationReader(files: [path], environment: environment)
        return Self(reading: reader.root(merged).table("control")).socket
    }

    fileprivate init(reading table: TableReader) {
        socket = Self.standardSocket(table.environment)
        // The kernel's limit on the name of a Unix socket is 107 bytes.
        table.read(
            "socket", into: &socket,
            as: .text("an absolute path of at most 107 bytes") {
                $0.hasPrefix("/") && $0.utf8.count <= 107 ? nil : Mistake()
            })
        table.read("group", into: &group, as: .text("the name of a group"))
    }
}

extension AgentConfig.LogConfig {
    fileprivate init(reading table: TableReader) {
        table.read("level", into: &level, as: .word(Logger.Level.allCases.reversed().map { ($0.rawValue, $0) }))
        table.read("positions", into: &positions, as: .flag)
    }
}

extension ValueForm where Value == String {
    /// A name that goes over the wire and into paths of URLs.
    static var name: ValueForm {
        text("a name of at most 128 bytes") { $0.utf8.count <= 128 ? nil : Mistake() }
    }

    /// Relative paths would depend on where the daemon was started.
    static func absolutePath(_ what: String) -> ValueForm {
        text("the absolute path of \(what)") { $0.hasPrefix("/") ? nil : Mistake() }
    }
}
