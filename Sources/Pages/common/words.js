// How times, lengths and amounts are written.

/** Whether times are in UTC; else they are in the time zone of the browser. */
export const zone = { isUTC: true };

const two = value => String(value).padStart(2, "0");

/** The parts of a time in the chosen zone, as ISO 8601 has them; null for a number that is no time: it may come from anyone. */
export function zoned(ms) {
  const date = new Date(zone.isUTC ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** `2026-03-02` */
export const day = ms => zoned(ms)?.slice(0, 10) ?? "?";
/** `07:08:09` */
export const clock = ms => zoned(ms)?.slice(11, 19) ?? "?";
/** `07:08` */
export const minutes = ms => zoned(ms)?.slice(11, 16) ?? "?";

/** "3 d 4 h", "3 h 05 min", "2 min 25 s", "7 s"; what is negative is 0. */
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds >= 48 * 3600) return `${Math.floor(seconds / 86_400)} d ${Math.floor(seconds / 3600) % 24} h`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s` : `${seconds} s`;
}

/** A whole number, with spaces that do not break between thousands. */
export const amount = count => String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");
export const plural = (count, one, many = `${one}s`) => `${amount(count)} ${count === 1 ? one : many}`;

/** Units of speed, each with that of the lengths beside it. */
export const UNITS = [
  { name: "km/h", speed: "km/h", perSecond: 3.6, way: "km", metres: 1000 },
  { name: "mph", speed: "mph", perSecond: 3600 / 1609.344, way: "mi", metres: 1609.344 },
  { name: "knots", speed: "kn", perSecond: 3600 / 1852, way: "nmi", metres: 1852 },
];

/** The unit in which speeds and lengths are written. */
export const units = { chosen: UNITS[0] };
/** A speed in metres per second. */
export const speedIn = metresPerSecond => `${Math.round(metresPerSecond * units.chosen.perSecond)}\u00a0${units.chosen.speed}`;
