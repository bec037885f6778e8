// The scale of the timeline: from time to length. Long parking can be shortened, so the scale consists of pieces.
import { lowerBound } from "./data.js";

const LONG_PARKED_SHARE = 0.6;
const LONG_LOG = 2 * 3600_000;

export class TimeScale {
  #log;
  /** Lengths of the rows. */
  #lengths;
  isShortened = false;
  /** { from, to } in time, { start, end } in length; `isShort` if time is shortened there. */
  pieces = [];
  whole = 1;

  constructor(log) {
    this.#log = log;
    this.#lengths = new Float64Array(log.rows);
    const parked = log.stops.reduce((sum, stop) => sum + stop.to - stop.from, 0);
    const all = log.last - log.first;
    this.shorten(log.trips.length > 0 && all > LONG_LOG && parked > LONG_PARKED_SHARE * all);
  }

  shorten(isShortened) {
    this.isShortened = isShortened;
    this.pieces = [];
    let [time, length] = [this.#log.first, 0];
    const add = (to, factor) => {
      const end = length + (to - time) * factor;
      this.pieces.push({ from: time, to, start: length, end, isShort: factor < 1 });
      [time, length] = [to, end];
    };
    for (const { from, to, shown } of isShortened ? this.#longStops() : []) {
      if (from <= time || to <= from) continue;
      add(from, 1);
      add(to, shown / (to - from));
    }
    add(Math.max(this.#log.last, time + 1), 1);
    this.whole = length;
    this.#measureRows();
  }

  /** The middle of each stop that is long beside the time under way; the ends stay as they are. */
  #longStops() {
    const moving = this.#log.trips.reduce((sum, trip) => sum + trip.to - trip.from, 0);
    const limit = Math.max(120_000, moving * 0.04);
    return this.#log.stops.filter(stop => stop.to - stop.from > limit * 1.3).map(({ from, to }) => {
      const edge = Math.min(limit * 0.35, (to - from) / 2);
      return { from: from + edge, to: Math.min(this.#log.last, to - edge), shown: Math.min(to - from - 2 * edge, limit * 0.3) };
    });
  }

  #measureRows() {
    let at = 0;
    for (let row = 0; row < this.#log.rows; row += 1) {
      const time = this.#log.time[row];
      while (at < this.pieces.length - 1 && time > this.pieces[at].to) at += 1;
      this.#lengths[row] = lengthIn(this.pieces[at], time);
    }
  }

  lengthAt(time) {
    return lengthIn(this.#piece("to", time), time);
  }

  timeAt(length) {
    const piece = this.#piece("end", length);
    const part = (length - piece.start) / (piece.end - piece.start || 1);
    return piece.from + part * (piece.to - piece.from);
  }

  /** The first piece whose end is not below a value; the last beyond it. */
  #piece(end, value) {
    let [low, high] = [0, this.pieces.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.pieces[middle][end] < value) low = middle + 1;
      else high = middle;
    }
    return this.pieces[low];
  }

  lengthOfRow(row) { return this.#lengths[row]; }
  rowFrom(length) { return lowerBound(this.#lengths, length); }
}

function lengthIn(piece, time) {
  return piece.start + (time - piece.from) / (piece.to - piece.from || 1) * (piece.end - piece.start);
}
