import WaypostCore

/// A configuration that the seed made up, and its text.
struct WorldConfiguration {
    static let path = "/sim/outbox.db"

    var endpoints: [WorldEndpoint] = []
    /// Further lines of each endpoint's table.
    var lines: [[String]] = []
    private var fence = ""
    private var trackables: [String] = []
    /// Metres a second above which a profile refuses a row.
    private let fastest: Int
    /// What a profile calls a row, and by what its server does.
    private let fleetTime: String
    private let fleetNames: RowNaming
    /// Profiles have one more word in their bodies than before.
    private var hasMore = false
    /// Windows may be zero, collisions and previews reloaded, and backups are more frequent.
    private let isRich: Bool
    /// Whether the next endpoint is a broker; nil = none is.
    private let brokerDice: Dice?
    private let hasChannel: Bool
    var outbox: [String] = []
    /// The table of what a server may do from afar.
    var remote = ""
    var facts: OutboxConfigFacts
    var sampling: [String] = []

    init(dice: Dice, brokerDice: Dice?, hasChannel: Bool, isLong: Bool, isRich: Bool) {
        self.isRich = isRich
        self.brokerDice = brokerDice
        self.hasChannel = hasChannel
        let window = dice.pick([1, 5, 10, 10, 30])
        fastest = dice.pick([28, 28, 28, 4])
        fleetTime = dice.pick(["$time_iso", "$time_iso_s"])
        fleetNames = dice.pick([.time, .both])
        if dice.chance(0.12) { trackables = ["van", "box"] }
        facts = OutboxConfigFacts(maxRecords: nil, maxAge: .seconds(720 * 3600), commitWindow: .seconds(window))
        outbox.append("commit_window = \"\(window)s\"")
        outbox.append("on_full = \"\(dice.pick(["drop_oldest", "drop_newest", "thin"]))\"")
        if dice.chance(0.3) {
            facts.maxRecords = dice.pick([100, 100, 200, 500, 2000])
            outbox.append("max_records = \(facts.maxRecords ?? 0)")
        }
        if dice.chance(0.2) {
            let hours = dice.pick([1, 2, 24])
            facts.maxAge = .seconds(hours * 3600)
            outbox.append("max_age = \"\(hours)h\"")
        }
        if dice.chance(0.15) {
            facts.maxBytes = 1 << 20
            outbox.append("max_bytes = \"1MiB\"")
        }
        if dice.chance(0.5) { outbox.append("min_free = \"off\"") }
        for _ in 0..<dice.pick([1, 1, 2, 2, 3, 4]) { add(dice) }
        if dice.chance(0.3) {
            fence = """
                [[geofence]]
                id = "yard"
                center = { latitude = 52.5, longitude = 13.4 }
                radius = "\(dice.pick([150, 600]))m"
                dwell = "60s"
                """
        }
        if !endpoints.contains(where: { $0.required }) { require(0) }
        sampling = [
            "rule = \"\(dice.pick(["either", "either", "interval", "track-error", "both"]))\"",
            "min_gap = \"\(isLong ? 5 : 0)s\"",
        ]
    }

    private mutating func require(_ index: Int) {
        endpoints[index].required = true
        lines[index].removeAll { $0.hasPrefix("required") }
    }

