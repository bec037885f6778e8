import Configuration
import Delivery
import Network
import Protocols
import WaypostCore
import WaypostHost

/// The short-lived token of one endpoint: fetched when it is needed and due, kept in memory only.
final class TokenSource {
    private enum Origin {
        case command(TokenCommand, name: String)
        case issuer(OAuthClient, RefreshTokenFile?)
    }

    private let origin: Origin
    private let uplink: any Uplink
    private let tls: TLSSettings?
    private let warn: (String) -> Void
    private var lifetime = TokenLifetime()
    private var token: String?
    /// Given by the issuer in place of the configured one.
    private var refreshToken: String?
    /// The one in the file, as it was last read or written here.
    private var keptToken: String?
    private var problem: CredentialProblem?
    private var waiters: [(EventTime) -> Void] = []
    private let loop: EventLoop

    /// - Parameter configuredRefreshToken: as the configuration names it; nil when it names none.
    init?(
        _ auth: EndpointAuth, endpoint: String, configuredRefreshToken: String?, tls: TLSSettings?,
        environment: [String: String], stateDirectory: String, uplink: any Uplink, loop: EventLoop,
        warn: @escaping (String) -> Void
    ) {
        switch auth {
        case .bearer, .basic, .header: return nil
        case .tokenCommand(let command, _):
            origin = .command(
                TokenCommand(command, environment: environment, loop: loop), name: command.first ?? "")
        case .oauth2(let client, _):
            let file = configuredRefreshToken.map {
                RefreshTokenFile(
                    directory: stateDirectory, endpoint: endpoint, client: "\(client.tokenURL)\n\(client.id)",
                    configured: $0)
            }
            keptToken = file?.read()
            refreshToken = keptToken ?? configuredRefreshToken
            origin = .issuer(client, file)
        }
        // Without pins: they are the endpoint's, and the issuer is usually another host.
        self.tls = tls.map {
            TLSSettings(authorities: $0.authorities, certificate: $0.certificate, key: $0.key)
        }
        self.uplink = uplink
        self.loop = loop
        self.warn = warn
    }

    /// Calls back at once, or when the token was fetched.
    func obtain(
        at now: EventTime, _ secrets: [String: String],
        _ done: @escaping (Result<String, CredentialProblem>) -> Void
    ) {
        let asked = now
        let answer = { [unowned self] (now: EventTime) in
            let now = max(asked, now)
            if let token, lifetime.isUsable(at: now) { return done(.success(token)) }
            done(.failure(problem ?? CredentialProblem(message: "there is no token")))
        }
        guard lifetime.isDue(at: now) || !waiters.isEmpty else { return answer(now) }
        fetch(at: now, secrets, answer)
    }

    /// The token was refused.
    func renew(at now: EventTime, _ secrets: [String: String], _ done: @escaping (CredentialRenewal) -> Void) {
        let refused = token
        // The last one was asked for a moment ago.
        let isTooSoon = waiters.isEmpty && !lifetime.mayFetch(at: now)
        fetch(at: now, secrets) { [unowned self] _ in
            if token != nil, token != refused { return done(.new) }
            done(problem?.isTransient ?? isTooSoon ? .later : .none)
        }
    }

    func resumed() { lifetime.resumed() }

    func life(at now: EventTime) -> TokenLife {
        TokenLife(
            left: lifetime.expiresAt.map { $0.seconds(since: now) }, validity: lifetime.lifetime.map(\.inSeconds),
            problem: problem?.message)
    }

    /// One fetch at a time, and none within the pause of the last.
    private func fetch(at now: EventTime, _ secrets: [String: String], _ done: @escaping (EventTime) -> Void) {
        if waiters.isEmpty, !lifetime.mayFetch(at: now) { return done(now) }
        waiters.append(done)
        guard waiters.count == 1 else { return }
        lifetime.fetchStarted(at: now)
        switch origin {
        case .command(let command, let name):
            command.run(at: now) { [weak self] result in self?.received(result.flatMap(Self.reply), name) }
        case .issuer(let client, _):
            guard let request = request(client, secrets) else {
                problem = CredentialProblem(message: "a secret that \(host(client)) wants cannot be read")
                return callWaiters()
            }
            // This source may have been replaced when the answer comes, which counts all the same: the issuer may have changed
            // the refresh token, and the old one is invalid then.
            uplink.send(request) { [self] outcome in received(Self.reply(outcome), host(client)) }
        }
    }

