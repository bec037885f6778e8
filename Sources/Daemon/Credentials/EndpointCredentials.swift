import Configuration
import Delivery
import Glibc
import Hash
import Network
import Profiles
import Protocols
import WaypostCore
import WaypostHost

/// Why an attempt cannot be made now: a credential is missing, or a clock that a signature needs is wrong.
struct CredentialProblem: Error, Hashable {
    /// For people; never the secret.
    var message: String
    /// The clock of this device is the cause.
    var isClock = false
    /// There is no token, and no issuer has refused one. If neither flag is set, a person has to renew the credential.
    var isTransient = false
}

/// What it means that a server refuses who this device says it is.
struct CredentialRefusal: Hashable {
    /// For people.
    var words: String
    /// Which credential to check, and where it is; nil = there is none.
    var cure: String?
}

/// What the requests of one endpoint need beside rows: secrets, the token of a command, signatures.
final class EndpointCredentials {
    /// Seconds: from so long before a client certificate expires, that is logged once a day.
    private static let expiryNotice: Int64 = 14 * 86_400
    private static let expiryPause = Duration.seconds(86_400)
    /// A token in a file is read again in this last part of its validity, and seconds before its end at the latest.
    private static let lateShare = 0.2
    private static let lateLeast = 60.0
    /// A connection is kept for two batch windows, at least this long.
    private static let idleLeast = Duration.seconds(30)

    /// The clocks that a signature may take its time from. Tests have their own.
    struct Clock {
        /// Host wall clock, Unix milliseconds.
        var hostMs: () -> Int64
        /// A time service vouches for it.
        var isSynchronised: () -> Bool
        /// Newest time of the receiver plus what has passed since, Unix milliseconds; nil = unknown.
        var receiverMs: (EventTime) -> Int64?

        init(
            hostMs: @escaping () -> Int64, isSynchronised: @escaping () -> Bool,
            receiverMs: @escaping (EventTime) -> Int64?
        ) {
            self.hostMs = hostMs
            self.isSynchronised = isSynchronised
            self.receiverMs = receiverMs
        }

        init(host: any Host, receiver: ReceiverClock) {
            self.init(
                hostMs: { host.wallClockMs }, isSynchronised: { host.isClockSynchronised },
                receiverMs: { receiver.time(at: $0)?.milliseconds })
        }
    }

    private let config: EndpointConfig
    private let variables: [String: String]
    private let log: AgentLog
    private let clock: Clock
    let tls: TLSSettings?
    private var values: [String: String] = [:]
    private var source: TokenSource?
    private var token: String?
    private var expiryCheckedAt: EventTime?
    private var fixedLogged = false

    /// - Parameters:
    ///   - environment: of the process.
    ///   - stateDirectory: where a refresh token is kept that the issuer has changed.
    init(
        _ config: EndpointConfig, environment: [String: String] = [:], stateDirectory: String = "/var/lib/waypost",
        uplink: any Uplink, log: AgentLog, loop: EventLoop, clock: Clock? = nil
    ) {
        self.config = config
        self.log = log
        self.clock = clock ?? Clock(host: loop.host, receiver: ReceiverClock())
        variables = environment
        tls = config.tls.map { tls in
            func path(_ reference: Secret.Reference?) -> String? {
                reference.flatMap { Secret.path(of: $0, environment) }
            }
            return TLSSettings(
                authorities: path(tls.authorities), certificate: path(tls.certificate), key: path(tls.key),
                pins: tls.pins)
        }
        readSecrets(all: true)
        let name = config.settings.name
        source = config.auth.flatMap { auth in
            var configured: String?
            if case .oauth2(let client, _) = auth { configured = client.refreshToken.flatMap { values[$0] } }
            return TokenSource(
                auth, endpoint: name, configuredRefreshToken: configured, tls: tls, environment: environment,
                stateDirectory: stateDirectory, uplink: uplink, loop: loop,
                warn: { log.warning("endpoint \(name): \($0)") })
        }
    }

    /// Calls back at once, or when the token command has ended, with what the templates need.
    func obtain(at now: EventTime, _ done: @escaping (Result<RequestSecrets, CredentialProblem>) -> Void) {
        // A file that was missing a moment ago may be there now.
        if values.count < config.secrets.count { readSecrets(all: true) }
        rereadAtItsEnd(at: now)
        if let missing = config.secrets.keys.sorted().first(where: { values[$0] == nil }) {
            let reference = config.secrets[missing]?.words ?? missing
            return done(.failure(CredentialProblem(message: "the secret \(reference) cannot be read")))
        }
        guard let source else { return done(.success(RequestSecrets(values: values))) }
        // These credentials may have been replaced before the token is there.
        source.obtain(at: now, values) { [self] result in
            token = try? result.get()
            done(result.map { RequestSecrets(values: values, token: $0) })
        }
    }

