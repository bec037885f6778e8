import Remote
import WaypostControl
import WaypostCore

extension SettingsFromAfar {
    private static let entriesMax = 64

    /// - Parameter withKeys: also what a server may set.
    func status(withKeys: Bool, at now: EventTime) -> RemoteStatus {
        let state = state
        var status = RemoteStatus()
        status.version = state.version
        status.state = state.state.rawValue
        status.inForce = state.inForce
        status.former = trial.trial?.former?.version
        status.rest = trial.trial?.rest(at: now).inSeconds
        if !state.clamped.isEmpty {
            status.clamped = Self.named(state.clamped.map { ($0.key, "\(text($0.wanted)) became \(text($0.given))") })
        }
        if !state.problems.isEmpty { status.rejected = Self.named(state.problems.map { ($0.path, $0.reason) }) }
        status.refused = refusal?.visible(bytesMax: 500)
        status.problem = problem?.visible(bytesMax: 500)
        status.lastContactAge = lastContact.map { now.seconds(since: $0) }
        if withKeys { status.effective = Self.named(state.effective.map { ($0.key, text($0.value)) }) }
        return status
    }

    private static func named(_ entries: [(String, String)]) -> Named<String> {
        Named(entries.prefix(entriesMax).map { ($0.0, $0.1.visible(bytesMax: 200)) })
    }

    private func text(_ value: JSONValue) -> String { String(decoding: value.bytes, as: UTF8.self) }
}
