import Profiles
import Queue
import WaypostControl
import WaypostCore

/// What an operator wants done with an endpoint or with the rows of the quarantine: judged by the same rules with
/// and without a daemon.
package struct OperatorOrders: Hashable {
    /// In the order in which they are carried out, all in one commit.
    package var queue: [QueueOrder] = []
    /// The endpoint whose pause or stop ends.
    package var resumes: String?
    /// The endpoint whose rows get another binding, or none.
    package var rebinds: String?
    /// The server is to be asked first to bind the asset to this device, where its profile knows how.
    package var asksServer = false
    /// Rows may be lost, so only root and the daemon's user may do it.
    var needsOwner = false

    /// - Parameters:
    ///   - endpoints: the configured ones.
    ///   - depths: what the queue says of them.
    /// - Throws: `ControlError` that says what to do instead.
    package init(
        _ frame: RequestFrame, endpoints: [EndpointSettings], depths: [EndpointDepth]
    ) throws(ControlError) {
        if frame.verb == Verb.quarantine.rawValue {
            try self.init(try frame.read() as QuarantineRequest)
        } else {
            try self.init(try frame.read() as EndpointRequest, endpoints, depths)
        }
    }

    private init(
        _ request: EndpointRequest, _ endpoints: [EndpointSettings], _ depths: [EndpointDepth]
    ) throws(ControlError) {
        switch request.action {
        case "bind": try bind(request, endpoints, depths)
        case "resume": try resume(request, endpoints, depths)
        case "drop": try drop(request, endpoints, depths)
        case "forget": try forget(request, endpoints)
        case let action: throw Self.unknown(action, of: .endpoint, "list, test, bind, resume, drop, forget")
        }
    }

    private init(_ request: QuarantineRequest) throws(ControlError) {
        switch request.action {
        case "retry": queue = [.retryQuarantined(endpoint: request.endpoint, ids: try Self.rows(request))]
        case "drop":
            queue = [.dropQuarantined(endpoint: request.endpoint, ids: try Self.rows(request))]
            needsOwner = true
        case let action: throw Self.unknown(action, of: .quarantine, "retry, drop")
        }
    }

    private static func unknown(_ action: String?, of verb: Verb, _ known: String) -> ControlError {
        ControlError(
            "bad-request", "unknown action \"\(action?.cut(toBytes: 40) ?? "")\" of \(verb.rawValue)", hint: known)
    }

    private mutating func bind(
        _ request: EndpointRequest, _ endpoints: [EndpointSettings], _ depths: [EndpointDepth]
    ) throws(ControlError) {
        let (settings, depth) = try Self.endpoint(request.endpoint, endpoints, depths)
        let name = settings.name
        switch depth.state {
        case .taken, .paused(EndpointState.notBound): break
        case .rebind:
            guard Self.bindNeedsForce(settings, depth) else { break }
            guard request.force == true else {
                throw ControlError(
                    "unreported-data",
                    "\(depth.waiting + depth.inFlight) locations of another device or asset wait for endpoint \"\(name)\"",
                    hint: "sudo waypost endpoint bind \(name) --force \(Self.fate(settings.onCollision)); "
                        + "sudo waypost endpoint drop \(name) gives them up; or put the old device or asset_id back")
            }
            switch settings.onCollision {
            case .keep: break
            case .quarantine:
                queue.append(.quarantine(endpoint: name, Refusal(reason: "rebound")))
            case .clear: queue.append(.clear(endpoint: name))
            }
        case .active, .paused, .stopped:
            // Where the profile can ask for it, a new device is bound this way before its first upload.
            guard !settings.profile.canBind else { break }
            throw ControlError(
                "nothing-to-bind", "endpoint \"\(name)\" is already bound",
                hint: depth.state == .active ? nil : "waypost endpoint resume \(name) ends a pause or a stop")
        }
        queue.append(.bind(endpoint: name))
        rebinds = name
        asksServer = true
        needsOwner = true
    }

    private mutating func resume(
        _ request: EndpointRequest, _ endpoints: [EndpointSettings], _ depths: [EndpointDepth]
    ) throws(ControlError) {
        let (settings, depth) = try Self.endpoint(request.endpoint, endpoints, depths)
        switch depth.state {
        case .active, .paused, .stopped: resumes = settings.name
        case .taken, .rebind:
            throw ControlError(
                "refused", "endpoint \"\(settings.name)\" needs a bind, not a resume",
                hint: "\(Self.bindCommand(settings, depth)), or sudo waypost endpoint drop \(settings.name)")
        }
    }

    private mutating func drop(
        _ request: EndpointRequest, _ endpoints: [EndpointSettings], _ depths: [EndpointDepth]
    ) throws(ControlError) {
        let (settings, depth) = try Self.endpoint(request.endpoint, endpoints, depths)
        guard depth.state == .rebind || depth.state == .taken else {
            throw ControlError(
                "refused", "no rows of an old binding wait for endpoint \"\(settings.name)\"",
                hint: "drop gives up rows only while the endpoint is held as taken or rebind")
        }
        queue = [.drop(endpoint: settings.name)]
        rebinds = settings.name
        needsOwner = true
    }
}

