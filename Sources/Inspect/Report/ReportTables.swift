import WaypostCore
import WaypostTracking

/// What the page says without scripts: a summary and the journey, which the script replaces.
struct ReportTables {
    private let data: ReportData

    static func html(of data: ReportData) -> String {
        let tables = ReportTables(data: data)
        return tables.summary + tables.journey
    }

    private var summary: String {
        var table = HTMLTable("Summary", [.words(""), .words("")])
        let (first, last) = (UTCTime(milliseconds: data.first), UTCTime(milliseconds: data.last))
        table.row("time", "\(InWords.stamp(first)) to \(InWords.stamp(last)) UTC")
        table.row("distance", InWords.distance(data.journey.metres))
        table.row("trips", "\(data.journey.trips.count)")
        table.row("moving", InWords.span(milliseconds: data.journey.moving))
        table.row("fixes", "\(data.decoded.fixes), \(data.tracked.admitted) of them believed")
        table.row("kept", "\(data.published)")
        table.row("gaps", "\(data.journey.gaps.count)")
        return table.html
    }

    private var journey: String {
        var table = HTMLTable("Trips, stops and gaps", [.words("from (UTC)"), .words("to"), .words("what")])
        for leg in legs.sorted(by: { $0.start < $1.start }) {
            let end = leg.isOpen ? "…" : InWords.stamp(UTCTime(milliseconds: leg.end))
            table.row(InWords.stamp(UTCTime(milliseconds: leg.start)), end, leg.words)
        }
        return (data.nothing.map { "<p>\(Markup.text($0)).</p>\n" } ?? "") + table.html
    }

    private struct Leg {
        var start: Int64
        var end: Int64
        var isOpen: Bool
        var words: String
    }

    private var legs: [Leg] {
        let trips = data.journey.trips.map { trip in
            Leg(start: trip.start, end: trip.end, isOpen: trip.isOpen, words: Self.words(of: trip))
        }
        let stops = data.journey.stops.map { stop in
            Leg(
                start: stop.start, end: stop.end, isOpen: stop.isOpen,
                words: "Parked for \(InWords.span(milliseconds: stop.end - stop.start)). \(stop.why.words)")
        }
        let gaps = data.journey.gaps.map { gap in
            Leg(
                start: gap.start, end: gap.end, isOpen: gap.isOpen,
                words: "Gap of \(InWords.span(milliseconds: gap.end - gap.start)): \(gap.reason.words).")
        }
        return trips + stops + gaps
    }

    private static func words(of trip: Journey.Trip) -> String {
        var words = "Trip \(trip.number): \(InWords.distance(trip.metres)) in "
        words += InWords.span(milliseconds: trip.end - trip.start)
        if trip.idle >= 1 { words += ", \(InWords.span(seconds: trip.idle)) of it halted" }
        if trip.end > trip.start {
            words += ", on average \(InWords.speed(trip.metres / Double(trip.end - trip.start) * 1000))"
        }
        if let speed = trip.maxSpeed { words += ", at most \(InWords.speed(speed))" }
        words += ", \(trip.kept) kept"
        if trip.isOpen { words += ", still under way at the end of the log" }
        return "\(words). \(trip.departure.words)"
    }
}
