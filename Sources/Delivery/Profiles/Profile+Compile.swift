import Positioning

extension Profile {
    /// Makes a resolved profile ready for one endpoint, or tells everything that is wrong with it.
    ///
    /// - Parameters:
    ///   - tree: what `resolve` gave.
    ///   - constants: what the templates may name of the endpoint.
    public static func compile(
        _ name: String, tree: ProfileNode, constants: ProfileConstants
    ) -> Result<Profile, ProfileProblems> {
        guard case .table(let members) = tree.value else {
            return .failure(ProfileProblems([tree.misplaced("", expected: "a table")]))
        }
        var compiler = ProfileCompiler(constants: constants)
        compiler.checkKeys(members)
        let encoding = compiler.encoding(tree)
        compiler.isASCII = compiler.flag(tree, "ascii") ?? false
        compiler.maxRecords = compiler.maxRecords(tree, encoding)
        var parts = CompiledProfile.Parts()
        parts.encoding = encoding
        parts.isASCII = compiler.isASCII
        parts.method = compiler.method(tree, "method")
        parts.contentType = compiler.contentType(tree) ?? encoding.contentType

        // Only what is named from here on decides bytes of a body.
        parts.columns = compiler.columns(tree, encoding)
        parts.variants = [compiler.variant(tree, encoding, "", over: nil)]
        compiler.overrides(tree, encoding, into: &parts)
        let body = compiler.named
        compiler.named = NamedReferences()
        compiler.urls(tree, into: &parts)
        parts.headers = compiler.headers(tree, encoding)
        let outside = compiler.named

        parts.geofenceActions = compiler.geofenceActions(tree)
        parts.require = compiler.require(tree)
        parts.limits = compiler.limits(tree)
        parts.bind = compiler.bind(tree)
        parts.vars = constants.vars
        parts.shared = outside.records
        parts.namesTrackable = (body + outside).namesTrackable
        let maxBytes = compiler.integer(tree, "max_bytes", in: 1...64 << 20)
        let response = compiler.response(tree)
        guard compiler.problems.isEmpty else { return .failure(ProfileProblems(compiler.problems)) }

        let rendering = Digest(bodyOf: members, encoding, body.constants)
        let identity = Digest(whole: tree, constants)
        var profile = Profile(
            name: name, rendering: "\(name)/\(rendering.text)", response: response, maxRecords: compiler.maxRecords,
            maxBytes: maxBytes ?? 1 << 20,
            gathersTrackables: compiler.maxRecords != 1
                && (outside.records.contains(.trackable) || compiler.bodyNamesTrackable),
            usesNewest: body.batch.contains(.newest),
            usesSecrets: body.hasSecret || outside.hasSecret || compiler.named.hasSecret)
        profile.compiled = CompiledProfile(parts, identity: identity.text)
        return .success(profile)
    }
}

extension NamedReferences {
    fileprivate var namesTrackable: Bool {
        records.contains(.trackable) || records.contains(.rowTrackable) || records.contains(.location)
            || batch.contains(.trackable)
    }
}

/// FNV-1a, 64 bits: tells renderings apart, and is nothing to keep a secret with.
private struct Digest {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325

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

    /// The names of secrets are left out: those that count stand in the tree.
    init(whole tree: ProfileNode, _ constants: ProfileConstants) {
        add(tree)
        for text in [constants.endpoint, constants.baseURL, constants.device, constants.agentVersion] { add(text) }
        add(constants.vars)
        add(constants.hasToken ? "token" : "")
    }

    var text: String {
        let digits = String(state, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    private mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        // No byte of UTF-8: keeps "ab" + "c" apart from "a" + "bc".
        add(0xFF)
    }

    private mutating func add(_ byte: UInt8) { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }

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
