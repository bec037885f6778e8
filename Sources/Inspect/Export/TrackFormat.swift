/// Forms in which other programs read kept locations.
package enum TrackFormat: String, Sendable, CaseIterable {
    /// GPX 1.1: trips as tracks, stops as waypoints.
    case gpx
    /// GeoJSON (RFC 7946): trips as lines with the times of their points, stops as points.
    case geojson
    /// A line per location, whatever its event.
    case csv
    /// KML 2.2 with Google's tracks, which carry times.
    case kml
}
