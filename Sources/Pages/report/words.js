// How the report writes times, lengths and amounts, beside what all pages write alike.
import { amount, day, minutes, speedIn, units, zone, zoned } from "../common/words.js";

export const zoneName = () => zone.isUTC ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
const LONG_DAY = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
export const longDay = ms => LONG_DAY.format(new Date(zoned(ms)));

/** "2026-03-02 07:00 – 07:31", with the second day if it is another. */
export function period(from, to) {
  return `${day(from)} ${minutes(from)} – ${day(to) === day(from) ? "" : `${day(to)} `}${minutes(to)}`;
}

/** As `span`, to the minute. */
export function shortSpan(ms) {
  const seconds = Math.round(ms / 1000);
  const whole = Math.round(seconds / 60);
  if (whole >= 48 * 60) return `${Math.floor(whole / 1440)} d ${Math.floor(whole / 60) % 24} h`;
  if (whole >= 60) return `${Math.floor(whole / 60)} h ${String(whole % 60).padStart(2, "0")}`;
  return seconds >= 60 ? `${whole} min` : `${seconds} s`;
}

/** In metres below a kilometre. */
export function length(metres) {
  const { way, metres: unit } = units.chosen;
  if (metres >= 99.95 * unit) return `${amount(Math.round(metres / unit))} ${way}`;
  if (metres >= 999.5) return `${(metres / unit).toFixed(1)} ${way}`;
  return `${metres > 0 && metres < 9.95 ? metres.toFixed(1) : Math.round(metres)} m`;
}

/** "on average 31 km/h" of a way; null where no time passed. */
export const averageWords = (metres, ms) => ms > 0 ? `on average ${speedIn(metres / ms * 1000)}` : null;

/** "120 m up, 80 m down"; null where there is neither. */
export const climbWords = climb => climb && (climb.up || climb.down) ? `${Math.round(climb.up)} m up, ${Math.round(climb.down)} m down` : null;

export function bytes(count) {
  if (count == null) return "–";
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} MB`;
  return count >= 1000 ? `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)} kB` : `${count} B`;
}

export const percent = (part, whole) => `${whole ? Math.round(part / whole * 100) : 0} %`;

export function verdictWords({ kind, reason }) {
  if (kind === "seen") return reason === "schedule" ? "outside of the hours" : "not kept";
  if (kind === "void") return "no fix";
  return reason ? `${kind}: ${reason}` : kind;
}