    private mutating func add(_ dice: Dice) {
        let index = endpoints.count
        let names = ["alpha", "beta", "gamma", "delta"]
        guard let name = names.first(where: { name in !endpoints.contains { $0.name == name } }) else { return }
        var profile = dice.pick([
            "waypost", "waypost", "waypost", "waypost-compact", "waypost-compact", "transistor", "geojson", "csv",
            "narrow", "fleet", "yard",
        ])
        if isRich, index > 0, dice.chance(0.3) { profile = endpoints[0].profile }
        if brokerDice?.chance(0.6) == true { profile = "broker" }
        var endpoint = WorldEndpoint(name: name, profile: profile, identity: "\(name).example")
        var own: [String] = []
        if profile == "fleet" { endpoint.names = fleetNames }
        if profile == "yard" { endpoint.names = .place }
        if index > 0, dice.chance(0.35) {
            endpoint.required = false
            own.append("required = false")
        }
        if index > 0, dice.chance(isRich ? 0.3 : 0.15), profile != "broker",
            let primary = endpoints.first(where: { $0.backupFor == nil && $0.profile == profile })
        {
            endpoint.backupFor = primary.name
            endpoint.binds = primary.binds
            own.append("backup_for = \"\(primary.name)\"")
        } else {
            if dice.chance(0.15) {
                endpoint.isEngine = true
                own.append("feed = \"engine\"")
            }
            if dice.chance(0.12) {
                endpoint.freshHead = true
                own.append("fresh_head = true")
            } else if dice.chance(0.15) {
                endpoint.isLatest = true
                own.append("delivery = \"latest\"")
            }
            if dice.chance(0.1) { own.append("max_age = \"\(dice.pick(["5m", "1h"]))\"") }
            if profile == "waypost", dice.chance(0.3) {
                endpoint.binds = true
            }
            if dice.chance(0.5) {
                own.append("on_collision = \"\(dice.pick(["keep", "clear", "quarantine", "quarantine"]))\"")
            }
        }
        own.append("batch_size = \(dice.pick([1, 5, 30, 100, 300]))")
        own.append("batch_window = \"\(dice.pick((isRich ? [0] : []) + [5, 20, 60, 300, 400]))s\"")
        if dice.chance(endpoint.binds ? 0.5 : 0.2) {
            endpoint.hasToken = true
            own.append(Self.auth(name, client: 1))
        } else if profile != "broker", dice.chance(0.2) {
            own.append(
                dice.pick([
                    #"auth = { kind = "bearer", token = "env:SIM_SECRET" }"#,
                    #"auth = { kind = "basic", user = "sim", password = "env:SIM_SECRET" }"#,
                    #"auth = { kind = "header", name = "X-Key", key = "env:SIM_SECRET" }"#,
                    #"sign = { scheme = "github-hmac", secret = "env:SIM_SECRET" }"#,
                    #"sign = { scheme = "standard-webhooks", secret = "env:SIM_HOOK" }"#,
                    #"sign = { scheme = "aws-sigv4", region = "eu", service = "geo", access_key = "env:SIM_SECRET", "#
                        + #"secret_key = "env:SIM_SECRET", session_token = "env:SIM_SECRET" }"#,
                ]))
        }
        if dice.chance(0.3) { own.append("timeout = \"\(dice.pick([10, 30]))s\"") }
        if dice.chance(0.2) {
            own.append("metered_interfaces = [\"wwan*\"]")
            own.append("metered = \"\(dice.pick(["hold", "events-only", "send"]))\"")
        }
        endpoints.append(endpoint)
        lines.append(own)
    }

    /// Another configuration of the same asset.
    mutating func change(_ dice: Dice) {
        let index = dice.below(endpoints.count)
        switch dice.below(isRich ? 16 : 12) {
        case 14, 15: hasMore.toggle()
        case 12: changeCollision(index, dice)
        case 13: toggleFreshHead(index)
        case 10, 11: toggleSpare(index)
        case 8, 9: replace(index, "device", "device = \"sim-\(dice.from(1...3))\"")
        case 4: add(dice)
        case 5 where endpoints.count > 1: removeLast()
        case 6, 7:
            for index in endpoints.indices where endpoints[index].hasToken {
                replace(index, "auth", Self.auth(endpoints[index].name, client: dice.below(1000)))
            }
        case 0: replace(index, "batch_size", "batch_size = \(dice.pick([1, 3, 50, 100]))")
        case 1: replace(index, "batch_window", "batch_window = \"\(dice.pick((isRich ? [0] : []) + [3, 30, 120]))s\"")
        case 2 where index > 0:
            endpoints[index].required.toggle()
            lines[index].removeAll { $0.hasPrefix("required") }
            if !endpoints[index].required { lines[index].append("required = false") }
        case 2: replace(index, "timeout", "timeout = \"\(dice.pick([5, 20, 45]))s\"")
        default:
            // What is signed goes out as it is.
            guard !lines[index].contains(where: { $0.hasPrefix("sign") }), !endpoints[index].isBroker else { return }
            replace(index, "compress", "compress = \"\(dice.pick(["none", "gzip"]))\"")
        }
    }

