import Configuration
import Protocols
import Sensors
import WaypostControl
import WaypostCore

/// The way to the servers and what waits for it: checks 20, 21 and 24; and two receivers on one name: check 25.
enum DeliveryChecks {
    private static let copiesShown = 3

    static func endpoints(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        if config.endpoints.isEmpty {
            return .ok(config.channels.isEmpty ? Status.noServer : "none is configured beside the live channels")
        }
        guard let reaches = evidence.reaches else {
            return .unknown("no endpoint was tried", evidence.waypost("doctor"))
        }
        let failures = reaches.filter { $0.failure != nil }
        if let failed = failures.first, let failure = failed.failure {
            let proxy = evidence.proxyVariables.isEmpty ? "" : "; waypost does not use \(evidence.proxyVariables[0])"
            let more = failures.count > 1 ? " (and \(failures.count - 1) more)" : ""
            let found = "\(failed.endpoint): \(failure.layer): \(failure.message)\(more)\(proxy)"
            let advice = advice(failed, failure, evidence)
            return failures.count == reaches.count ? .broken(found, advice) : .degraded(found, advice)
        }
        for endpoint in evidence.status?.endpoints ?? [] {
            // Credentials are a check of their own.
            if isAuth(endpoint) || endpoint.tokenProblem != nil { continue }
            if let problem = endpoint.problem {
                guard let layer = endpoint.problemLayer,
                    let reach = reaches.first(where: { $0.endpoint == endpoint.name })
                else {
                    return .degraded("\(endpoint.name): \(problem)", next(endpoint, evidence))
                }
                // The way is there now: what ends it now and then shows in a connection that stays.
                let advice = advice(reach, .init(layer: layer, message: problem), evidence)
                return .degraded("\(endpoint.name): \(layer): \(problem)", advice)
            }
            // After a restart nothing has failed yet.
            if endpoint.state != "active" {
                let reason = endpoint.reason.map { " (\($0))" } ?? ""
                return .degraded(
                    "\(endpoint.name): \(endpoint.state)\(reason), nothing is sent", next(endpoint, evidence))
            }
        }
        if let name = evidence.untried.first {
            return .unknown("\(name): the certificates or the key for it cannot be read", evidence.doctorAsRoot)
        }
        var ending = ""
        for reach in reaches {
            guard let expiry = Expiry(reach.stages.certificate, at: evidence.wallClock) else { continue }
            let words = "the certificate of \(reach.peer) \(expiry.words)"
            if expiry.isLate { return .degraded("\(reach.endpoint): \(words)", showCertificate(reach)) }
            ending = "; \(words)"
        }
        let slowest = reaches.map(\.milliseconds).max() ?? 0
        return .ok("\(reaches.count) \(reaches.count == 1 ? "answers" : "answer") within \(slowest) ms\(ending)")
    }

    /// The next step where the server itself, or the owner, has to be satisfied.
    private static func next(_ endpoint: EndpointStatus, _ evidence: Evidence) -> String {
        let name = endpoint.name.shellWord
        return switch endpoint.state {
        case "active": evidence.waypost("profile render --endpoint \(name)")
        case "rebind":
            evidence.waypost("endpoint bind \(name)\(endpoint.bindNeedsForce == true ? " --force" : "")")
                + "  # or put base_url and device back"
        case "taken": evidence.waypost("endpoint bind \(name)") + "  # takes it back"
        default: evidence.waypost("endpoint resume \(name)") + "  # once that is mended"
        }
    }

    /// What shows more of a way that ends early.
    static func advice(
        _ reach: Evidence.Reach, _ failure: Evidence.Reach.Failure, _ evidence: Evidence
    ) -> String {
        let isBroker = evidence.isBroker(reach.endpoint)
        return switch failure.layer {
        case "clock": evidence.showClock
        case "tls": showCertificate(reach)
        case "no route": "ip -brief address; ip route"
        case "closed" where isBroker, "broken" where isBroker, "timeout" where isBroker:
            "mosquitto_sub -d -h \(reach.bareHost.shellWord) -p \(reach.port) -t test  # shows CONNECT and CONNACK"
        case "request": "ping -M do -c 3 -s 1372 \(reach.bareHost.shellWord)  # 1400 bytes; then fewer"
        case "connect": "nc -vz \(reach.bareHost.shellWord) \(reach.port)  # refused: nothing listens there"
        default: "getent ahosts \(reach.bareHost.shellWord); ip route"
        }
    }

