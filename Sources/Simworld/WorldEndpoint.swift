/// What the oracle has to know of `[outbox]`.
struct OutboxConfigFacts {
    var maxRecords: Int?
    var maxAge: Duration?
    var maxBytes: Int64?
    var commitWindow: Duration
}

/// By what a server's answer names a row.
enum RowNaming {
    case seq, time, both, place
}

/// An endpoint as the world made it up.
struct WorldEndpoint {
    var name: String
    var profile: String
    var required = true
    var isEngine = false
    var freshHead = false
    var isLatest = false
    var backupFor: String?
    /// Its server takes requests with a token only.
    var hasToken = false
    /// A device has to be bound to the asset at its server.
    var binds = false
    var names = RowNaming.seq
    /// The address: another one is another cursor for the oracle.
    var identity: String
    var host: String { "\(name).example" }
    /// Its server has two addresses.
    var isMoved = false
    /// Rows come in their order, and none twice.
    var isOrdered: Bool { !isLatest }
    /// Its rows are messages.
    var isBroker: Bool { profile == "broker" }
    /// Its answers name single rows.
    var tellsOfRows: Bool { ["waypost", "waypost-compact", "narrow", "fleet", "yard"].contains(profile) }
    /// The list of rows that it refuses.
    var listOfRows: String { profile == "fleet" ? "errors" : profile == "yard" ? "results" : "rejected" }
    /// A row that is refused by name for this is to be sent again.
    func isForNow(_ code: String) -> Bool { code == "busy" || code == "who" && profile == "fleet" }
    /// A success that does not say so is none.
    var wantsConfirmation: Bool { profile == "fleet" }
}
