import WaypostCore

/// What the user asks of a report.
package struct ReportOptions: Sendable {
    /// The title; nil = the name of the log.
    package var title: String?
    /// Metres around the ends of trips within which nothing is shown; nil = everything is.
    package var hideEnds: Double?
    /// A URL with `{z}`, `{x}` and `{y}` of map tiles that the reader may switch on; nil = none.
    package var tiles: String?
    /// With which the page begins; the reader may choose others.
    package var units = DisplayUnits.metric
    /// Who made the tiles.
    package var attribution: String?

    package init() {}

    /// Scheme and host of the URL of tiles, for the page's content security policy; nil when it is not one that a page can use.
    package static func origin(_ url: String) -> String? {
        guard let end = url.firstOccurrence(of: "://") else { return nil }
        let scheme = url[..<end.lowerBound]
        let host = url[end.upperBound...].prefix { $0 != "/" }
        let isPlain = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: ":"):
                true
            default: false
            }
        }
        guard scheme == "https" || scheme == "http", !host.isEmpty, isPlain else { return nil }
        guard ["{z}", "{x}", "{y}"].allSatisfy({ url.firstOccurrence(of: $0) != nil }) else { return nil }
        return "\(scheme)://\(host)"
    }
}
