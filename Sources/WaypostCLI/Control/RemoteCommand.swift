import ArgumentParser
import WaypostControl
import WaypostCore

struct RemoteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remote", abstract: "Show or discard settings that a server sent.",
        discussion: """
            show prints the version in force, its trial, what was refused and why, the last command, and the keys that \
            a server may set. clear returns to the file, and ends once that is stored; versions that the device has seen are not tried again, \
            newer ones are. forget does the same and forgets what was refused, and, where documents are not signed, which \
            versions were accepted. Signed ones stay refused unless they are above the highest that was accepted, or \
            --accept-older is given. clear and forget are for root and the user of the daemon. \
            Exit status: 0 done, 1 the file allows no settings from afar, it is not permitted, or it could not be stored, \
            2 no daemon answers.
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case show, clear, forget
    }

    @Argument(help: "show, clear or forget.")
    var action = Action.show

    @Flag(help: "With forget: take older signed documents again, for a server whose versions begin again.")
    var acceptOlder = false

    @Flag(help: "Print one object of JSON, as remote of status --json.")
    var json = false

    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        if acceptOlder, action != .forget { throw ValidationError("--accept-older belongs to forget.") }
    }

    func run() throws {
        let status = try daemon.send(
            RemoteRequest(action: action.rawValue, acceptsOlder: acceptOlder),
            timeoutSeconds: ControlClient.longestSeconds)
        if json { printJSON(status.json) } else { status.lines.forEach(printLine) }
        try finishOutput()
    }
}

extension RemoteStatus {
    /// `remote     version 17 on trial, 12 min left`, and what there is to say about it.
    var lines: [String] {
        var lines = ["remote     \(summary)"]
        func add(_ name: String, _ text: String?) {
            if let text { lines.append("\(name)\(String(repeating: " ", count: 11 - name.utf8.count))\(text)") }
        }
        add("newest", newest)
        for entry in clamped?.entries ?? [] { add("clamped", "\(entry.name): \(entry.value)") }
        for entry in rejected?.entries ?? [] {
            add("reason", entry.name.isEmpty ? entry.value : "\(entry.name): \(entry.value)")
        }
        add("refused", refused)
        add("problem", problem)
        add("command", lastCommand.map { "\($0), \(InWords.span(seconds: lastCommandAge ?? 0)) ago" })
        add("refusal", lastRefusal)
        add("contact", lastContactAge.map { "\(InWords.span(seconds: $0)) ago" })
        for entry in effective?.entries ?? [] { add("may set", "\(entry.name) = \(entry.value)") }
        return lines
    }

    private var summary: String {
        guard let inForce else { return "the file alone is in force" }
        guard let rest else { return "version \(inForce) is in force" }
        return "version \(inForce) is on trial, \(InWords.span(seconds: rest)) of it left"
    }

    /// nil where the newest version is the one in force.
    private var newest: String? {
        guard version > 0, version != inForce else { return nil }
        return "version \(version): \(state == "none" ? "none up to it is accepted again" : state)"
    }
}