    /// The address of an endpoint is another one, of the same server.
    mutating func move(_ dice: Dice) {
        let index = dice.below(endpoints.count)
        if !endpoints[index].isBroker { endpoints[index].isMoved.toggle() }
    }

    private mutating func changeCollision(_ index: Int, _ dice: Dice) {
        guard endpoints[index].backupFor == nil else { return }
        replace(index, "on_collision", "on_collision = \"\(dice.pick(["keep", "clear", "quarantine"]))\"")
    }

    private mutating func toggleFreshHead(_ index: Int) {
        guard endpoints[index].backupFor == nil, !endpoints[index].isLatest else { return }
        // A preview may be on its way when it ceases.
        endpoints[index].freshHead = true
        if lines[index].contains("fresh_head = true") {
            lines[index].removeAll { $0 == "fresh_head = true" }
        } else {
            lines[index].append("fresh_head = true")
        }
    }

    /// An endpoint begins to stand in for the first one, or ceases to.
    private mutating func toggleSpare(_ index: Int) {
        let isPrimary = endpoints.contains { $0.backupFor == endpoints[index].name }
        guard index > 0, !isPrimary, endpoints[index].profile == endpoints[0].profile, !endpoints[0].isBroker,
            endpoints[index].binds == endpoints[0].binds
        else { return }
        if endpoints[index].backupFor == nil {
            endpoints[index].backupFor = endpoints[0].name
            (endpoints[index].isEngine, endpoints[index].freshHead, endpoints[index].isLatest) = (false, false, false)
            lines[index].removeAll { line in
                ["feed", "fresh_head", "delivery", "max_age", "on_collision"].contains { line.hasPrefix($0) }
            }
            lines[index].append("backup_for = \"\(endpoints[0].name)\"")
        } else {
            endpoints[index].backupFor = nil
            lines[index].removeAll { $0.hasPrefix("backup_for") }
        }
        if !endpoints.contains(where: { $0.required && $0.backupFor == nil }) { require(0) }
    }

    private mutating func removeLast() {
        guard let last = endpoints.popLast() else { return }
        lines.removeLast()
        for index in endpoints.indices.reversed() where endpoints[index].backupFor == last.name {
            endpoints.remove(at: index)
            lines.remove(at: index)
        }
        if !endpoints.contains(where: { $0.required && $0.backupFor == nil }) { require(0) }
    }

    private static func auth(_ name: String, client: Int) -> String {
        #"auth = { kind = "oauth2", token_url = "https://issuer.example/\#(name)", client_id = "\#(client)", "#
            + #"client_secret = "env:SIM_SECRET" }"#
    }

    private mutating func replace(_ index: Int, _ key: String, _ line: String) {
        lines[index].removeAll { $0.hasPrefix(key) }
        lines[index].append(line)
    }

