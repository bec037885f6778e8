import Configuration
import Daemon
import Doctor
import Glibc
import Network
import Profiles
import Protocols
import WaypostCore
import WaypostHost

/// Tries the way to each endpoint, all at once and as the daemon does: name, connection, certificate, an answer. The
/// request is OPTIONS without a credential and without a body, so that it can neither store nor delete anything; a broker is
/// asked for a connection under another client id than that of the daemon, and its refusal is an answer too.
enum EndpointProbe {
    /// More than all layers together.
    private static let limit = Duration.seconds(60)
    /// Bytes of a request that needs more than one packet.
    private static let padding = 4000

    /// Collects answers from the callbacks of the loop.
    private final class Answers {
        var reaches: [Int: Evidence.Reach] = [:]
    }

    /// In the order of the endpoints; nil where nothing could be tried.
    static func reaches(_ endpoints: [EndpointConfig]) -> [Evidence.Reach]? {
        if endpoints.isEmpty { return [] }
        // libcurl writes to connections that a server may have closed.
        signal(SIGPIPE, SIG_IGN)
        guard let loop = try? EventLoop(),
            let uplink = try? LoopedUplink(settings: settings, loop: loop)
        else { return nil }
        let answers = Answers()
        let started = loop.host.bootTime
        let end = loop.alarm { _ in loop.stop() }
        // Its own limits end each request before.
        end.deadline = started + limit + .seconds(1)
        for (index, endpoint) in endpoints.enumerated() {
            let ended = { (reach: Evidence.Reach) in
                answers.reaches[index] = reach
                if answers.reaches.count == endpoints.count { loop.stop() }
            }
            uplink.send(request(endpoint, index)) { outcome in
                let milliseconds = Int((loop.host.bootTime.duration(since: started)).milliseconds)
                var reach = reach(endpoint, outcome, milliseconds, host: loop.host)
                guard case .reply = outcome.result else { return ended(reach) }
                uplink.send(request(endpoint, index, padded: true)) { outcome in
                    if case .failed(.timeout) = outcome.result, outcome.written != .whole {
                        let words = "small requests pass and longer ones hang: long packets are probably lost (MTU)"
                        reach.failure = .init(layer: "request", message: "\(reach.peer): \(words)")
                    }
                    ended(reach)
                }
            }
        }
        if answers.reaches.count < endpoints.count { try? loop.run() }
        uplink.close()
        return endpoints.enumerated().map { index, endpoint in
            answers.reaches[index]
                ?? reach(endpoint, .init(.failed(.timeout("no answer"))), Int(limit.milliseconds), host: loop.host)
        }
    }

    /// Each layer has a limit of its own, so that the one which hangs is named; a resolver that answers to one of two questions
    /// alone takes 15 s.
    private static var settings: HTTPUplink.Settings {
        var settings = HTTPUplink.Settings(
            version: AgentVersion.current, lookupLimit: .seconds(20), firstByteLimit: .seconds(15),
            measuresStages: true)
        settings.stallLimit = .seconds(10)
        return settings
    }

    /// The server of settings from afar; nil where there is none, or it is that of its endpoint, whose credentials and
    /// certificates it has then.
    static func settingsServer(_ config: AgentConfig) -> EndpointConfig? {
        guard let remote = config.remote, case .http(let url?, _) = remote.way else { return nil }
        let own = config.endpoints.first { $0.settings.name == remote.endpoint }
        guard own.map({ peer($0.settings.baseURL) }) != peer(url) else { return nil }
        return EndpointConfig(
            settings: EndpointSettings(name: "remote.settings", baseURL: url, device: config.device))
    }

    private static func peer(_ url: String) -> String { Peer(url: url).map { "\($0)" } ?? url }

    /// Those of our own that can be read, by the name of their endpoint.
    static func certificates(_ endpoints: [EndpointConfig]) -> [String: CertificateDates] {
        var certificates: [String: CertificateDates] = [:]
        for endpoint in endpoints {
            guard let path = path(endpoint.tls?.certificate), let bytes = Secret.bytes(ofFile: path),
                let dates = ClientCertificate.dates(bytes)
            else { continue }
            certificates[endpoint.settings.name] = dates
        }
        return certificates
    }

    /// Whether everything that a connection to it needs can be read by who asks.
    static func canBeTried(_ endpoint: EndpointConfig) -> Bool {
        let tls = endpoint.tls
        return [tls?.authorities, tls?.certificate, tls?.key].compactMap { $0 }.allSatisfy { reference in
            guard let path = path(reference) else { return false }
            // With the rights that are in effect: those of root may have been put aside.
            if faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0 { return true }
            // A file that is missing is missing for the daemon too; what its unit was given is gone when that stops.
            if case .file = reference { return errno != EACCES }
            return false
        }
    }

    /// As the daemon has it: root sees what its unit was given.
    private static func path(_ reference: Secret.Reference?) -> String? {
        let given = ["CREDENTIALS_DIRECTORY": "/run/credentials/waypost.service"]
        let variables = ProcessEnvironment.variables.merging(given) { own, _ in own }
        return reference.flatMap { Secret.path(of: $0, variables) }
    }

    /// - Parameter index: of the endpoint: two at one broker would end each other's connection.
    private static func request(_ endpoint: EndpointConfig, _ index: Int, padded: Bool = false) -> UplinkRequest {
        let tls = endpoint.tls.map {
            TLSSettings(
                authorities: path($0.authorities), certificate: path($0.certificate), key: path($0.key), pins: $0.pins)
        }
        var request = UplinkRequest(
            method: "OPTIONS", url: endpoint.settings.baseURL, body: [], timeout: limit, tls: tls)
        if padded { request.headers.append(.init("X-Padding", String(repeating: "-", count: padding))) }
        if endpoint.settings.profile.isForBroker {
            request.broker = BrokerRequest(session: BrokerSession(clientID: "waypost-doctor\(index)-\(getpid())"))
        }
        return request
    }

    private static func reach(
        _ endpoint: EndpointConfig, _ outcome: UplinkOutcome, _ milliseconds: Int, host: any Host
    ) -> Evidence.Reach {
        var failure: Evidence.Reach.Failure?
        // The configuration has no other URLs.
        let url = endpoint.settings.baseURL
        let peer = Peer(url: BrokerAddress(url)?.connectURL ?? url)
        if case .failed(let problem) = outcome.result {
            let bareHost = peer?.host.filter { $0 != "[" && $0 != "]" }
            failure =
                problem.isUnreached && host.egressRoute(to: nil) == nil && host.egressRoute(to: bareHost) == nil
                ? .init(layer: "no route", message: "this host has no route to a network")
                : .init(layer: layer(problem, outcome.written), message: words(problem, endpoint))
        }
        var reach = Evidence.Reach(
            endpoint: endpoint.settings.name, host: peer?.host ?? "", peer: peer.map { "\($0)" } ?? "",
            failure: failure, milliseconds: milliseconds)
        if let stages = outcome.stages { reach.stages = stages }
        return reach
    }

    /// With what helps, in the words of the daemon.
    private static func words(_ failure: TransportFailure, _ endpoint: EndpointConfig) -> String {
        let cure = FailureCure.words(
            for: failure, endpoint.settings, credential: endpoint.identity.map { "check \($0)" })
        return failure.message + (cure.map { ": \($0)" } ?? "")
    }

    private static func layer(_ failure: TransportFailure, _ written: UplinkOutcome.Extent) -> String {
        guard case .timeout = failure else { return failure.word }
        return written == .whole ? "answer" : "request"
    }
}
