import Profiles
import WaypostCore

extension EndpointConfig {
    /// `data_tracking_config` holds the settings of an endpoint under NextBillion's names.
    static func all(
        _ tables: [(own: TableReader, vendor: TableReader)], device: String, profiles: ProfileLibrary
    ) -> [EndpointConfig] {
        var endpoints: [EndpointConfig] = []
        var read: [(name: String, primary: String?, table: TableReader)] = []
        for (table, vendor) in tables {
            let name = Self.name(table, isOnly: tables.count == 1)
            let endpoint = EndpointConfig(
                reading: table, vendor: vendor, name: name, device: device, profiles: profiles)
            if let name, endpoints.contains(where: { $0.settings.name == name }) {
                table.report("name", "found \(name.asTOML) again, expected a name that no other endpoint has")
            }
            if let endpoint {
                endpoints.append(endpoint)
                read.append((endpoint.settings.name, endpoint.settings.backupFor, table))
            }
        }
        checkBackups(read)
        return endpoints
    }

    private static func name(_ table: TableReader, isOnly: Bool) -> String? {
        guard isOnly else {
            if table.has("name") { return table.require("name", as: .shortName) }
            table.report(
                "name",
                "with two or more endpoints each needs a name: name = \"main\" for the one that had none so far, since what waits for it "
                    + "is kept under that name, and another, such as name = \"traccar\"", at: table.position)
            return nil
        }
        var name = "main"
        table.read("name", into: &name, as: .shortName)
        return name
    }

    private init?(
        reading table: TableReader, vendor: TableReader, name: String?, device: String, profiles: ProfileLibrary
    ) {
        let urlForm = ValueForm<String>.text(BaseURL.expectation) { text in
            if case .failure(let mistake) = BaseURL.parse(text) { mistake } else { nil }
        }
        let url = table.require(
            "base_url", as: urlForm, alias: .init("baseUrl", .bareHost(urlForm), in: vendor)
        ).flatMap { try? BaseURL.parse($0).get() }
        let profile = ProfileSuggestions(reading: table, profiles)

        var settings = EndpointSettings(name: name ?? "main", baseURL: url?.text ?? "", device: device)
        table.read("device", into: &settings.device, as: .name, note: "as [device]")
        settings.readBatches(table, vendor: vendor, profile)
        settings.readDelivery(table, vendor: vendor, profile)
        table.read("timeout", into: &settings.timeout, as: .duration(.between(1, 3600)), on: .reload)
        table.read("feed", into: &settings.feed, as: .word(EndpointSettings.Feed.allCases.map { ($0.rawValue, $0) }))
        table.read("required", into: &settings.required, as: .flag)
        table.read("backfill", into: &settings.backfill, as: .flag)
        settings.readMetered(table)
        let isBroker = profile.tree["mqtt"] != nil
        settings.readBroker(table, profile, isBroker: isBroker, isWebSocket: url?.isWebSocket ?? false)
        table.read("backup_for", into: &settings.backupFor, as: .shortName)
        var allowsPlaintext = false
        table.read("allow_plaintext", into: &allowsPlaintext, as: .flag, on: .reloadOfCredentials)

        self.init(settings: settings)
        profileTree = profile.tree
        table.read(
            "signing_clock", into: &signingClock, as: .word(SigningClock.allCases.map { ($0.rawValue, $0) }),
            on: .reloadOfCredentials)
        let own = readHeaders(table.table("headers"), hasAuth: table.has("auth"))
        let vars = readVars(table.table("vars"), profile, table)
        readRequest(table, allowsPlaintext: allowsPlaintext, vars: vars)
        compile(profile, vars, own, table, profiles)
        guard let url, name != nil else { return nil }
        checkTransport(table, url, isBroker: isBroker, profile)
        if !url.isEncrypted, !url.isLoopback {
            let holder = table.has("base_url") ? table : vendor
            let key = table.has("base_url") ? "base_url" : "baseUrl"
            let scheme = String(url.text.prefix { $0 != ":" })
            let plain = "found plain \(scheme) to \(url.host)"
            if carriesSecret, !allowsPlaintext {
                holder.report(key, "\(plain) with a secret, expected \(scheme)s (or allow_plaintext = true)")
            } else if !carriesSecret {
                holder.warn(key, "\(plain), expected \(scheme)s: anyone on the way can read and change the locations")
            }
        }
    }