    var text: String {
        var text = """
            [device]
            id = "sim"
            [source]
            kind = "udp"
            port = 10110
            [control]
            socket = "/sim/control.sock"
            [tracking]
            trip_summary = true
            [sampling]
            \(sampling.joined(separator: "\n"))
            \(fence)
            \(trackables.map { "[[trackable]]\nid = \"\($0)\"" }.joined(separator: "\n"))
            [outbox]
            path = "\(Self.path)"
            \(outbox.joined(separator: "\n"))
            \(remote)
            [profile.bound]
            extends = "waypost"
            [profile.bound.bind]
            url = "${base_url}/bind"
            body = { device = "$device" }
            [profile.bound.probe]
            url = "${base_url}/probe"
            [profile.narrow]
            extends = "waypost"
            max_bytes = 4000
            require = ["speed_mps"]
            [profile.narrow.limits]
            speed_mps = { max = \(fastest) }
            [profile.fleet]
            url = "${base_url}/v1/t/${device}"
            max_records = 50
            max_bytes = 6000
            [profile.fleet.headers]
            Idempotency-Key = "${batch_id}"
            [profile.fleet.body]
            dev = "$device"
            outbox = "$outbox"
            who = "$trackable"
            n = "$batch_count"
            pts = "$records"
            \(hasMore ? "more = \"$batch_count\"" : "")
            [profile.fleet.record]
            seq = "$seq"
            ms = "$time_ms"
            at = "\(fleetTime)"
            p = ["$lon", "$lat"]
            v = "$speed_kmh:round1"
            event = "$event"
            note = "row\\t${seq}\\b\\f\\r\\u0001\\nof \\"${device}\\""
            batt = "$battery_pct|-1"
            [profile.fleet.response]
            ok_json = { path = "status", in = ["Ok"] }
            stored = "stored"
            collision = [{ status = [409], json = { path = "error", equals = "asset_taken" } }]
            [profile.fleet.response.item_errors]
            path = "errors"
            match = { at = "\(fleetTime)"\(fleetNames == .both ? ", seq = \"$seq\"" : "") }
            code = "code"
            retry_codes = ["busy"]
            auth_codes = ["who"]
            [profile.broker.mqtt]
            topic = "fleet/${device}/location"
            birth = [{ topic = "fleet/${device}/status", payload = "online", retain = true }]
            [profile.broker.on.geofence]
            topic = "fleet/${device}/crossing"
            [profile.broker.record]
            batch = "$batch_id"
            outbox = "$outbox"
            seq = "$seq"
            ms = "$time_ms"
            event = "$event"
            who = "$trackable"
            p = ["$lon", "$lat"]
            [profile.yard]
            url = "${base_url}/in?n=${batch_count}[?&boot=${batch_boot_id}]"
            geofence_actions = ["enter", "exit"]
            on = { heartbeat = "skip", geofence = { url = "${base_url}/fence" } }
            [profile.yard.probe]
            url = "${base_url}/probe"
            [profile.yard.headers]
            Idempotency-Key = "${batch_id}"
            X-First = "${first_seq}"
            [profile.yard.body]
            outbox = "$outbox"
            who = "$batch_trackable"
            newest = "$newest"
            pts = "$records"
            \(hasMore ? "more = \"$batch_count\"" : "")
            [profile.yard.record]
            seq = "$seq"
            ms = "$time_ms"
            times = ["$time_s", "$time_ns", "$time_s_float", "$time_iso_s", "$received_ms"]
            who = "$row_trackable"
            boot = "$row_boot_id"
            event = "$event"
            why = "$reason:upper"
            place = ["$lon_e7", "$lat_e7", "$altitude:ceil"]
            hdop = "$hdop"
            sat = "$satellites:string"
            fix = "$fix_mode"
            quality = "$quality:lower"
            kn = "$speed_knots:round3"
            mph = "$speed_mph:floor"
            course = "$bearing:int"
            km = "$odometer_km"
            motion = "$motion_word"
            moves = "$moving:bool01"
            battery = "${battery_state} ${battery_bs}"
            charge = "$battery_frac"
            external = "$external_power"
            charging = "$charging|false"
            fence = "$geofence_id"
            way = "$geofence_transition"
            seen = "$geofence_source"
            trip = ["$trip_distance|0", "$trip_duration|0", "$trip_max_speed|0", "$trip_end_ms"]
            package = "$published"
            [profile.yard.response.item_errors]
            path = "results"
            by = "index"
            code = "code"
            retry_codes = ["busy"]

            """
        if hasChannel {
            text += """
                [[channel]]
                auth = { kind = "bearer", token = "env:SIM_SECRET" }
                raw_locations = \(brokerDice != nil)

                """
        }
        for (endpoint, own) in zip(endpoints, lines) {
            text += """
                [[endpoint]]
                name = "\(endpoint.name)"
                base_url = "\(endpoint.isBroker ? "mqtts" : "https")://\(endpoint.host)\(endpoint.isMoved ? "/moved" : "")"
                profile = "\(endpoint.binds ? "bound" : endpoint.profile)"
                \(own.joined(separator: "\n"))

                """
        }
        return text
    }
}
