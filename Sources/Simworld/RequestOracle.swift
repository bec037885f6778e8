import Delivery
import Protocols
import Queue
import WaypostCore

/// Judges the requests of the daemon.
final class RequestOracle {
    private let books: Books
    private var identities: [String: RowKey] = [:]
    /// Endpoint and identity of records that were sent as a gap.
    private var toldAsGap: Set<String> = []
    private var rowNamed: [String: Int] = [:]
    /// When each server was last contacted in this boot.
    private var contacts: [String: EventTime] = [:]
    private(set) var accepted = 0
    private(set) var duplicates = 0
    /// Requests in an hour to a server that takes nothing. What is refused is taken apart, and each part asks once.
    private static let requestsMax = 300
    /// The shortest wait after a failure.
    private static let backoffMin = Duration.milliseconds(999)

    init(_ books: Books) { self.books = books }

    /// An attempt as a server sees it.
    struct Attempt {
        fileprivate var account: Account?
        /// Of the endpoint that sent it.
        var profile = ""
        fileprivate var server = ""
        /// Of the newest rows, which come again in their order.
        fileprivate var isPreview = false
        /// -1 = not one of ours, as the gap where others went.
        var rows: [Int] = []
        var id = ""
        /// Its records say of which trackable they are.
        fileprivate var namesTrackables = false

        var isNobodys: Bool { account == nil }
    }

    /// An operator asked for a request, or for the end of a pause.
    /// - Parameter endsBackoff: an operator who resumes an endpoint does not wait for it.
    func operatorSpoke(endsBackoff: Bool) {
        for account in books.accounts.values {
            account.requests = []
            if endsBackoff { account.failed = [:] }
        }
    }

    func sent(_ request: UplinkRequest, to endpoint: WorldEndpoint) -> Attempt {
        let name = endpoint.backupFor ?? endpoint.name
        guard let account = books.accounts[name] else {
            books.fail(.numbersAddUp, "a request for \(name), which is not configured")
            return Attempt()
        }
        account.requests = account.requests.filter { books.host.time.seconds(since: $0) < 3600 } + [books.host.time]
        if account.requests.count > Self.requestsMax {
            books.fail(.politeness, "\(account.requests.count) requests in an hour for \(name), which takes nothing")
        }
        if let failed = account.failed[endpoint.name], books.host.time.duration(since: failed) < Self.backoffMin {
            books.fail(
                .politeness,
                "\(name) was asked \(books.host.time.seconds(since: failed)) s after \(endpoint.name) failed")
        }
        asks(account, at: endpoint.name)
        let payloads = request.broker.map { $0.messages.map(\.payload) }
        let body = payloads?.reduce(into: []) { $0 += $1 } ?? request.body
        let messages = payloads.flatMap { WireBody.records($0) }
        guard let records = payloads == nil ? WireBody.records(body, endpoint.profile) : messages?.records else {
            books.fail(.numbersAddUp, "a body that is not of the profile \(endpoint.profile)")
            return Attempt()
        }
        // A string of structured fields: between quotation marks.
        let key = request.headers.first { $0.name.lowercased() == "idempotency-key" }?.value ?? ""
        let id = messages?.batch ?? String(key.drop { $0 == "\"" }.prefix { $0 != "\"" })
        let digest = WireBody.digest(body)
        if let known = account.digests.updateValue(digest, forKey: id), known != digest, !id.isEmpty,
            books.isDiskTrusted
        {
            books.fail(.oneIDOneContent, "two bodies under the id \(id) of \(endpoint.name)")
        }
        account.sizes[id] = records.count
        if account.endpoint.isLatest, id.contains("-live-") {
            return position(
                records,
                Attempt(
                    account: account, profile: endpoint.profile, server: endpoint.name, isPreview: true,
                    rows: records.map { _ in -1 }, id: id))
        }
        let isPreview = account.endpoint.freshHead && id.contains("-preview-")
        let rows = records.map { look($0, account, id: id, isSingleRecord: records.count == 1, isPreview) ?? -1 }
        return Attempt(
            account: account, profile: endpoint.profile, server: endpoint.name, isPreview: isPreview, rows: rows,
            id: id,
            namesTrackables: records.allSatisfy { $0.trackable != nil })
    }

