import Delivery
import Positioning
import Testing

/// Takes requests, and answers when it is told to.
final class ScriptedUplink: Uplink {
    private(set) var requests: [UplinkRequest] = []
    private var completions: [(UplinkOutcome) -> Void] = []

    func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) {
        requests.append(request)
        completions.append(completion)
    }

    /// Answers the oldest open request.
    func answer(_ status: Int, _ body: String = "") {
        end(UplinkOutcome(.reply(UplinkReply(status: status, body: Array(body.utf8)))))
    }

    func redirect(to location: String) {
        let reply = UplinkReply(status: 302, headers: [.init("location", location)])
        end(UplinkOutcome(.reply(reply)))
    }

    func fail(_ failure: TransportFailure) { end(UplinkOutcome(.failed(failure))) }

    /// A request that was expected and did not come is told as such, and does not end the run.
    private func end(_ outcome: UplinkOutcome) {
        guard !completions.isEmpty else {
            Issue.record("no request is open")
            return
        }
        completions.removeFirst()(outcome)
    }

    /// The rows of the newest request.
    var rows: [String] {
        guard case .array(let records) = requests.last.flatMap({ JSONReader.read($0.body) }) else { return [] }
        return records.compactMap { $0.value(at: ["seq"])?.text }
    }

    func close() {}
}