    /// After a 401 or the like: reads files again, runs the token command or asks the issuer.
    func refresh(at now: EventTime, _ done: @escaping (CredentialRenewal) -> Void) {
        let isNew = reread()
        if !isNew { logFixedCredentials() }
        guard let source else { return done(isNew ? .new : .none) }
        source.renew(at: now, values) { done(isNew ? .new : $0) }
    }

    /// Others prove who this device is in a way in which these do not.
    func lacksOne(of others: EndpointCredentials) -> Bool {
        let (old, new) = (others.config, config)
        return old.auth != nil && new.auth == nil || old.sign != nil && new.sign == nil
            || old.tls?.certificate != nil && new.tls?.certificate == nil
            || !old.secrets.isEmpty && new.secrets.isEmpty
    }

    /// This device has something to prove who it is.
    var isAny: Bool {
        config.auth != nil || config.sign != nil || config.tls?.certificate != nil || !config.secrets.isEmpty
    }

    /// What a refusal means for whoever has to mend it, as none of this device's own is new.
    var refusal: CredentialRefusal {
        if isAny {
            return CredentialRefusal(words: "the credential is refused", cure: config.identity.map { "check \($0)" })
        }
        let isEncrypted = (try? BaseURL.parse(config.settings.baseURL).get())?.isEncrypted == true
        return CredentialRefusal(
            words:
                "no credential is configured: the server wants one (\(isEncrypted ? "auth or client_cert" : "auth")), or "
                + "something before it refuses this device or its address")
    }

    /// Of what decides whom this device speaks to and as who: the address, the device, and the times of the files with secrets and
    /// certificates.
    var digest: UInt64 {
        var hash = FNV1a()
        func add(_ text: String) { for byte in text.utf8 + [0xFF] { hash.add(byte) } }
        add(config.settings.fingerprint)
        add(config.settings.profile.rendering)
        let named = config.secrets.sorted { $0.key < $1.key }.map(\.value)
        for reference in named + [config.tls?.authorities, config.tls?.certificate, config.tls?.key].compactMap(\.self)
        {
            guard case .file(let path) = reference else { continue }
            var info = stat()
            if stat(path, &info) == 0 { add("\(path) \(info.st_mtim.tv_sec).\(info.st_mtim.tv_nsec)") }
        }
        return hash.value
    }

    /// Of what the configuration says of that, whoever reads it and whenever: `EndpointConfig.digest`.
    var configured: String { config.digest }

    /// An operator ended a pause, and may have repaired the issuer: it may be asked at once.
    func resumed() { source?.resumed() }

    /// Reads the `file:` secrets again, as on a reload.
    /// - Returns: whether one of them changed.
    @discardableResult
    func reread() -> Bool {
        let before = values
        readSecrets(all: false)
        return values != before
    }

    /// Of the fetched token, else of the secret that expires first among those that say when. A file is read again towards that.
    func tokenLife(at now: EventTime) -> TokenLife {
        rereadAtItsEnd(at: now)
        var life = source?.life(at: now) ?? TokenLife()
        let fetched = token.flatMap(TokenClaims.init)
        guard life.left == nil, let claims = fetched ?? firstToExpire, let time = time(of: .receiver, at: now) else {
            return life
        }
        life.left = claims.expires - Double(time) / 1000
        life.validity = claims.issued.map { claims.expires - $0 }
        return life
    }

    /// Adds what differs between attempts: `Authorization`, signature and its time, TLS.
    func complete(_ request: inout UplinkRequest, batchID: String, at now: EventTime) throws(CredentialProblem) {
        if request.broker != nil { setUser(of: &request) }
        switch config.auth {
        case _ where request.broker != nil: break
        case .bearer(let token):
            try set(HeaderTemplate("Authorization", parts: [.text("Bearer "), .secret(token)]), of: &request)
        case .basic(let user, let password):
            let pair = "\(user):\(values[password] ?? "")"
            set("Authorization", "Basic \(Base64.encode(Array(pair.utf8)))", of: &request)
        case .header(let name, let key): try set(HeaderTemplate(name, parts: [.secret(key)]), of: &request)
        case .tokenCommand(_, let header), .oauth2(_, let header):
            if let header { try set(header, of: &request) }
        case nil: break
        }
        request.tls = tls
        logExpiry(at: now)
        if request.broker != nil { return }
        request.idleLimit = max(config.settings.batchWindow * 2, Self.idleLeast)
        guard let signer = try signer() else { return }
        var milliseconds: Int64 = 0
        if signer.needsTime {
            guard let time = time(of: config.signingClock, at: now) else {
                throw CredentialProblem(
                    message: "the clock of this device is not synchronised, so requests cannot be signed", isClock: true
                )
            }
            milliseconds = time
        }
        signer.sign(&request, id: batchID, time: milliseconds >= 0 ? milliseconds / 1000 : -1)
    }
}