extension OperatorOrders {
    private mutating func forget(
        _ request: EndpointRequest, _ endpoints: [EndpointSettings]
    ) throws(ControlError) {
        guard let name = request.endpoint else {
            throw ControlError("endpoint-missing", "no endpoint is named", hint: "one that is no longer configured")
        }
        if endpoints.contains(where: { $0.name == name }) {
            throw ControlError(
                "refused", "endpoint \"\(name)\" is configured",
                hint: "take it out of the configuration and restart the daemon first")
        }
        queue = [.forget(endpoint: name)]
        needsOwner = true
    }

    /// Rows of another device or asset wait.
    static func bindNeedsForce(_ settings: EndpointSettings, _ depth: EndpointDepth?) -> Bool {
        guard let depth, depth.state == .rebind, depth.waiting + depth.inFlight > 0, let boundTo = depth.boundTo else {
            return false
        }
        return !settings.hasIdentity(of: boundTo)
    }

    /// The whole command that binds it as it is now.
    static func bindCommand(_ settings: EndpointSettings, _ depth: EndpointDepth?) -> String {
        "sudo waypost endpoint bind \(settings.name)" + (bindNeedsForce(settings, depth) ? " --force" : "")
    }

    private static func fate(_ rule: EndpointSettings.OnCollision) -> String {
        switch rule {
        case .keep: "sends them under the new name"
        case .quarantine: "puts them into quarantine"
        case .clear: "deletes them"
        }
    }

    private static func endpoint(
        _ wanted: String?, _ endpoints: [EndpointSettings], _ depths: [EndpointDepth]
    ) throws(ControlError) -> (EndpointSettings, EndpointDepth) {
        let settings = try configured(wanted, endpoints)
        let depth = depths.first { $0.endpoint == settings.name }
        guard settings.backupFor == nil, let depth else {
            throw ControlError(
                "refused", "endpoint \"\(settings.name)\" has no rows of its own",
                hint: settings.backupFor.map { "it stands in for \"\($0)\": name that one" })
        }
        return (settings, depth)
    }

    static func configured(
        _ wanted: String?, _ endpoints: [EndpointSettings]
    ) throws(ControlError) -> EndpointSettings {
        guard !endpoints.isEmpty else {
            throw ControlError(
                "unknown-endpoint", "no server is configured yet", hint: "sudo waypost init asks for one")
        }
        let names = endpoints.prefix(20).map(\.name).joined(separator: ", ")
        if let wanted {
            if let found = endpoints.first(where: { $0.name == wanted }) { return found }
            throw ControlError(
                "unknown-endpoint", "no endpoint \"\(wanted.cut(toBytes: 40))\"", hint: "known: \(names)")
        }
        let own = endpoints.filter { $0.backupFor == nil }
        guard let only = own.first, own.count == 1 else {
            throw ControlError("endpoint-missing", "no endpoint is named", hint: "known: \(names)")
        }
        return only
    }

    /// `all` has to be explicit: a forgotten id must not mean every row.
    private static func rows(_ request: QuarantineRequest) throws(ControlError) -> [Int64] {
        let ids = request.ids ?? []
        guard ids.isEmpty == (request.all == true) else {
            throw ControlError(
                "bad-request", ids.isEmpty ? "no row is named" : "give ids or all, not both",
                hint: "--id N of `waypost quarantine list`, or --all")
        }
        return ids
    }

    /// What became of `queue`; the last order is the one that was asked for.
    package static func reply(_ results: [OrderResult]) throws(ControlError) -> OrderReply {
        for result in results {
            if case .refused(let reason) = result { throw ControlError("refused", reason) }
        }
        var rows = 0
        var (first, last): (Int64?, Int64?)
        for case .done(let count, let from, let through) in results {
            rows += count
            first = [first, from].compactMap { $0 }.min()
            last = [last, through].compactMap { $0 }.max()
        }
        var reply = OrderReply()
        reply.rows = rows
        reply.firstSeq = first
        reply.lastSeq = last
        return reply
    }
}
