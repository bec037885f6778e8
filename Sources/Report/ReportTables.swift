import Positioning
import Replay
import Tracking

/// The journey and the summary as HTML that can be read without scripts.
struct ReportTables {
    private let data: ReportData
    private var html = ""

    static func html(of data: ReportData) -> String {
        var tables = ReportTables(data)
        tables.summary()
        tables.journey()
        return tables.html
    }

    private init(_ data: ReportData) { self.data = data }

    private mutating func summary() {
        html += "<table class=\"plain\"><caption>Summary</caption><tbody>\n"
        row(
            "time",
            "\(InWords.stamp(UTCTime(milliseconds: data.first))) to \(InWords.stamp(UTCTime(milliseconds: data.last))) UTC"
        )
        row("distance", InWords.distance(data.journey.metres))
        row("trips", "\(data.journey.trips.count)")
        row("moving", InWords.span(milliseconds: data.journey.moving))
        row("fixes", "\(data.decoded.fixes), \(data.tracked.admitted) of them believed")
        row("kept", "\(data.published)")
        row("gaps", "\(data.journey.gaps.count)")
        html += "</tbody></table>\n"
    }

    private mutating func row(_ name: String, _ value: String) {
        html += "<tr><th scope=\"row\">\(name)</th><td>\(Markup.text(value))</td></tr>\n"
    }

    private mutating func journey() {
        if let nothing = data.nothing { html += "<p>\(Markup.text(nothing)).</p>\n" }
        html +=
            "<table class=\"plain\"><caption>Trips, stops and gaps</caption><thead><tr><th scope=\"col\">from (UTC)</th>"
            + "<th scope=\"col\">to</th><th scope=\"col\">what</th></tr></thead><tbody>\n"
        for leg in legs.sorted(by: { $0.start < $1.start }) {
            html +=
                "<tr><td>\(InWords.stamp(UTCTime(milliseconds: leg.start)))</td><td>\(leg.isOpen ? "…" : InWords.stamp(UTCTime(milliseconds: leg.end)))</td>"
                + "<td>\(Markup.text(leg.words))</td></tr>\n"
        }
        html += "</tbody></table>\n"
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
        if trip.idle >= 1 { words += ", \(InWords.span(seconds: trip.idle)) of it standing" }
        if let speed = trip.maxSpeed { words += ", at most \(InWords.speed(speed))" }
        return words + ", \(trip.kept) kept. \(trip.departure.words)"
    }
}
