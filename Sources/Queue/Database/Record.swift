import WaypostCore

/// What a row has in tables of its own, and the numbers and names that rows refer to.
enum Record {
    static let crossingColumns = "fence, name, action, source"
    static let tripColumns = "start_ms, start_lat_e7, start_lon_e7, end_ms, distance_dm, idle_ms, max_speed_cms"
    static let detailTables = ["geofence", "trip", "settings", "network"]

    static let actions: [GeofenceCrossing.Action] = [.enter, .exit, .dwell]
    private static let sources: [GeofenceCrossing.Source] = [.device, .beacon]
    static func number(of action: GeofenceCrossing.Action) -> Int64 { Int64(actions.firstIndex(of: action) ?? 0) }

    /// The column `source`: a bit with the number of the source, one for an EXIT whose ENTER has no position, and above them
    /// how many bytes of the id come before the server's own; 0 = the fence came from no server.
    static func origin(of crossing: GeofenceCrossing) -> Int64 {
        Int64(sources.firstIndex(of: crossing.source) ?? 0) | (crossing.entryIsUnplaced ? 2 : 0)
            | Int64(crossing.id.count(before: crossing.serverID)) << 2
    }

    /// From the columns fence, name, action and source.
    static func crossing(_ row: Statement, from column: Int32) -> GeofenceCrossing {
        let action = Int(clamping: row.integer(column + 2))
        let (id, origin) = (row.text(column), row.integer(column + 3))
        var crossing = GeofenceCrossing(
            id: id, name: row.optionalText(column + 1),
            action: actions.indices.contains(action) ? actions[action] : .enter,
            source: sources[Int(origin & 1)], serverID: id.end(after: Int(clamping: origin >> 2)))
        crossing.entryIsUnplaced = origin & 2 != 0
        return crossing
    }

    /// From the columns `tripColumns`.
    static func trip(_ row: Statement, from column: Int32) -> TripSummary {
        TripSummary(
            start: plausible(row.integer(column)),
            startCoordinate: Coordinate(
                latitudeE7: Int32(clamping: row.integer(column + 1)),
                longitudeE7: Int32(clamping: row.integer(column + 2))),
            end: plausible(row.integer(column + 3)), distance: Double(row.integer(column + 4)) / 10,
            idle: Double(row.integer(column + 5)) / 1000,
            maxSpeed: row.optionalInteger(column + 6).map { Double($0) / 100 })
    }

    static let networkColumns = "ssid, bssid, ip"

    /// From the columns `networkColumns`.
    static func network(_ row: Statement, from column: Int32) -> NetworkContext {
        NetworkContext(
            ssid: row.optionalText(column), bssid: row.optionalText(column + 1), ip: row.optionalText(column + 2))
    }

    /// Within a hundred thousand years of 1970, whatever a damaged file says, so that nothing overflows later.
    static func plausible(_ milliseconds: Int64) -> UTCTime {
        UTCTime(milliseconds: max(-3_155_760_000_000_000, min(3_155_760_000_000_000, milliseconds)))
    }

    /// The small tables that rows refer to by number.
    struct Names {
        var trackables = NameTable(.trackable)
        var boots = NameTable(.boot)
        var reasons = NameTable(.reason)
    }

    /// Few enough names that looking through them costs less than hashing.
    struct NameTable {
        let table: Schema.Summed
        private var entries: [(number: Int64, name: String)] = []

        init(_ table: Schema.Summed) { self.table = table }

        subscript(number: Int64) -> String? {
            get {
                for index in entries.indices where entries[index].number == number { return entries[index].name }
                return nil
            }
            set {
                guard let newValue else { return }
                entries.removeAll { $0.number == number }
                entries.append((number, newValue))
            }
        }

        subscript(name: String) -> Int64? {
            for index in entries.indices where entries[index].name == name { return entries[index].number }
            return nil
        }

        var count: Int { entries.count }
    }
}