    /// What memory shows of an asset on its way is no row, and so has the number of none.
    private func position(_ records: [WireBody.Record], _ attempt: Attempt) -> Attempt {
        for record in records where record.key.event != "none" || identities[record.identity] != nil {
            books.fail(.oneIDOneContent, "\(record.identity) of \(attempt.id) is a position from memory and a row")
        }
        return attempt
    }

    /// Rows of which the broker has said that no one subscribes, and not only the oldest of them.
    func published(allTo name: String) {
        books.fail(.politeness, "\(name): more than one row is published again, though no one subscribes")
    }

    /// A request to see whether a server is there.
    func contacted(_ endpoint: WorldEndpoint, body: [UInt8], costsServer: Bool) {
        if !body.isEmpty { books.fail(.neverSettledByAStranger, "a contact of \(endpoint.name) brings rows") }
        guard costsServer else { return }
        let last = contacts.updateValue(books.host.time, forKey: endpoint.name)
        // From begin to begin; the way to the server takes longer or shorter.
        if let last, books.host.time.seconds(since: last) < 3595 {
            books.fail(.politeness, "\(endpoint.name) was contacted twice within an hour of one boot")
        }
    }

    func contactSettled(_ name: String) {
        books.fail(.neverSettledByAStranger, "the answer to a contact of \(name) has settled rows")
    }

    /// The host has booted, or the configuration is another: servers may be contacted again.
    func forgetContacts() { contacts = [:] }

    /// It goes on although its link has been gone for seconds.
    func isStranded(_ attempt: Attempt) {
        books.fail(.liveness, "\(attempt.id) still waits for an answer over a link that is gone")
    }

    /// A request that binds the device to the asset; it bears no books.rows.
    func sentBind(to endpoint: WorldEndpoint) -> Attempt {
        guard let account = books.accounts[endpoint.name] else {
            books.fail(.numbersAddUp, "a bind for \(endpoint.name), which is not configured")
            return Attempt()
        }
        asks(account, at: endpoint.name)
        return Attempt(
            account: account, profile: endpoint.profile, server: endpoint.name, id: "bind of \(endpoint.name)")
    }

    private func asks(_ account: Account, at server: String) {
        let name = account.endpoint.name
        account.asked = books.host.time
        account.inFlight += 1
        if account.inFlight > 1 { books.fail(.politeness, "\(account.inFlight) attempts of \(name) at a time") }
        guard let notBefore = account.notBefore[server], notBefore > books.host.time + .seconds(1) else { return }
        books.fail(
            .politeness, "\(name) was asked to wait \(notBefore.seconds(since: books.host.time)) s longer than it did")
    }

    private static func isOfAnotherQueue(_ one: String, _ other: String) -> Bool {
        guard let end = one.lastIndex(of: "/"), let otherEnd = other.lastIndex(of: "/") else { return false }
        return one[..<end] != other[..<otherEnd]
    }

