// Names and directions as a person reads them.

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