    /// A backup is for an endpoint that has a cursor of its own.
    private static func checkBackups(_ endpoints: [(name: String, primary: String?, table: TableReader)]) {
        for (name, primary, table) in endpoints {
            guard let primary else { continue }
            guard primary != name, let found = endpoints.first(where: { $0.name == primary }) else {
                let others = endpoints.map(\.name).filter { $0 != name }
                let hint = primary == name ? nil : nearest(primary, in: others)
                table.report(
                    "backup_for",
                    "found \(primary == name ? "its own name" : primary.asTOML), expected the name of another endpoint"
                        + (hint.map { " (did you mean \($0.asTOML)?)" } ?? ""))
                continue
            }
            if let further = found.primary {
                table.report(
                    "backup_for",
                    "found \(primary.asTOML), which is itself the backup of \(further.asTOML), expected an endpoint "
                        + "that is not a backup")
            }
        }
    }
}

extension EndpointSettings {
    fileprivate mutating func readBatches(_ table: TableReader, vendor: TableReader, _ profile: ProfileSuggestions) {
        let whole = 1...10_000
        let mostRecords = profile.tree["max_records"]?.node.integer.flatMap { Int(exactly: $0) }
        let most = min(max(mostRecords ?? whole.upperBound, 1), whole.upperBound)
        var isClipped = false
        func clipped(_ form: ValueForm<Int>) -> ValueForm<Int> {
            form.map(
                to: {
                    isClipped = isClipped || $0 > most
                    return min($0, most)
                }, from: { $0 })
        }
        batchSize = min(batchSize, most)
        let limits = Limits.between(whole.lowerBound, whole.upperBound)
        table.read(
            "batch_size", into: &batchSize, as: clipped(.integer(limits)),
            alias: .init("dataUploadingBatchSize", clipped(.integer("a number of points", limits)), in: vendor),
            suggested: profile, note: batchSize < 100 ? profile.note : nil, on: .reload)
        if isClipped {
            let holder = table.has("batch_size") ? table : vendor
            holder.warn(
                table.has("batch_size") ? "batch_size" : "dataUploadingBatchSize",
                "found more than the \(most) locations that the profile \(profile.name) puts into a request: \(most) is used"
            )
        }
        table.read(
            "batch_window", into: &batchWindow, as: .duration(.between(0, 86_400)),
            alias: .init("dataUploadingBatchWindow", .bare("seconds", seconds: 1, .between(0, 86_400)), in: vendor),
            suggested: profile, on: .reload)
        table.read("min_batch", into: &minBatch, as: .integer(.between(1, whole.upperBound)), on: .reload)
        if minBatch > batchSize {
            table.report(
                ["min_batch", "batch_size"],
                "found a min_batch of \(minBatch) above the batch_size of \(batchSize), expected at most that")
        }
        gzip = false
        // What is signed are the bytes on the wire, so with a signature the default is no compression.
        let isSigned = table.has("sign") || profile.tree["sign"] != nil
        table.read(
            "compress", into: &gzip, as: .compression,
            suggested: isSigned ? ProfileSuggestions(name: profile.name, tree: ProfileNode(.table([]))) : profile)
    }

    fileprivate mutating func readDelivery(_ table: TableReader, vendor: TableReader, _ profile: ProfileSuggestions) {
        table.read(
            "delivery", into: &delivery, as: .word(Delivery.allCases.map { ($0.rawValue, $0) }), suggested: profile)
        maxAge = delivery == .latest ? .seconds(600) : nil
        table.read(
            "max_age", into: &maxAge, as: ValueForm<Duration>.duration(.between(1, 30 * 86_400)).orNone("off"),
            suggested: profile,
            note: delivery == .latest ? "with delivery = \"latest\"" : nil)
        table.read("fresh_head", into: &freshHead, as: .flag, suggested: profile, on: .reload)
        table.read(
            "on_collision", into: &onCollision, as: .word(OnCollision.allCases.map { ($0.rawValue, $0) }),
            alias: .init("shouldClearLocalDataWhenCollision", .clearsOnCollision, in: vendor), on: .reload)
    }
}

extension ValueForm where Value == Bool {
    fileprivate static var compression: ValueForm { .word([("gzip", true), ("none", false)]) }
}

extension ValueForm where Value == EndpointSettings.OnCollision {
    fileprivate static var clearsOnCollision: ValueForm {
        ValueForm<Bool>.flag.map(to: { $0 ? .clear : .keep }, from: { $0 == .clear })
    }
}

extension ValueForm where Value == String {
    /// NextBillion's iOS SDK takes a host where others take a URL.
    fileprivate static func bareHost(_ form: ValueForm<String>) -> ValueForm {
        var accepting = form
        accepting.read = { node, environment throws(Mistake) in
            var node = node
            if case .string(let text) = node.value, !text.contains("://"), !text.isEmpty {
                node.value = .string("https://" + text)
            }
            return try form.read(node, environment)
        }
        return accepting
    }
}