    private func look(
        _ record: WireBody.Record, _ account: Account, id: String, isSingleRecord: Bool, _ isPreview: Bool
    ) -> Int? {
        // Where rows before it went a record becomes a gap. What memory made of it may end with the process. An endpoint
        // that has it in its quarantine sends it as it was refused, after others have sent the gap.
        let isTold = toldAsGap.contains("\(account.endpoint.name) \(record.identity)")
        if record.key.event == "gap" { toldAsGap.insert("\(account.endpoint.name) \(record.identity)") }
        if let known = identities.updateValue(record.key, forKey: record.identity), known != record.key,
            books.isDiskTrusted,
            known.ms != record.key.ms
                || record.key.event != "gap" && (known.event != "gap" || isTold && books.troubledEnds.isEmpty)
        {
            books.fail(.oneIDOneContent, "\(record.identity) names \(known) and \(record.key)")
        }
        var indexes = books.byKey[record.key] ?? []
        // A full queue makes gaps of fixes, which then look like any gap of that time.
        if record.key.event == "gap" {
            let others = (books.byTime[record.key.ms] ?? []).filter { index in
                !indexes.contains(index) && (books.rows[index].published || account.endpoint.isEngine)
            }
            indexes += others
        }
        if record.key.event == "none" {
            // Of a damaged file, a row whose crossing or trip could not be read comes as a plain one.
            let others = books.isDiskTrusted ? record.mayBeCrossing ? ["geofence"] : [] : ["geofence", "trip"]
            for event in others { indexes += books.byKey[RowKey(ms: record.key.ms, event: event)] ?? [] }
        }
        // A damaged file may have lost the name.
        if let trackable = record.trackable, books.isDiskTrusted || !trackable.hasPrefix("unknown-") {
            indexes.removeAll { books.rows[$0].trackable.map { $0 != trackable } ?? false }
        }
        // A crossing and a fix of the same instant look the same in some profiles.
        let wanted = indexes.filter { books.rows[$0].published || account.endpoint.isEngine }
        if !wanted.isEmpty { indexes = wanted }
        guard !indexes.isEmpty else {
            let owner = record.trackable ?? "the device"
            books.fail(.neverSettledByAStranger, "\(record.key) of \(owner) was sent and never recorded")
            return nil
        }
        // Two records may look the same, as the gaps of two starts: one that ended with its process is the last choice.
        // What waited in memory gets another name on the disk.
        func isRenamed(_ index: Int) -> Bool {
            account.named[index].map { Self.isOfAnotherQueue($0, record.identity) } ?? false
        }
        let fresh = indexes.filter {
            $0 >= account.since && (!account.attempted.contains($0) || isRenamed($0) && account.acked[$0] == nil)
        }
        // Not every profile says of which trackable a record is: two of the same time are distinguished by their names.
        func isFree(_ index: Int) -> Bool {
            account.named[index].map { $0 == record.identity || isRenamed(index) } ?? true
        }
        let index =
            rowNamed[record.identity].flatMap { indexes.contains($0) && isFree($0) ? $0 : nil }
            ?? fresh.first { !books.rows[$0].isGone && isFree($0) } ?? fresh.first { !books.rows[$0].isGone }
            // A spare that is one no more may be sent what was recorded before.
            ?? fresh.first ?? indexes.first { !account.attempted.contains($0) && isFree($0) } ?? indexes.last ?? 0
        account.named[index] = record.identity
        rowNamed[record.identity] = index
        guard !isPreview else { return index }
        let name = account.endpoint.name
        let newest = account.newest[books.rows[index].trackable] ?? -1
        if account.attempted.insert(index).inserted {
            if index < newest, index >= account.unseenBefore, indexes.count == 1, account.endpoint.isOrdered,
                books.isDiskTrusted
            {
                if books.mayComeFromQuarantine(index, of: name) {
                    // Out of its order as it was asked for.
                } else if account.unsentUndone > 0, books.rows[index].process != books.host.process {
                    account.unsentUndone -= 1
                } else {
                    books.fail(.inOrder, "\(name): row \(index) comes for the first time, behind row \(newest)")
                }
            }
            // One row alone may be a probe of what is behind a batch that is refused. The gap of a start may look like one that a
            // full queue has made of a row.
            if !isSingleRecord, indexes.count == 1 { account.newest[books.rows[index].trackable] = max(newest, index) }
        } else if let process = account.acked[index], indexes.count == 1, account.endpoint.isOrdered,
            books.isDiskTrusted
        {
            duplicates += 1
            if process == books.host.process {
                books.fail(
                    .duplicatesExplained, "\(name): row \(index) is sent again in \(id), though its acceptance was seen"
                )
            } else if !books.troubledEnds.contains(process),
                // A repeated batch that is refused is taken apart: its parts bring no other books.rows.
                account.repeatedRows[process, default: []].insert(index).inserted,
                account.repeated[process, default: []].insert(id).inserted, account.repeated[process]?.count ?? 0 > 1
            {
                books.fail(
                    .duplicatesExplained, "\(name): more than two batches are sent again after process \(process) ended"
                )
            }
        }
        return index
    }

