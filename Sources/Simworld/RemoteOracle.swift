import WaypostCore

/// Judges what settings and commands from afar do to the daemon.
final class RemoteOracle {
    /// Of what is in force, at one instant.
    struct Look {
        /// nil = the file alone.
        var version: Int64?
        var isTrial = false
        /// Keys that no document may change, with their values.
        var others: [String: String] = [:]
    }

    private static let commandsPerHour = 30
    private static let changesPerDay = 20

    private let books: Books
    /// Versions with which a batch was accepted.
    private var contacted: Set<Int64> = []
    /// Versions that were taken back, or replaced before they had contact.
    private var over: Set<Int64> = []
    /// Versions that were offered as they should be: signed, if need be, and in time.
    private var offered: Set<Int64> = []
    private var offeredInTime: Set<Int64> = []
    /// A person has dropped the settings, and nothing that had contact before may return.
    private var isDropping = false
    private var last: Look?
    /// The disk has refused what was decided: what a process did without may be undone by its end.
    private var isDiskTrusted = true
    private var isClockTrusted = true
    /// When each command that was sent expires, Unix milliseconds, and whether it came while it could be carried out.
    private var expiries: [String: Int64] = [:]
    private var cameInTime: Set<String> = []
    private var genuine: Set<String> = []
    private var ran: Set<String> = []
    private var runs: [EventTime] = []
    private var changes: [EventTime] = []
    private(set) var changed = 0

    init(_ books: Books) { self.books = books }

    var commanded: Int { ran.count }

    /// A batch that was sent with a version in force was accepted.
    func contact(with version: Int64?) { if let version { contacted.insert(version) } }

    /// Another file, another start or a person may change anything.
    func upheaval() { last?.others = [:] }

    func diskRefused() { isDiskTrusted = false }

    /// Receiver and host had the same wrong time: what is counted by it may be wrong.
    func clocksErred() { isClockTrusted = false }

    /// The server has a document. The same version may have been another one before.
    func offered(_ version: Int64, isGenuine: Bool, hasExpired: Bool) {
        if isGenuine { offered.insert(version) }
        if isGenuine, !hasExpired { offeredInTime.insert(version) }
    }

    /// A person drops the settings and what was refused.
    /// - Parameter acceptsOlder: versions are taken again that were seen.
    func forgotten(acceptsOlder: Bool) {
        // The daemon may end before it has stored that: what had contact had it.
        if acceptsOlder { over = [] }
        isDropping = !acceptsOlder
        last = nil
    }

    /// Whether other keys are to be looked at too: something has changed, or nothing is known of them.
    func isNews(_ now: Look) -> Bool {
        guard let last else { return true }
        return last.others.isEmpty || last.version != now.version
    }

    func look(_ now: Look) {
        defer {
            let others = now.others.isEmpty ? last?.others ?? [:] : now.others
            last = now
            last?.others = others
        }
        if let version = now.version {
            if !now.isTrial, !contacted.contains(version) {
                books.fail(.remote, "version \(version) counts as confirmed, and no batch was accepted with it")
            }
            if over.contains(version), isDiskTrusted { books.fail(.remote, "version \(version) is in force again") }
            if !offered.contains(version) { books.fail(.remote, "version \(version) is in force, which nobody signed") }
            if !offeredInTime.contains(version), isClockTrusted {
                books.fail(.remote, "version \(version) is in force, which had expired")
            }
        } else if isDropping {
            isDropping = false
            over.formUnion(contacted)
        }
        guard let last else { return }
        if let before = last.version, before != now.version {
            // One that had contact, perhaps since the last look, is what a newer one returns to.
            let isReplaced = now.version.map { $0 > before } ?? false
            if !isReplaced || !contacted.contains(before) { over.insert(before) }
            // What had contact gives way to a newer one, or to a person.
            if !last.isTrial, let version = now.version, version < before, isDiskTrusted {
                books.fail(.remote, "version \(before) had contact, and \(version) is in force")
            }
        }
        for (key, value) in now.others where last.others[key].map({ $0 != value }) ?? false {
            books.fail(.remote, "\(key) has become \(value), which no document may change")
        }
    }

    func ordered(_ id: String, expires: Int64, isGenuine: Bool) {
        expiries[id] = expires
        if isGenuine { genuine.insert(id) }
    }

    func delivered(_ id: String, _ host: SimulatedHost) {
        guard let expires = expiries[id], host.isSynchronised else { return }
        if (0...60_000).contains(expires - host.wallClockMs) { cameInTime.insert(id) }
    }

    /// The journal says so.
    func logged(_ text: String) {
        let now = books.host.time
        if text.hasPrefix("settings from afar: version "), text.contains(" is in force, on trial") {
            changed += 1
            changes = changes.filter { now.duration(since: $0) < .seconds(86_400) } + [now]
            if changes.count > Self.changesPerDay, isClockTrusted {
                books.fail(.remote, "\(changes.count) changes in a day")
            }
        }
        let mark = "command from afar: "
        guard text.hasPrefix(mark), !text.contains(" was not carried out: "), let open = text.firstIndex(of: "("),
            let close = text.firstIndex(of: ")"), !text.contains(": disk, "), !text.contains(": expired, ")
        else { return }
        let id = String(text[text.index(after: open)..<close])
        if !ran.insert(id).inserted { books.fail(.remote, "command \(id) was carried out twice") }
        if !genuine.contains(id) { books.fail(.remote, "command \(id) was carried out, which nobody signed") }
        if !cameInTime.contains(id) { books.fail(.remote, "command \(id) was carried out though it had expired") }
        // One that waits for a fix is logged up to a minute later.
        runs = runs.filter { now.duration(since: $0) < .seconds(3535) } + [now]
        if runs.count > Self.commandsPerHour, isClockTrusted {
            books.fail(.remote, "\(runs.count) commands in an hour")
        }
    }
}
