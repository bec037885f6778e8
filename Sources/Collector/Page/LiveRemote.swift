import WaypostCore

/// What a person wants to know of the settings that a device is to have, and of its commands.
struct LiveRemote {
    struct Report {
        /// The newest version that the device has judged.
        var version: Int64
        var state: String
        /// Nil = the file of the device alone.
        var inForce: Int64?
        /// Key, value that was wanted, value that the device has set.
        var clamped: [[String]]
        /// Path and reason.
        var rejected: [[String]]
        /// There is more than can be shown.
        var isCut: Bool
    }

    struct Command {
        var command: CommandStore.Command
        /// Whether the device has carried it out; nil = it has not answered.
        var isDone: Bool?
        /// What else it says.
        var words: String
    }

    fileprivate static let listMax = 8
    private static let commandsMax = 5
    fileprivate static let textMax = 120

    var device: String
    /// The version that is offered to the device.
    var desired: Int64?
    var report: Report?
    /// The newest first.
    var commands: [Command]

    /// - Parameter report: as the device has sent it; nil = there is none.
    init(
        device: String, desired: Int64?, report: JSONValue?,
        commands: [(command: CommandStore.Command, answer: JSONValue?)]
    ) {
        self.device = LiveRequest.shown(device)
        self.desired = desired
        self.report = report.map(Report.init)
        self.commands = commands.suffix(Self.commandsMax).reversed().map(Command.init)
    }

    fileprivate static func shown(_ text: String) -> String { text.visible(bytesMax: textMax) }

    fileprivate static func shown(_ value: JSONValue) -> String {
        shown(value.text ?? String(decoding: value.bytes, as: UTF8.self))
    }
}

extension LiveRemote.Report {
    fileprivate init(_ report: JSONValue) {
        let clamped = report["clamped"]?.members ?? []
        let rejected = report["rejected"]?.members ?? []
        let limit = LiveRemote.listMax
        version = report["version"]?.integer ?? 0
        state = LiveRemote.shown(report["state"]?.string ?? "unknown")
        inForce = report["in_force"]?.integer
        self.clamped = clamped.prefix(limit).map { member in
            [LiveRemote.shown(member.name)] + (member.value.items ?? []).prefix(2).map(LiveRemote.shown)
        }
        self.rejected = rejected.prefix(limit).map { [LiveRemote.shown($0.name), LiveRemote.shown($0.value)] }
        isCut = clamped.count > limit || rejected.count > limit
    }
}

extension LiveRemote.Command {
    fileprivate init(_ command: CommandStore.Command, answer: JSONValue?) {
        self.command = command
        guard let answer else {
            words = ""
            return
        }
        let error = answer["error"]
        isDone = error == nil && answer["ok"]?.bool == true
        let parts =
            error.map { [$0["code"]?.text, $0["message"]?.text] }
            ?? (answer["result"]?.members ?? []).map { member in member.value.text.map { "\(member.name) \($0)" } }
        words = parts.compactMap { $0 }.joined(separator: ", ").visible(bytesMax: 3 * LiveRemote.textMax)
    }
}