    private func note(_ attempt: Attempt, _ account: Account, accepts: Bool, isRefusal: Bool) {
        if !accepts {
            guard attempt.rows.count == 1 else { return }
            if isRefusal { account.alone[attempt.id, default: .init()].isRefused = true }
            account.alone[attempt.id, default: .init()].failedAt = books.host.time
            return
        }
        account.alone[attempt.id] = nil
        for (id, var alone) in account.alone {
            guard let failedAt = alone.failedAt else { continue }
            (alone.proofs, alone.first, alone.last) = (alone.proofs + 1, alone.first ?? failedAt, failedAt)
            alone.failedAt = nil
            account.alone[id] = alone
        }
    }

    /// Rows that a server refuses whose poison is this.
    func isPoisoned(_ attempt: Attempt, _ divisor: Int64) -> [Int] {
        attempt.rows.filter { $0 >= 0 && books.rows[$0].key.ms % divisor == 0 }
    }

    /// Of the rows that this process did not see the endpoint accept, so many are refused by a server whose poison is this. Some of
    /// them may be in quarantine, or on the disk as accepted.
    func poisonedRows(for name: String, _ divisor: Int64) -> Int {
        guard let account = books.accounts[name] else { return 0 }
        return books.rows[account.since...].indices.count {
            books.rows[$0].key.ms % divisor == 0 && account.acked[$0] != books.host.process
        }
    }

    /// - Parameter refused: places in the body that the server did not take.
    func stored(_ attempt: Attempt, but refused: Set<Int> = []) {
        for (place, row) in attempt.rows.enumerated() where !refused.contains(place) && row >= 0 {
            attempt.account?.stored.insert(row)
            if !attempt.namesTrackables { attempt.account?.storedTwins[books.rows[row].key, default: 0] += 1 }
        }
    }

    /// An answer is to name rows that the server never wants.
    func refuses(_ attempt: Attempt, _ refused: Set<Int>) {
        guard attempt.rows.count == 1, refused.count == 1 else { return }
        attempt.account?.alone[attempt.id, default: .init()].isRefused = true
    }

    /// The daemon hears of an answer, or gives the attempt up.
    /// - Parameters:
    ///   - accepts: it says that rows were stored.
    ///   - retryAfter: seconds that it asks for.
    ///   - isFailure: of the server, whatever the rows.
    ///   - isRefusal: of the rows.
    func answered(
        _ attempt: Attempt, accepts: Bool, but refused: Set<Int> = [], retryAfter: Int? = nil, isFailure: Bool = false,
        isRefusal: Bool = false
    ) {
        guard let account = attempt.account else { return }
        account.inFlight = max(0, account.inFlight - 1)
        account.failed[attempt.server] = isFailure && !attempt.rows.isEmpty ? books.host.time : nil
        account.notBefore[attempt.server] = retryAfter.map { books.host.time + .seconds(Int64($0)) }
        account.wasTaken = accepts
        // A row that is refused alone goes to the quarantine.
        if !accepts, attempt.rows.count == 1 { account.answered[attempt.id] = (1, 0) }
        if !attempt.isPreview {
            let acceptsAny = accepts && refused.count < max(1, attempt.rows.count)
            note(attempt, account, accepts: acceptsAny, isRefusal: isRefusal)
        }
        guard accepts else { return }
        account.requests = []
        guard !books.dissolved.contains(attempt.id) else { return }
        if !attempt.isPreview { account.answered[attempt.id] = (attempt.rows.count, 0) }
        for (place, row) in attempt.rows.enumerated() where !refused.contains(place) && row >= 0 {
            accepted += 1
            if attempt.isPreview { continue }
            account.acked[row] = books.host.process
            account.had.insert(row)
        }
    }
}
