import Configuration
import Delivery
import EventLoop
import Positioning
import Uplink

/// Requests for the document of settings, over the uplink that all endpoints share.
final class SettingsRequests {
    /// What a server answered to the question for a document.
    enum Answer {
        case document([UInt8], signature: String?)
        /// It has none, or none that is newer.
        case nothing
        case failed(String)
    }

    private static let timeout = Duration.seconds(30)

    private let config: RemoteConfig
    private let route: () -> EndpointDelivery.Route
    private let uplink: any Uplink
    private let loop: EventLoop

    /// - Parameter route: the endpoint that carries documents, with its present credentials.
    init(
        _ config: RemoteConfig, route: @escaping () -> EndpointDelivery.Route, uplink: any Uplink, loop: EventLoop
    ) {
        self.config = config
        self.route = route
        self.uplink = uplink
        self.loop = loop
    }

    /// The document comes from the server that takes the rows.
    var isOfEndpoint: Bool { Self.origin(config.settingsURL) == Self.origin(route().settings.baseURL) }

    /// - Parameter known: the newest version that needs no answer; 0 = none.
    func fetch(known: Int64, _ done: @escaping (Answer) -> Void) {
        var headers: [UplinkRequest.Header] = [.init("Accept", "application/json")]
        if known > 0 { headers.append(.init("If-None-Match", "\"\(known)\"")) }
        send("GET", config.settingsURL, headers, []) { done(Self.answer($0)) }
    }

    /// - Parameter done: whether the server took it, or never will.
    func report(_ state: [UInt8], _ done: @escaping (Bool) -> Void) {
        guard let url = config.reportedURL else { return }
        send("PUT", url, [.init("Content-Type", "application/json")], state) { result in
            guard case .reply(let reply) = result else { return done(false) }
            done((200...299).contains(reply.status) || [400, 404, 405, 413, 422].contains(reply.status))
        }
    }

    private func send(
        _ method: String, _ url: String, _ headers: [UplinkRequest.Header], _ body: [UInt8],
        _ done: @escaping (UplinkOutcome.Result) -> Void
    ) {
        var request = UplinkRequest(method: method, url: url, headers: headers, body: body, timeout: Self.timeout)
        let route = route()
        // Another server must not learn the credentials of the endpoint.
        guard Self.origin(url) == Self.origin(route.settings.baseURL) else {
            uplink.send(request) { done($0.result) }
            return
        }
        route.credentials.obtain(at: loop.now) { [self] result in
            do throws(CredentialProblem) {
                _ = try result.get()
                try route.credentials.complete(&request, batchID: "", at: loop.now)
            } catch {
                return done(.failed(.broken(error.message)))
            }
            uplink.send(request) { done($0.result) }
        }
    }

    private static func answer(_ result: UplinkOutcome.Result) -> Answer {
        switch result {
        case .published: return .failed("a broker does not have it")
        case .failed(let failure): return .failed(failure.message)
        case .reply(let reply):
            switch reply.status {
            case 200 where reply.bodyIncomplete: return .failed("the document is longer than is read, or broke off")
            case 200: return .document(reply.body, signature: reply.header("waypost-signature"))
            case 204, 304, 404: return .nothing
            default: return .failed("status \(reply.status)")
            }
        }
    }

    /// `https://fleet.example:8443`, in lower case.
    private static func origin(_ url: String) -> String {
        var slashes = 0
        return url.prefix { character in
            if character == "/" { slashes += 1 }
            return slashes < 3
        }.lowercased()
    }
}
