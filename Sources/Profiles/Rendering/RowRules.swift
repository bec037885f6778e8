import WaypostCore

/// What a profile says of rows before they are in a batch: how its server sees them, which it can never be sent, and how large they
/// become. It has the rows, since one that is passed on is copied.
package struct RowRules {
    /// Why a row that is not left out is never sent all the same.
    package enum Objection: Hashable, Sendable {
        /// It lacks a value that the server needs.
        case unfit(String)
        /// It breaks a limit of the profile.
        case refused(rule: String)
    }

    /// As the server sees them.
    package let rows: [QueuedLocation]
    private let settings: EndpointSettings
    private let profile: CompiledProfile
    /// For values of single rows only.
    private let context: BatchContext

    package init(_ settings: EndpointSettings, rows: [QueuedLocation]) {
        self.settings = settings
        let profile = settings.profile.compiled
        self.profile = profile
        self.rows = profile.parts.geofenceActions == nil ? rows : rows.map(profile.presented)
        context = BatchContext(settings, RenderContext(), Batch(endpoint: settings.name, id: "", rows: [], sentMs: nil))
    }

    /// Rows with the same number have the same template, and may share a request; nil where the profile leaves them out.
    package func template(_ place: Int) -> Int? {
        if case .variant(let number) = profile.choice(for: rows[place].location.event) { number } else { nil }
    }

    /// Whether the kind of the row is left out: its event, or that it has no position.
    package func isSkipped(_ place: Int) -> Bool {
        if template(place) == nil { return true }
        if !rows[place].location.isPlaced, !profile.parts.withoutPosition.contains(rows[place].location.event) {
            return true
        }
        // Nor is anything ended that the server was not told of.
        return rows[place].location.geofence?.entryIsUnplaced == true
            && !profile.parts.withoutPosition.contains(.geofence)
    }

    /// Which value the row lacks, or which limit it breaks; nil when it can be sent. `isSkipped` is asked first.
    package func objection(_ place: Int) -> Objection? {
        for name in profile.parts.require where context.value(name, of: rows[place]) == nil {
            return .unfit(name.rawValue)
        }
        // Always there, except in rows that no trackable selected.
        if settings.profile.gathersTrackables || profile.parts.shared.contains(.trackable),
            rows[place].location.trackable == nil
        {
            return .unfit(RecordName.trackable.rawValue)
        }
        for limit in profile.parts.limits {
            guard let value = context.value(limit.name, of: rows[place]), let key = limit.rule.broken(by: value) else {
                continue
            }
            return .refused(rule: "limits.\(limit.name.rawValue).\(key)")
        }
        for name in profile.parts.shared {
            guard let word = rows[place].word(name), word.utf8.contains(where: \.breaksHeader) else { continue }
            return .refused(rule: "headers")
        }
        return nil
    }

    /// An upper bound of the bytes of the body of these rows, without rendering it.
    package func sizeBound(_ places: [Int]) -> Int {
        // Texts of endpoint and batch: a batch id consists of the endpoint's name and two numbers.
        let own = max(settings.device.utf8.count, settings.baseURL.utf8.count, settings.name.utf8.count + 64)
        var bound = profile.boundOfFrame.bytes(longest: own)
        for place in places {
            let more = profile.boundOfRow.bytes(longest: max(own, rows[place].longestText))
            bound = bound.addingReportingOverflow(more).overflow ? .max : bound + more
        }
        return bound
    }

    /// Bytes of the body of these rows under an id that is as long as it can be, since they have none yet.
    package func size(_ places: some Sequence<Int>) -> Int {
        let rows = places.map { self.rows[$0] }
        let id = "00000000-\(settings.name)-\(rows.first?.seq ?? 0)-\(rows.last?.seq ?? 0)-g99"
        let batch = Batch(
            endpoint: settings.name, id: id, rows: rows, sentMs: 1_700_000_000_000,
            outbox: [UInt8](repeating: 0, count: 16), newest: settings.profile.usesNewest ? rows.last : nil)
        let context = RenderContext(identify: { _, _ in "00000000-0000-8000-8000-000000000000" })
        return RequestRenderer(settings, in: context).request(for: batch).body.count
    }
}
