// Times and numbers as a person reads them.

const two = number => String(number).padStart(2, "0");

/** `07:08:09`, UTC. */
export function clock(milliseconds) {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? "?" : `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
}

/** `2026-03-02`, UTC. */
export function day(milliseconds) {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? "?" : date.toISOString().slice(0, 10);
}

/** `3 s`, `2 min 05 s`, `1 h 07 min`, `3 d`: of a length that is not negative. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** `12 345`, with spaces that do not break. */
export function whole(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function plural(number, one, many) {
  return `${whole(number)} ${number === 1 ? one : many}`;
}

/** @param {?number} metresPerSecond */
export function speedText(metresPerSecond) {
  return metresPerSecond == null ? "" : `${Math.round(metresPerSecond * 3.6)}\u00a0km/h`;
}

/** At most `limit` characters. */
export function cut(text, limit) {
  const letters = Array.from(text);
  return letters.length > limit ? `${letters.slice(0, limit - 1).join("")}…` : text;
}

/** At most `limit` characters, with what distinguishes long names: their end. */
export function cutMiddle(text, limit) {
  const letters = Array.from(text);
  if (letters.length <= limit) return text;
  const end = Math.floor(limit * 0.45);
  return `${letters.slice(0, limit - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

/** A direction as people say it, from degrees. */
export function compass(degrees) {
  return ["N", "NE", "E", "SE", "S", "SW", "W", "NW"][Math.round(degrees / 45) % 8];
}
