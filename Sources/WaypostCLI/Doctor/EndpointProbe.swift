import Agent
import Configuration
import Delivery
import Doctor
import EventLoop
import Glibc
import Positioning
import Uplink

/// Tries the way to each endpoint, all at once and as the daemon does: name, connection, certificate, an answer. The
/// request is OPTIONS without a credential and without a body, so that it can neither store nor delete anything.
enum EndpointProbe {
    private static let limit = Duration.seconds(5)
    private static let endpointsMax = 16

    /// Collects answers from the callbacks of the loop.
    private final class Answers {
        var reaches: [Int: Evidence.Reach] = [:]
    }

    /// In the order of the endpoints; nil where nothing could be tried.
    static func reaches(_ endpoints: [EndpointConfig]) -> [Evidence.Reach]? {
        let endpoints = endpoints.prefix(endpointsMax)
        if endpoints.isEmpty { return [] }
        guard let loop = try? EventLoop(),
            let uplink = try? LoopedUplink(settings: .init(version: AgentVersion.current), loop: loop)
        else { return nil }
        let answers = Answers()
        let started = loop.host.bootTime
        let end = loop.alarm { _ in loop.stop() }
        // Its own limits end each request before.
        end.deadline = started + limit + .seconds(1)
        for (index, endpoint) in endpoints.enumerated() {
            uplink.send(request(endpoint)) { outcome in
                let milliseconds = Int((loop.host.bootTime.duration(since: started)).milliseconds)
                answers.reaches[index] = reach(endpoint, outcome.result, milliseconds)
                if answers.reaches.count == endpoints.count { loop.stop() }
            }
        }
        if answers.reaches.count < endpoints.count { try? loop.run() }
        uplink.close()
        return endpoints.enumerated().map { index, endpoint in
            answers.reaches[index]
                ?? .init(
                    endpoint: endpoint.settings.name, peer: peer(endpoint), failure: "\(peer(endpoint)): no answer",
                    milliseconds: Int(limit.milliseconds))
        }
    }

    private static func request(_ endpoint: EndpointConfig) -> UplinkRequest {
        func path(_ reference: Secret.Reference?) -> String? {
            reference.flatMap { Secret.path(of: $0, ProcessEnvironment.variables) }
        }
        let tls = endpoint.tls.map {
            TLSSettings(
                authorities: path($0.authorities), certificate: path($0.certificate), key: path($0.key), pins: $0.pins)
        }
        return UplinkRequest(method: "OPTIONS", url: endpoint.settings.baseURL, body: [], timeout: limit, tls: tls)
    }

    private static func reach(
        _ endpoint: EndpointConfig, _ result: UplinkOutcome.Result, _ milliseconds: Int
    ) -> Evidence.Reach {
        var failure: String?
        var isClock = false
        if case .failed(let problem) = result {
            failure = "\(problem.word): \(problem.message)"
            if case .clock = problem { isClock = true }
        }
        return .init(
            endpoint: endpoint.settings.name, peer: peer(endpoint), failure: failure, isClock: isClock,
            milliseconds: milliseconds)
    }

    /// Host and port.
    private static func peer(_ endpoint: EndpointConfig) -> String {
        let url = endpoint.settings.baseURL
        let start = url.firstOccurrence(of: "://")?.upperBound ?? url.startIndex
        return String(url[start...].prefix { $0 != "/" })
    }
}
