import Protocols
import Testing
import WaypostCore

/// Collects requests, and answers when the test says so, or by itself.
final class ScriptedUplink: Uplink {
    private(set) var requests: [UplinkRequest] = []
    /// Requests that were given up.
    private(set) var cancelled: [UplinkRequest] = []
    /// Not ended, oldest first.
    private var open: [(id: UplinkTransfer, request: UplinkRequest, completion: (UplinkOutcome) -> Void)] = []

    /// Contacts to servers count as requests; otherwise nobody answers them.
    var takesContacts = false

    /// Called after each request.
    var sent: () -> Void = {}

    /// What a broker says goes there.
    private(set) var hear: (BrokerNews) -> Void = { _ in }

    var requestsOpen: Int { open.count }

    @discardableResult
    func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer {
        if request.connectsAlone, !takesContacts { return UplinkTransfer(-1) }
        requests.append(request)
        let id = UplinkTransfer(requests.count)
        open.append((id, request, completion))
        sent()
        return id
    }

    func cancel(_ transfer: UplinkTransfer) {
        cancelled += open.filter { $0.id == transfer }.map(\.request)
        open.removeAll { $0.id == transfer }
    }

    /// Answers the oldest open request.
    func answer(_ status: Int, _ body: String = "", retryAfter: Int? = nil, cut: Bool = false) {
        let headers = retryAfter.map { [UplinkRequest.Header("retry-after", "\($0)")] } ?? []
        end(
            UplinkOutcome(
                .reply(UplinkReply(status: status, headers: headers, body: Array(body.utf8), bodyIncomplete: cut))))
    }

    func redirect(to location: String) {
        end(UplinkOutcome(.reply(UplinkReply(status: 302, headers: [.init("location", location)]))))
    }

    func fail(_ failure: TransportFailure) { end(UplinkOutcome(.failed(failure))) }

    /// Answers what is open by that.
    func answerAll(_ answer: (UplinkRequest) -> UplinkOutcome) {
        let ready = open
        open = []
        for (_, request, completion) in ready { completion(answer(request)) }
    }

    /// A request that was expected and did not come is an issue, and does not end the run.
    func end(_ outcome: UplinkOutcome, where isMeant: (UplinkRequest) -> Bool = { _ in true }) {
        guard let index = open.firstIndex(where: { isMeant($0.request) }) else {
            Issue.record("no such request is open")
            return
        }
        open.remove(at: index).completion(outcome)
    }

    func isOpen(_ method: String) -> Bool { open.contains { $0.request.method == method } }

    /// The rows of the newest request.
    var rows: [String] {
        guard case .array(let records) = requests.last.flatMap({ JSONReader.read($0.body) }) else { return [] }
        return records.compactMap { $0.value(at: ["seq"])?.text }
    }

    func listen(_ hear: @escaping (BrokerNews) -> Void) { self.hear = hear }
    func reconnect(_ cause: ReconnectCause, at now: EventTime) {}
    func closeIdleConnections(at now: EventTime) {}
    func linksChanged(at now: EventTime) {}

    func close() {}
}

extension UplinkRequest {
    /// All that a server of HTTP gets to see.
    var seen: [[UInt8]] {
        [Array("\(method) \(url)".utf8)] + headers.map { Array("\($0.name): \($0.value)".utf8) } + [body]
    }
}