    private static func showCertificate(_ reach: Evidence.Reach) -> String {
        "openssl s_client -connect \(reach.peer.shellWord) </dev/null | openssl x509 -noout -subject -issuer -dates -fingerprint -sha256"
    }

    private static func isAuth(_ endpoint: EndpointStatus) -> Bool {
        endpoint.state == "paused" && endpoint.reason == "auth"
    }

    static func credentials(_ evidence: Evidence) -> Finding {
        guard let config = evidence.config else { return evidence.noConfiguration }
        for endpoint in evidence.status?.endpoints ?? [] {
            let auth = config.endpoints.first { $0.settings.name == endpoint.name }?.auth
            if let problem = problem(of: endpoint, isRenewed: auth?.givesToken ?? false, evidence) { return problem }
        }
        var count = 0
        for endpoint in config.endpoints {
            let name = endpoint.settings.name
            if let expiry = Expiry(evidence.clientCertificates[name], at: evidence.wallClock), expiry.isLate {
                let found = "\(name): our certificate \(expiry.words)"
                let advice = evidence.waypost("endpoint resume \(name.shellWord)") + "  # once it is renewed"
                return expiry.isPast ? .broken(found, advice) : .degraded(found, advice)
            }
            for (name, reference) in endpoint.secrets.sorted(by: { $0.key < $1.key }) {
                count += 1
                if let problem = problem(reference, evidence) {
                    return Finding(
                        state: problem.state, found: "\(endpoint.settings.name): secret \(name): \(problem.found)",
                        advice: problem.advice)
                }
            }
        }
        return .ok(count == 0 ? "none is needed" : "\(InWords.count(count, "secret")) in place")
    }

    /// What the daemon says of the credentials in use; nil = nothing is wrong with them.
    ///
    /// - Parameter isRenewed: a token that expires is fetched again by the daemon, when it has something to send.
    private static func problem(
        of endpoint: EndpointStatus, isRenewed: Bool, _ evidence: Evidence
    ) -> Finding? {
        let resume = evidence.waypost("endpoint resume \(endpoint.name.shellWord)")
        // Before what the server says: it refuses an old token for want of another.
        if let problem = endpoint.tokenProblem {
            let found = "\(endpoint.name): \(problem)"
            guard let left = endpoint.tokenExpires, left > 0 else {
                return .broken(found, "\(resume)  # asks for one at once")
            }
            return .degraded("\(found); the one in use \(Expiry.words(left))", "\(resume)  # asks for one at once")
        }
        if isAuth(endpoint) {
            let found = endpoint.problem ?? "the server refuses them"
            return .broken("\(endpoint.name): \(found)", "\(resume)  # once renewed")
        }
        guard !isRenewed, let left = endpoint.tokenExpires,
            let expiry = Expiry(left: left, validity: endpoint.tokenValidity), expiry.isLate
        else { return nil }
        let found = "\(endpoint.name): its token \(expiry.words)"
        let advice = "\(resume)  # once it is renewed"
        return expiry.isPast ? .broken(found, advice) : .degraded(found, advice)
    }

    /// nil = it can be used by the daemon, or that cannot be seen from outside of its unit.
    private static func problem(_ reference: Secret.Reference, _ evidence: Evidence) -> Finding? {
        switch reference {
        case .environment: return nil
        case .credential(let name):
            guard evidence.hasSystemd else {
                return .unknown("credential \(name) comes from systemd, which does not run here")
            }
            // systemd does not print what a unit loads, but root sees what it was given.
            let folder = "/run/credentials/waypost.service"
            let given = evidence.host.names(folder)
            // A unit that loads none has no folder, nor has one that does not run.
            if given == nil, evidence.host.exists(folder) || evidence.unit?["ActiveState"] != "active" {
                return .unknown("what its unit was given cannot be seen", evidence.doctorAsRoot)
            }
            if given?.contains(name) ?? false { return nil }
            return .broken(
                "its unit does not load credential \(name)",
                "sudo systemctl edit waypost  # [Service] LoadCredential=\(name):/etc/waypost/\(name)")
        case .file(let path):
            guard let file = evidence.host.permissions(path) else {
                return evidence.host.exists(path) || evidence.host.names(path.parentDirectory) == nil
                    ? .unknown("\(path) may not be looked at", evidence.doctorAsRoot)
                    : .broken("\(path) is not there", "ls -l \(path.parentDirectory.shellWord)")
            }
            if file.mode & 0o077 != 0 {
                return .broken("\(path) may be read by others", "sudo chmod 600 \(path.shellWord)")
            }
            guard let user = evidence.host.user(evidence.serviceUser) else { return nil }
            if user.id == 0 || (file.user == user.id && file.mode & 0o400 != 0) { return nil }
            let owner = evidence.serviceUser.shellWord
            return .broken("\(path) does not belong to \(owner)", "sudo chown \(owner) \(path.shellWord)")
        }
    }