extension EndpointCredentials {
    /// - Parameter all: false = only files, since the rest was fixed when the process started.
    private func readSecrets(all: Bool) {
        let environment = ConfigurationEnvironment(variables: variables, hostname: { nil }, machineID: { nil })
        for (name, reference) in config.secrets {
            if case .file = reference {} else if !all { continue }
            // If it cannot be read just now, the value read before stays.
            if case .success(let value?) = Secret.value(of: reference, environment) { values[name] = value }
        }
    }

    private var firstToExpire: TokenClaims? {
        values.values.compactMap(TokenClaims.init).min { $0.expires < $1.expires }
    }

    /// Whoever renews a token in a file does so before it expires, and need not wait for the server to refuse the old one.
    private func rereadAtItsEnd(at now: EventTime) {
        guard let claims = firstToExpire, let time = time(of: .receiver, at: now) else { return }
        let validity = claims.issued.map { claims.expires - $0 } ?? 0
        if claims.expires - Double(time) / 1000 < max(validity * Self.lateShare, Self.lateLeast) { reread() }
    }

    private func logFixedCredentials() {
        let fixed = config.secrets.values.filter { if case .credential = $0 { true } else { false } }.map(\.words)
        guard !fixed.isEmpty, !fixedLogged else { return }
        fixedLogged = true
        log.warning(
            "endpoint \(config.settings.name): the server refuses the credential; \(fixed.sorted().joined(separator: ", ")) "
                + "was read when waypost started: restart it after a change")
    }

    /// A broker knows a user and a password; a token is the password.
    private func setUser(of request: inout UplinkRequest) {
        switch config.auth {
        case .basic(let user, let password):
            request.broker?.session.user = user
            request.broker?.session.password = values[password]
        case .bearer(let name): setToken(values[name], of: &request)
        case .tokenCommand, .oauth2: setToken(token, of: &request)
        case .header, nil: break
        }
    }

    private func setToken(_ token: String?, of request: inout UplinkRequest) {
        request.broker?.session.password = token
        // MQTT 3.1.1 has no password without a user.
        if request.broker?.session.user == nil { request.broker?.session.user = config.settings.device }
    }

    private func set(_ header: HeaderTemplate, of request: inout UplinkRequest) throws(CredentialProblem) {
        guard let value = header.value(values, token: token) else {
            throw CredentialProblem(message: "there is no secret for the header \(header.name)")
        }
        set(header.name, value, of: &request)
    }

    private func set(_ name: String, _ value: String, of request: inout UplinkRequest) {
        request.headers.removeAll { $0.name.lowercased() == name.lowercased() }
        request.headers.append(.init(name, value))
    }

    private func signer() throws(CredentialProblem) -> RequestSigner? {
        func secret(_ name: String) throws(CredentialProblem) -> String {
            guard let value = values[name] else {
                throw CredentialProblem(message: "the secret \(name) for the signature cannot be read")
            }
            return value
        }
        switch config.sign {
        case nil: return nil
        case .gitHub(let name): return .gitHub(secret: Array(try secret(name).utf8))
        case .standardWebhooks(let names):
            var keys: [[UInt8]] = []
            for name in names {
                guard let key = StandardWebhooks.key(try secret(name)) else {
                    throw CredentialProblem(
                        message: "the secret \(name) is not whsec_ and the base64 of 24 to 64 bytes")
                }
                keys.append(key)
            }
            return .standardWebhooks(keys: keys)
        case .aws(let region, let service, let accessKey, let secretKey, let sessionToken):
            var session: String?
            if let sessionToken { session = try secret(sessionToken) }
            return .aws(
                SigV4(
                    region: region, service: service, accessKey: try secret(accessKey),
                    secretKey: try secret(secretKey), sessionToken: session))
        }
    }

    private func time(of kind: SigningClock, at now: EventTime) -> Int64? {
        kind.time(hostMs: clock.hostMs(), isSynchronised: clock.isSynchronised(), receiverMs: clock.receiverMs(now))
    }

    private func logExpiry(at now: EventTime) {
        guard let path = tls?.certificate, expiryCheckedAt.map({ now >= $0 + Self.expiryPause }) ?? true else { return }
        guard let time = time(of: .receiver, at: now), let bytes = Secret.bytes(ofFile: path),
            let end = ClientCertificate.validUntil(bytes)
        else {
            return
        }
        expiryCheckedAt = now
        let left = end - time / 1000
        guard left < Self.expiryNotice else { return }
        let date = UTCTime(milliseconds: end * 1000).iso8601
        log.warning(
            "endpoint \(config.settings.name): the client certificate \(left < 0 ? "expired" : "expires") on \(date)")
    }
}