    private func received(_ result: Result<TokenReply, TokenReply.Problem>, _ name: String) {
        switch result {
        case .success(let reply):
            token = reply.token
            problem = nil
            lifetime.fetched(lifetime: reply.lifetime, at: loop.now)
            if let rotated = reply.refreshToken, rotated != refreshToken { keep(rotated) }
        case .failure(let failure):
            problem = CredentialProblem(
                message: "no token: \(name) \(failure.message)", isTransient: !failure.isRefusal)
        }
        callWaiters()
    }

    private func callWaiters() {
        let waiting = waiters
        waiters = []
        for done in waiting { done(loop.now) }
    }

    /// The old one may be invalid by now: the new one is on disk before the access token is used.
    private func keep(_ rotated: String) {
        refreshToken = rotated
        guard case .issuer(_, let file?) = origin else { return }
        do throws(SystemError) {
            try file.write(rotated)
            keptToken = rotated
        } catch {
            warn("the new refresh token cannot be stored; after a restart the issuer may refuse the old one: \(error)")
        }
    }

    /// The source that this one replaced may have received another token meanwhile.
    private func readKeptToken() {
        guard case .issuer(_, let file?) = origin, let kept = file.read(), kept != keptToken else { return }
        keptToken = kept
        refreshToken = kept
    }

    private func request(_ client: OAuthClient, _ secrets: [String: String]) -> UplinkRequest? {
        var fields = [("grant_type", "client_credentials"), ("client_id", client.id)]
        if client.refreshToken != nil {
            readKeptToken()
            guard let refreshToken else { return nil }
            fields[0].1 = "refresh_token"
            fields.append(("refresh_token", refreshToken))
        }
        if let name = client.secret {
            guard let secret = secrets[name] else { return nil }
            fields.append(("client_secret", secret))
        }
        if let scope = client.scope { fields.append(("scope", scope)) }
        let body = fields.map { "\($0.0)=\(String(percentEncoding: $0.1.utf8))" }.joined(separator: "&")
        return UplinkRequest(
            url: client.tokenURL,
            headers: [
                .init("Content-Type", "application/x-www-form-urlencoded"), .init("Accept", "application/json"),
            ],
            body: Array(body.utf8), timeout: .seconds(30), tls: tls)
    }

    private static func reply(_ printed: [UInt8]) -> Result<TokenReply, TokenReply.Problem> {
        if case .page(let title) = HTMLCheck(UplinkReply(status: 200, body: printed)) {
            let words = "printed a web page\(title.map { " (\"\($0)\")" } ?? "") instead of a token"
            return .failure(.init(message: words))
        }
        do throws(TokenReply.Problem) { return .success(try TokenReply(printed: printed)) } catch {
            return .failure(error)
        }
    }

    private static func reply(_ outcome: UplinkOutcome) -> Result<TokenReply, TokenReply.Problem> {
        switch outcome.result {
        case .failed(let failure):
            return .failure(.init(message: "cannot be asked: \(failure.message)"))
        case .published, .connected: return .failure(.init(message: "is a broker"))
        case .reply(let reply):
            let page = HTMLCheck(reply)
            if case .page(let title) = page, (200...299).contains(reply.status) {
                let words = HTMLCheck.words(title: title, key: "token_url")
                return .failure(.init(message: "answered with status \(reply.status) and \(words)"))
            }
            // A portal refuses with a page.
            let isPage = if case .page = page { true } else { false }
            let refuses = !isPage && [401, 403].contains(reply.status)
            do throws(TokenReply.Problem) {
                let document = try TokenReply(json: reply.body)
                guard (200...299).contains(reply.status) else {
                    return .failure(.init(message: "answered with status \(reply.status)", isRefusal: refuses))
                }
                return .success(document)
            } catch {
                return .failure(
                    .init(
                        message: "answered with status \(reply.status) and \(error.message)",
                        isRefusal: refuses || reply.status == 400 && error.isRefusal))
            }
        }
    }

    private func host(_ client: OAuthClient) -> String {
        if case .success(let url) = BaseURL.parse(client.tokenURL) { url.host } else { "the token URL" }
    }
}
