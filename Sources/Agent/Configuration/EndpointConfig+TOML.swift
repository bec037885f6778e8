import Delivery
import Positioning

extension EndpointConfig {
    /// `data_tracking_config` holds the settings of an endpoint under NextBillion's names.
    static func all(_ tables: [(own: TableReader, vendor: TableReader)], device: String) -> [EndpointConfig] {
        var endpoints: [EndpointConfig] = []
        for (table, vendor) in tables {
            let name = Self.name(table, isOnly: tables.count == 1)
            let endpoint = EndpointConfig(reading: table, vendor: vendor, name: name, device: device)
            if let name, endpoints.contains(where: { $0.settings.name == name }) {
                table.report("name", "found \(name.asTOML) again, expected a name that no other endpoint has")
            }
            if let endpoint { endpoints.append(endpoint) }
        }
        return endpoints
    }

    private static func name(_ table: TableReader, isOnly: Bool) -> String? {
        let form = ValueForm<String>.text("a name of 1 to 32 characters a-z, 0-9 and -") { name in
            let bare = name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
            return bare && name.utf8.count <= 32 ? nil : Mistake()
        }
        guard isOnly else { return table.require("name", as: form) }
        var name = "main"
        table.read("name", into: &name, as: form)
        return name
    }

    private init?(reading table: TableReader, vendor: TableReader, name: String?, device: String) {
        let urlForm = ValueForm<String>.text(BaseURL.expectation) { text in
            if case .failure(let mistake) = BaseURL.parse(text) { mistake } else { nil }
        }
        let url = table.require(
            "base_url", as: urlForm, alias: .init("baseUrl", .bareHost(urlForm), in: vendor)
        ).flatMap { try? BaseURL.parse($0).get() }

        var settings = EndpointSettings(name: name ?? "main", baseURL: url?.text ?? "", device: device)
        var profile = "waypost"
        table.read("profile", into: &profile, as: .word([("waypost", "waypost")]))
        table.read("device", into: &settings.device, as: .name)
        let whole = 1...10_000
        table.read(
            "batch_size", into: &settings.batchSize, as: .integer(.between(whole.lowerBound, whole.upperBound)),
            alias: .init(
                "dataUploadingBatchSize", .integer("a number of points", .between(whole.lowerBound, whole.upperBound)),
                in: vendor))
        table.read(
            "batch_window", into: &settings.batchWindow, as: .duration(.between(0, 86_400)),
            alias: .init("dataUploadingBatchWindow", .bare("seconds", seconds: 1, .between(0, 86_400)), in: vendor))
        table.read("min_batch", into: &settings.minBatch, as: .integer(.between(1, whole.upperBound)))
        if settings.minBatch > settings.batchSize {
            table.report(
                table.has("min_batch") ? "min_batch" : "batch_size",
                "found a min_batch of \(settings.minBatch) above the batch_size of \(settings.batchSize), "
                    + "expected at most that")
        }
        table.read("timeout", into: &settings.timeout, as: .duration(.between(1, 3600)))
        table.read("feed", into: &settings.feed, as: .word(EndpointSettings.Feed.allCases.map { ($0.rawValue, $0) }))
        table.read("required", into: &settings.required, as: .flag)
        table.read("backfill", into: &settings.backfill, as: .flag)
        table.read("compress", into: &settings.gzip, as: .word([("gzip", true), ("none", false)]))
        settings.readMetered(table)
        var onCollision = "keep"
        table.read(
            "on_collision", into: &onCollision, as: .word([("keep", "keep")]),
            alias: .init("shouldClearLocalDataWhenCollision", .keepOnCollision, in: vendor))
        var allowsPlaintext = false
        table.read("allow_plaintext", into: &allowsPlaintext, as: .flag)
        table.refuse([
            "delivery", "max_age", "vars", "backup_for", "fresh_head", "verbose",
            "sign", "tls",
        ])

        self.init(settings: settings)
        readRequest(table)
        guard let url, name != nil else { return nil }
        if !url.isEncrypted, !url.isLoopback {
            let holder = table.has("base_url") ? table : vendor
            let key = table.has("base_url") ? "base_url" : "baseUrl"
            let plain = "found plain http to \(url.host)"
            if carriesSecret, !allowsPlaintext {
                holder.report(key, "\(plain) with a secret, expected https (or allow_plaintext = true)")
            } else if !carriesSecret {
                holder.warn(key, "\(plain), expected https: anyone on the way can read and change the locations")
            }
        }
    }
}

extension ValueForm where Value == String {
    /// NextBillion's iOS SDK takes a host where others take a URL.
    fileprivate static func bareHost(_ form: ValueForm<String>) -> ValueForm {
        var accepting = form
        accepting.read = { node, environment in
            var node = node
            if case .string(let text) = node.value, !text.contains("://"), !text.isEmpty {
                node.value = .string("https://" + text)
            }
            return form.read(node, environment)
        }
        return accepting
    }

    fileprivate static var keepOnCollision: ValueForm {
        ValueForm(
            expected: "false: this build always keeps the rows",
            read: { node, _ in
                if case .boolean(false) = node.value { .value("keep") } else { .mistake(Mistake()) }
            },
            render: \.asTOML)
    }
}
