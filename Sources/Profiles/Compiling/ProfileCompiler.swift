import WaypostCore

extension Profile {
    /// Makes a resolved profile ready for one endpoint, or reports everything that is wrong with it.
    ///
    /// - Parameters:
    ///   - tree: what `resolve` gave.
    ///   - constants: what the templates may name of the endpoint.
    package static func compile(
        _ name: String, tree: ProfileNode, constants: ProfileConstants
    ) -> Result<Profile, ProfileProblems> {
        guard case .table(let members) = tree.value else {
            return .failure(ProfileProblems([tree.misplaced("", expected: "a table")]))
        }
        return ProfileCompiler(tree: tree, members: members, constants: constants).profile(name)
    }
}

private struct ProfileCompiler {
    let tree: ProfileNode
    let members: [ProfileNode.Member]
    let constants: ProfileConstants
    let reader = ProfileReader()

    /// Keys of a profile that the configuration reads itself.
    private static let suggestionKeys = [
        "extends", "auth", "sign", "compress", "batch_size", "batch_window", "min_batch", "delivery", "max_age",
        "fresh_head", "vars", "secrets", "publish_rate", "keepalive", "no_subscriber",
    ]
    private static let ownKeys = [
        "method", "url", "headers", "encoding", "content_type", "ascii", "max_records", "max_bytes", "record", "body",
        "line", "columns", "on", "geofence_actions", "require", "without_position",
        "limits", "response", "bind", "probe", "mqtt",
    ]

    func profile(_ name: String) -> Result<Profile, ProfileProblems> {
        reader.checkKeys(members, Self.ownKeys + Self.suggestionKeys)
        let encoding =
            tree.member("encoding").flatMap { reader.word($0.node, "encoding") } ?? CompiledProfile.Encoding.json
        var parts = CompiledProfile.Parts()
        parts.encoding = encoding
        parts.isASCII = reader.flag(tree, "ascii") ?? false
        let maxRecords = maxRecords(encoding)
        let mqtt = tree.member("mqtt")?.node
        // What is known of one row is known of a message with one row.
        let together = mqtt.map { BrokerCompiler.rowsPerMessage($0, reader) } ?? maxRecords
        let names = ReferenceResolver(constants, maxRecords: together)
        let templates = TemplateCompiler(reader: reader, names: names, isASCII: parts.isASCII)
        var requests = RequestCompiler(encoding, maxRecords: together, templates)
        if let mqtt { checkBroker(mqtt, encoding) }
        parts.method = requests.method(tree, "method")
        parts.contentType = requests.contentType(tree) ?? encoding.contentType

        // Only what is named here decides bytes of a body.
        let body = names.named {
            parts.columns = columns(encoding)
            parts.variants = [requests.variant(tree)]
            requests.overrides(tree, into: &parts)
        }.named
        let outside = names.named {
            if let mqtt {
                topics(mqtt, templates, into: &parts)
            } else {
                requests.urls(tree, into: &parts)
                parts.headers = requests.headers(tree)
            }
        }.named
        parts.geofenceActions = geofenceActions()
        parts.require = require()
        parts.withoutPosition = withoutPosition(encoding)
        parts.limits = LimitCompiler(reader: reader, constants: constants).limits(tree)
        let plain = names.named { (requests.plain(tree, "bind"), requests.plain(tree, "probe", method: "GET")) }
        (parts.bind, parts.probe) = plain.value
        parts.vars = constants.vars
        parts.shared = outside.records
        parts.namesTrackable = (body + outside).namesTrackable
        let maxBytes = reader.integer(tree, "max_bytes", in: 1...64 << 20)
        let response = ResponseCompiler(reader: reader, names: names).rules(tree)
        guard reader.problems.isEmpty else { return .failure(ProfileProblems(reader.problems)) }

        let rendering = Digest(bodyOf: members, encoding, body.constants)
        let identity = Digest(whole: tree, constants)
        var profile = Profile(
            name: name, rendering: "\(name)/\(rendering.text)", response: response, maxRecords: maxRecords,
            maxBytes: maxBytes ?? 1 << 20,
            gathersTrackables: together != 1
                && (outside.records.contains(.trackable) || requests.bodyNamesTrackable),
            usesNewest: body.batch.contains(.newest),
            usesSecrets: body.hasSecret || outside.hasSecret || plain.named.hasSecret)
        profile.compiled = CompiledProfile(parts, identity: identity.text)
        return .success(profile)
    }

    private func checkBroker(_ mqtt: ProfileNode, _ encoding: CompiledProfile.Encoding) {
        for key in ["method", "url", "headers", "content_type", "bind", "probe", "response"] {
            guard let member = tree.member(key) else { continue }
            reader.report(
                key, "found it beside mqtt, which has no such thing", at: member.position ?? member.node.position)
        }
        guard encoding.isSingle else { return }
        reader.report(
            "encoding", "found \(encoding.rawValue), which is of HTTP, expected another one for messages",
            at: tree.member("encoding")?.node.position)
    }

    private func topics(
        _ mqtt: ProfileNode, _ templates: TemplateCompiler, into parts: inout CompiledProfile.Parts
    ) {
        let compiler = BrokerCompiler(mqtt, templates)
        parts.broker = compiler.broker()
        guard let topic = compiler.topic(mqtt.member("topic")?.node, .url, "mqtt.topic") else { return }
        for index in parts.variants.indices { parts.variants[index].url = topic }
        for event in LocationEvent.allCases {
            guard case .variant(let index)? = parts.choices[event],
                let node = tree.member("on")?.node.member(event.rawValue)?.node.member("topic")?.node,
                let own = compiler.topic(node, .url, "on.\(event.rawValue).topic")
            else { continue }
            parts.variants[index].url = own
        }
    }

