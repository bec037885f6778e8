// Where a device was: its locations in the order of its queue, each once.
import { Points } from "../common/projection.js";

/** Over all devices; what is older is no longer shown. */
const LOCATIONS_MAX = 100000;
const LEAST_PER_DEVICE = 500;

/** What a location is in the stream, see `write` in Sources/Collector/Page/LiveEvents.swift. */
export function readLocation([seq, time, latitude, longitude, accuracy, speed, course, moving, event, reason]) {
  return { seq, time, latitude, longitude, accuracy, speed, course, moving, event, reason };
}

export class Track {
  #locations = [];
  /** Outboxes in order of appearance: a queue that was replaced begins at 1 again. */
  #outboxes = [];
  #points = null;
  #breaks = null;

  get length() { return this.#locations.length; }

  /** The end of the track. */
  get last() { return this.#locations.at(-1) ?? null; }

  /** @returns {boolean} whether it is new. */
  add(outbox, location) {
    if (!this.#outboxes.includes(outbox)) this.#outboxes.push(outbox);
    const entry = { ...location, outbox: this.#outboxes.indexOf(outbox) };
    const index = this.#placeOf(entry);
    const there = this.#locations[index];
    if (there && there.outbox === entry.outbox && there.seq === entry.seq) return false;
    if (index === this.#locations.length) {
      this.#locations.push(entry);
      if (this.#points) this.#extend(index);
    } else {
      this.#locations.splice(index, 0, entry);
      this.#points = null;
    }
    return true;
  }

  /** What comes after the end of the track is not joined to it. */
  interrupt() {
    const end = this.#locations.at(-1);
    if (end) end.isBeforeHole = true;
  }

  /** @param {number} devices between which the room is divided. */
  forgetBeyond(devices) {
    const room = Math.max(LEAST_PER_DEVICE, Math.floor(LOCATIONS_MAX / devices));
    if (this.#locations.length <= room) return;
    // A quarter at once: it is not done for each location.
    this.#locations.splice(0, this.#locations.length - Math.floor(room * 0.75));
    this.#points = null;
  }

  /** For the map. */
  get points() {
    this.#build();
    return this.#points;
  }

  /** Indices before which it was not followed. */
  get breaks() {
    this.#build();
    return this.#breaks;
  }

  /** The first index that is not older than the end by more than this. */
  since(milliseconds) {
    let index = this.#locations.length - 1;
    while (index > 0 && this.last.time - this.#locations[index - 1].time <= milliseconds) index -= 1;
    return Math.max(0, index);
  }

  location(index) { return this.#locations[index]; }

  #placeOf(entry) {
    let [low, high] = [0, this.#locations.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#locations[middle];
      const isBefore = other.outbox < entry.outbox || (other.outbox === entry.outbox && other.seq < entry.seq);
      if (isBefore) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #build() {
    if (this.#points) return;
    this.#points = new Points(this.#locations.length + 64);
    this.#breaks = new Set();
    for (let index = 0; index < this.#locations.length; index += 1) this.#extend(index);
  }

  #extend(index) {
    const { latitude, longitude, outbox, reason } = this.#locations[index];
    const before = this.#locations[index - 1];
    this.#points.push(latitude, longitude);
    if (before && (before.isBeforeHole || before.event === "gap" || before.outbox !== outbox || reason === "gap" || reason === "jump")) this.#breaks.add(index);
  }
}
