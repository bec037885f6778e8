import Configuration
import Network
import Protocols
import WaypostCore
import WaypostHost

/// Documents and reports as requests of their own, over the uplink that all endpoints share. Commands come with the answers to
/// batches.
final class HTTPWay: RemoteWay {
    private static let timeout = Duration.seconds(30)

    private let settingsURL: String?
    private let reportedURL: String?
    private let delivery: EndpointDelivery
    private let uplink: any Uplink
    private let loop: EventLoop
    var hear: (RemoteMessage) -> Void = { _ in }

    /// - Parameters:
    ///   - settingsURL: nil = no documents are asked for.
    ///   - reportedURL: nil = nothing is reported.
    ///   - delivery: to the endpoint whose server this is.
    init(
        settingsURL: String?, reportedURL: String?, delivery: EndpointDelivery, uplink: any Uplink, loop: EventLoop
    ) {
        self.settingsURL = settingsURL
        self.reportedURL = reportedURL
        self.uplink = uplink
        self.loop = loop
        self.delivery = delivery
    }

    var isAsked: Bool { settingsURL != nil }

    var isOfEndpoint: Bool {
        settingsURL.flatMap(Self.origin).map { $0 == Self.origin(delivery.settings.baseURL) } ?? false
    }

    func fetch(known: Int64, _ done: @escaping (RemoteFetch) -> Void) {
        guard let settingsURL else { return }
        var headers: [UplinkRequest.Header] = [.init("Accept", "application/json")]
        if known > 0 { headers.append(.init("If-None-Match", "\"\(known)\"")) }
        send("GET", settingsURL, headers, []) { done(Self.fetched($0)) }
    }

    func report(_ state: [UInt8], _ done: @escaping (RemoteDispatch) -> Void) {
        guard let reportedURL else { return done(.settled) }
        send("PUT", reportedURL, Self.json, state) { result in
            guard case .reply(let reply) = result else { return done(.failed) }
            let isSettled =
                (200...299).contains(reply.status) || [400, 401, 403, 404, 405, 413, 422].contains(reply.status)
            if case .page = HTMLCheck(reply), (200...299).contains(reply.status) { return done(.failed) }
            done(isSettled ? .settled : .failed)
        }
    }

    func answer(_ answer: [UInt8]) {
        guard let reportedURL, delivery.maySend(at: loop.now) else { return }
        send("POST", reportedURL, Self.json, answer) { _ in }
    }

    private static let json = [UplinkRequest.Header("Content-Type", "application/json")]

    private func send(
        _ method: String, _ url: String, _ headers: [UplinkRequest.Header], _ body: [UInt8],
        _ done: @escaping (UplinkOutcome.Result) -> Void
    ) {
        var request = UplinkRequest(method: method, url: url, headers: headers, body: body, timeout: Self.timeout)
        let route = delivery.routes[0]
        // Another server must not learn the credentials of the endpoint.
        guard let origin = Self.origin(url), origin == Self.origin(route.settings.baseURL) else {
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

    static func fetched(_ result: UplinkOutcome.Result) -> RemoteFetch {
        switch result {
        case .published, .connected: return .failed("a broker does not have it")
        case .failed(let failure): return .failed(failure.message)
        case .reply(let reply):
            if reply.status == 200, case .page(let title) = HTMLCheck(reply) {
                return .failed("status 200 with \(HTMLCheck.words(title: title, key: "settings_url"))")
            }
            switch reply.status {
            case 200 where reply.bodyIncomplete: return .failed("the document is longer than is read, or broke off")
            case 200: return .document(reply.body, signature: reply.header("waypost-signature"))
            case 204, 304, 404: return .nothing
            default: return .failed("status \(reply.status)")
            }
        }
    }

    /// Scheme, host and port.
    private static func origin(_ url: String) -> String? {
        Peer(url: url).map { "\($0.isSecure ? "https" : "http")://\($0)".lowercased() }
    }
}
