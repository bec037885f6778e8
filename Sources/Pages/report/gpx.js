// What is kept as GPX 1.1, for other programs: trips as tracks, stops as waypoints.

const GPX_HEAD = `<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="waypost" xmlns="http://www.topografix.com/GPX/1/1" xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v2">
`;
const XML_ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const escapedXML = text => text.replace(/[&<>]/g, each => XML_ENTITIES[each]).replace(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, "\ufffd");
const gpxTime = ms => `<time>${new Date(ms).toISOString()}</time>`;

/** @param {Track} track what some setting keeps. @returns {string} */
export function gpxOf(log, track) {
  const stops = log.stops.filter(stop => stop.lat != null).map((stop, index) => (
    `<wpt lat="${stop.lat / 1e7}" lon="${stop.lon / 1e7}">${gpxTime(stop.from)}<name>stop ${index + 1}</name><type>stop</type></wpt>\n`));
  return `${GPX_HEAD}<metadata><name>${escapedXML(log.name)}</name></metadata>\n${stops.join("")}${log.trips.map(trip => tripOf(log, track, trip)).join("")}</gpx>\n`;
}

/** With an altitude at each point or at none: readers take a point without one beside others to be at 0 m. */
function tripOf(log, track, trip) {
  const { from, to } = track.range(trip);
  const hasAltitude = track.rows.subarray(from, to).every(row => log.altitude(row) !== null);
  const points = [];
  for (let index = from; index < to; index += 1) {
    if (index > from && track.breaks.has(index)) points.push("</trkseg><trkseg>\n");
    points.push(pointOf(log, track.rows[index], hasAltitude));
  }
  return `<trk><name>trip ${trip.number}</name><type>trip</type><trkseg>\n${points.join("")}</trkseg></trk>\n`;
}

function pointOf(log, row, hasAltitude) {
  const [speed, satellites] = [log.speed(row), log.satellites(row)];
  return `<trkpt lat="${log.latitude(row)}" lon="${log.longitude(row)}">${hasAltitude ? `<ele>${log.altitude(row)}</ele>` : ""}${gpxTime(log.time[row])}`
    + (satellites === null ? "" : `<sat>${satellites}</sat>`)
    + (speed === null ? "" : `<extensions><gpxtpx:TrackPointExtension><gpxtpx:speed>${speed}</gpxtpx:speed></gpxtpx:TrackPointExtension></extensions>`)
    + "</trkpt>\n";
}