    private func maxRecords(_ encoding: CompiledProfile.Encoding) -> Int? {
        let given = reader.integer(tree, "max_records", in: 1...100_000)
        guard encoding.isSingle else { return given }
        if let given, given > 1, let member = tree.member("max_records") {
            reader.report(member.node, "max_records", expected: "1 with encoding = \"\(encoding.rawValue)\"")
        }
        return 1
    }

    private func columns(_ encoding: CompiledProfile.Encoding) -> [CompactColumn] {
        let expected = "a list of columns"
        guard let member = tree.member("columns"), let list = reader.strings(member.node, "columns", expected: expected)
        else {
            return encoding == .compact ? CompactColumn.standard : []
        }
        if encoding != .compact {
            reader.report(
                "columns", "found columns with encoding = \"\(encoding.rawValue)\", expected encoding = \"compact\"",
                at: member.position ?? member.node.position)
        }
        var columns = CompactColumn.standard
        let names = CompactColumn.further.map(\.name.rawValue)
        for (index, (node, text)) in list.enumerated() {
            if let column = CompactColumn.further.first(where: { $0.name.rawValue == text }) {
                if !columns.contains(column) { columns.append(column) }
            } else if !columns.contains(where: { $0.title == text }) {
                reader.report(
                    node, "columns[\(index)]", expected: "one of \(names.joined(separator: ", "))",
                    suggestion: nearest(text, in: names).map { "\"\($0)\"" })
            }
        }
        return columns
    }

    private func geofenceActions() -> Set<GeofenceCrossing.Action>? {
        guard let member = tree.member("geofence_actions") else { return nil }
        guard case .array(let items) = member.node.value else {
            reader.report(member.node, "geofence_actions", expected: "a list of \"enter\", \"exit\", \"dwell\"")
            return nil
        }
        var actions: Set<GeofenceCrossing.Action> = []
        for (index, item) in items.enumerated() {
            if let action: GeofenceCrossing.Action = reader.word(item, "geofence_actions[\(index)]") {
                actions.insert(action)
            }
        }
        return actions
    }

    /// Only JSON leaves out what is unknown by itself.
    private func withoutPosition(_ encoding: CompiledProfile.Encoding) -> Set<LocationEvent> {
        let key = "without_position"
        guard let member = tree.member(key),
            let list = reader.strings(member.node, key, expected: "a list of events")
        else { return [] }
        guard encoding == .json || encoding == .ndjson else {
            reader.report(
                key, "found it with encoding = \"\(encoding.rawValue)\", expected json or ndjson",
                at: member.node.position)
            return []
        }
        return Set(list.enumerated().compactMap { index, item in reader.word(item.0, "\(key)[\(index)]") })
    }

    private func require() -> [RecordName] {
        guard let member = tree.member("require"),
            let list = reader.strings(member.node, "require", expected: "a list of names")
        else { return [] }
        let names = RecordName.allCases.map(\.rawValue)
        var required: [RecordName] = []
        for (index, (node, text)) in list.enumerated() {
            if let name = RecordName(rawValue: text), name != .location {
                required.append(name)
            } else {
                reader.report(
                    node, "require[\(index)]", expected: "the name of a value of a record",
                    suggestion: nearest(text, in: names).map { "\"\($0)\"" })
            }
        }
        return required
    }
}

extension NamedReferences {
    fileprivate var namesTrackable: Bool {
        records.contains(.trackable) || records.contains(.rowTrackable) || records.contains(.location)
            || batch.contains(.trackable)
    }
}

/// FNV-1a, 64 bits: distinguishes renderings, and protects no secret.
private struct Digest {
    private var hash = FNV1a()

    /// What decides the bytes of a body.
    init(bodyOf members: [ProfileNode.Member], _ encoding: CompiledProfile.Encoding, _ constants: [String: String]) {
        let deciding = ["ascii", "record", "body", "line", "columns", "on", "geofence_actions"]
        add(String(Profile.rendererVersion))
        add(encoding.rawValue)
        for member in members where deciding.contains(member.name) {
            add(member.name)
            add(member.node)
        }
        add(constants)
    }

    /// The names of secrets are left out: those that count are in the tree.
    init(whole tree: ProfileNode, _ constants: ProfileConstants) {
        add(tree)
        for text in [constants.endpoint, constants.baseURL, constants.device, constants.agentVersion] { add(text) }
        add(constants.vars)
        add(constants.hasToken ? "token" : "")
    }

    var text: String {
        let digits = String(hash.value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    private mutating func add(_ text: String) {
        for byte in text.utf8 { hash.add(byte) }
        // No byte of UTF-8: keeps "ab" + "c" apart from "a" + "bc".
        hash.add(0xFF as UInt8)
    }

    private mutating func add(_ constants: [String: String]) {
        for (name, value) in constants.sorted(by: { $0.key < $1.key }) {
            add(name)
            add(value)
        }
    }

    private mutating func add(_ node: ProfileNode) {
        switch node.value {
        case .table(let members):
            add("{")
            for member in members {
                add(member.name)
                add(member.node)
            }
            add("}")
        case .array(let items):
            add("[")
            for item in items { add(item) }
            add("]")
        case .string(let text): add("\"\(text)")
        case .integer(let number): add("i\(number)")
        case .float(let number): add("f\(number)")
        case .boolean(let flag): add("b\(flag)")
        }
    }
}
