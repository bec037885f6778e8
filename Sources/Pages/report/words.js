// How times, lengths and amounts are written.

/** Whether times are in UTC; else they are in the time zone of the browser. */
export const zone = { isUTC: true };

const two = value => String(value).padStart(2, "0");

/** The parts of a time in the chosen zone, as a date whose UTC parts are those of the zone. */
function zoned(ms) {
  return zone.isUTC ? new Date(ms) : new Date(ms - new Date(ms).getTimezoneOffset() * 60000);
}

export const zoneName = () => zone.isUTC ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
export const day = ms => zoned(ms).toISOString().slice(0, 10);
export const clock = ms => zoned(ms).toISOString().slice(11, 19);
export const minutes = ms => zoned(ms).toISOString().slice(11, 16);
const LONG_DAY = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
export const longDay = ms => LONG_DAY.format(zoned(ms));

/** "2026-03-02 07:00 – 07:31", with the second day if it is another. */
export function period(from, to) {
  return `${day(from)} ${minutes(from)} – ${day(to) === day(from) ? "" : `${day(to)} `}${minutes(to)}`;
}

/** "3 h 05 min", "2 min 25 s", "7 s". */
export function span(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s` : `${seconds} s`;
}

/** As `span`, to the minute. */
export function shortSpan(ms) {
  const seconds = Math.round(ms / 1000);
  const whole = Math.round(seconds / 60);
  if (whole >= 60) return `${Math.floor(whole / 60)} h ${two(whole % 60)}`;
  return seconds >= 60 ? `${whole} min` : `${seconds} s`;
}

export function length(metres) {
  if (metres >= 99_950) return `${amount(Math.round(metres / 1000))} km`;
  if (metres >= 999.5) return `${(metres / 1000).toFixed(1)} km`;
  return `${metres > 0 && metres < 9.95 ? metres.toFixed(1) : Math.round(metres)} m`;
}

/** Thin spaces between thousands. */
export const amount = value => value.toLocaleString("en").replaceAll(",", "\u2009");

export function bytes(count) {
  if (count == null) return "–";
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} MB`;
  return count >= 1000 ? `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)} kB` : `${count} B`;
}

export const percent = (part, whole) => `${whole ? Math.round(part / whole * 100) : 0} %`;
export const kilometresPerHour = metresPerSecond => `${Math.round(metresPerSecond * 3.6)} km/h`;
export const plural = (count, one, many = `${one}s`) => `${amount(count)} ${count === 1 ? one : many}`;

const GAP_REASONS = {
  "no-sky": "the receiver had no position", "receiver-lost": "the receiver was silent", power: "the power was off", restart: "no process ran",
};
export const gapReason = reason => GAP_REASONS[reason] ?? String(reason ?? "no fix came");

export function verdictWords({ kind, reason }) {
  if (kind === "seen") return "not kept";
  if (kind === "void") return "no fix";
  return reason ? `${kind}: ${reason}` : kind;
}