    static func queue(_ evidence: Evidence) -> Finding {
        guard let path = evidence.config?.outbox.settings.path else { return evidence.noConfiguration }
        switch evidence.queue {
        case .damaged(let problems)?:
            return .broken(problems.first ?? "it is damaged", evidence.restartDaemon)
        case .unreadable(let reason)?: return .unknown(reason, evidence.doctorAsRoot)
        case nil: return .unknown("it was not looked at", "sudo \(evidence.waypost("queue verify"))")
        case .absent?: return .ok("there is none yet")
        case .sound(let words)?:
            let prefix = "\(path.split(separator: "/").last ?? "").corrupt-"
            let copies = (evidence.host.names(path.parentDirectory) ?? []).filter {
                $0.hasPrefix(prefix) && $0.dropFirst(prefix.utf8.count).allSatisfy(\.isNumber)
            }
            guard !copies.isEmpty else { return .ok(words) }
            let shown = copies.prefix(copiesShown).joined(separator: ", ")
            return .degraded(
                "copies of damaged or replaced queues are kept: \(shown)",
                "ls -l \(path.parentDirectory.shellWord)  # after a day, report or delete them")
        }
    }

    static func oneReceiver(_ evidence: Evidence) -> Finding {
        evidence.onLine { line in
            guard let noted = evidence.host.names("/run/udev/data") else {
                return .unknown("udev does not run, or may not be read")
            }
            let receivers = noted.filter { name in
                name.hasPrefix("c") && evidence.host.udevProperties(name)?["WAYPOST_GPS"] == "1"
            }
            guard receivers.count > 1, line.path == "/dev/waypost/gps" else {
                return .ok("\(line.path) names one receiver")
            }
            let found = "\(receivers.count) receivers share \(line.path)"
            guard let serial = line.usb?.serial, serial.utf8.allSatisfy(\.isPlain) else {
                return .degraded(found, "ls -l /dev/serial/by-path  # path of one of them")
            }
            return .degraded(found, "serial_number = \"\(serial)\"  # in [source], instead of path")
        }
    }
}

/// How long a certificate or a token is still valid, where that is worth a word.
private struct Expiry {
    private static let notice = 14 * 86_400.0
    /// Of its validity: what is valid for a few days is renewed late, and is well until then.
    private static let lateShare = 0.2

    private let left: Double
    let isLate: Bool

    /// nil = it is valid for long, or there is none.
    init?(_ certificate: CertificateDates?, at wallClock: Int64) {
        guard let certificate else { return nil }
        let until = Double(certificate.until)
        self.init(left: until - Double(wallClock) / 1000, validity: until - Double(certificate.from))
    }

    /// - Parameters:
    ///   - left: seconds; nil is returned when it is valid for long.
    ///   - validity: seconds from the issue to the end; nil = not known.
    init?(left: Double, validity: Double?) {
        guard left < Self.notice else { return nil }
        self.left = left
        isLate = validity.map { left < $0 * Self.lateShare } ?? true
    }

    var isPast: Bool { left < 0 }

    var words: String { Self.words(left) }

    static func words(_ left: Double) -> String {
        left < 0 ? "expired \(InWords.about(seconds: -left)) ago" : "expires in \(InWords.about(seconds: left))"
    }
}

extension Evidence {
    fileprivate func isBroker(_ endpoint: String) -> Bool {
        config?.endpoints.first { $0.settings.name == endpoint }?.settings.profile.isForBroker ?? false
    }
}

extension Evidence.Reach {
    /// As programs take it that look a name up.
    fileprivate var bareHost: String { String(host.trimming { $0 == "[" || $0 == "]" }) }

    fileprivate var port: Substring {
        peer[(peer.lastIndex(of: ":").map { peer.index(after: $0) } ?? peer.endIndex)...]
    }
}
