import WaypostCore

/// What a server is told about the settings of this device.
package struct ReportedState: Hashable, Sendable {
    package enum Word: String, Sendable {
        case trial, applied, reverted, rejected
        /// No version was ever judged.
        case none
    }

    package var device: String
    /// The newest that was judged; 0 = none.
    package var version: Int64
    package var state: Word
    package var clamped: [ClampedSetting]
    package var problems: [RemoteProblem]
    /// The version in force; nil = the file alone.
    package var inForce: Int64?
    /// Dotted keys that a document may set, with their values.
    package var effective: [RemoteSetting]
    package var software: String

    package init(_ trial: SettingsTrial, device: String, effective: [RemoteSetting], software: String) {
        self.device = device
        version = trial.refusal?.version ?? trial.seen
        inForce = trial.inForce?.version
        problems = trial.refusal?.problems ?? []
        clamped = trial.inForce?.clamped ?? []
        self.effective = effective
        self.software = software
        state =
            switch (trial.refusal?.kind, trial.state) {
            case (.rejected, _): .rejected
            case (.reverted, _): .reverted
            case (nil, .trial): .trial
            case (nil, .applied): .applied
            case (nil, .none): .none
            }
    }

    package var json: [UInt8] {
        var members: [JSONValue.Member] = [
            .init("device", .string(device)), .init("version", .int(version)), .init("state", .string(state.rawValue)),
            .init("in_force", inForce.map(JSONValue.int) ?? .null),
        ]
        if !clamped.isEmpty {
            members.append(
                .init("clamped", .object(clamped.map { .init($0.key, .array([$0.wanted, $0.given])) })))
        }
        if !problems.isEmpty {
            members.append(.init("rejected", .object(problems.map { .init($0.path, .string($0.reason)) })))
        }
        members.append(.init("effective", .object(effective.map { .init($0.key, $0.value) })))
        members.append(.init("software", .string(software)))
        return JSONValue.object(members).bytes
    }
}
